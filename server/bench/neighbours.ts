/**
 * A tenant that sends one run a second beside a caller that attacks the service, under the default limits and with two
 * processes: the slowest answer beside each attack against the slowest one of an idle service.
 *
 * Run: npm run bench neighbours -- [--only=text of the attack's name]
 * BENCH_SECONDS (20) is the time of each attack. Ends with status 1 when an answer was not 200 or a ratio is above the bar.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { constants, setPriority } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { attacks } from './neighbours/attacks.ts'
import { startBenchService } from './support/bench-service.ts'
import { describeMachine, formatFigure, formatTable, median } from './support/report.ts'
import { prepareWalletRuns } from './support/wallet-load.ts'

const MAX_RATIO = 5
const WARM_UP_RUNS = 40
const seconds = Number(process.env.BENCH_SECONDS ?? 20)
const only = process.argv.find((argument) => argument.startsWith('--only='))?.slice('--only='.length)

type Window = { slowestMs: number; medianMs: number; statuses: Record<string, number> }

const service = await startBenchService({
  arguments: ['--workers', '2'],
  env: { RATE_LIMIT_ANON_PER_MINUTE: '60', RATE_LIMIT_KEY_PER_MINUTE: '600' },
})
console.log(describeMachine())
try {
  const run = await prepareWalletRuns(service, 100)
  let index = 0
  /** A connection of its own for each run, so that the runs go to both processes. */
  const sendRun = async () => {
    const startedAt = performance.now()
    const response = await fetch(`${service.url}${run.path}`, {
      method: run.method,
      headers: { ...run.headers, 'content-type': 'application/json', connection: 'close' },
      body: run.body!.replace('{n}', String(index++)),
    })
    await response.arrayBuffer()
    return { ms: performance.now() - startedAt, status: response.status }
  }
  /** One run a second, whether the one before has been answered or not. */
  const measure = async (isOver: () => boolean): Promise<Window> => {
    const sent: Promise<{ ms: number; status: number }>[] = []
    do {
      sent.push(sendRun().catch(() => ({ ms: Number.POSITIVE_INFINITY, status: 0 })))
      await delay(1000)
    } while (!isOver())
    const answers = await Promise.all(sent)
    const statuses: Record<string, number> = {}
    for (const { status } of answers) statuses[status] = (statuses[status] ?? 0) + 1
    const times = answers.map(({ ms }) => ms)
    return { slowestMs: Math.max(...times), medianMs: median(times), statuses }
  }
  const measureFor = (duration: number) => {
    const endsAt = performance.now() + duration * 1000
    return measure(() => performance.now() > endsAt)
  }

  for (let warmUp = 0; warmUp < WARM_UP_RUNS; warmUp++) await sendRun()
  const idle = await measureFor(seconds)
  const rows = [['beside', 'median ms', 'slowest ms', 'ratio', 'answers', 'attacker got']]
  const printStatuses = (statuses: Record<string, number>) =>
    Object.entries(statuses)
      .map(([status, count]) => `${count}×${status}`)
      .join(' ')
  rows.push([
    'nobody',
    formatFigure(idle.medianMs),
    formatFigure(idle.slowestMs),
    '1',
    printStatuses(idle.statuses),
    '',
  ])
  for (const [position, attack] of attacks.entries()) {
    if (only !== undefined && !attack.name.includes(only)) continue
    const attacker = await startAttacker(position)
    let isOver = false
    attacker.result.then(() => {
      isOver = true
    })
    const beside = await measure(() => isOver)
    const { statuses, largestAnswer } = await attacker.result
    const ratio = beside.slowestMs / idle.slowestMs
    if (ratio > MAX_RATIO || Object.keys(beside.statuses).some((status) => status !== '200')) process.exitCode = 1
    rows.push([
      `${attack.item}: ${attack.name}`,
      formatFigure(beside.medianMs),
      formatFigure(beside.slowestMs),
      formatFigure(ratio),
      printStatuses(beside.statuses),
      `${printStatuses(statuses)}, ≤ ${formatFigure(largestAnswer / 1024)} kB`,
    ])
    console.log(rows.at(-1)!.join('  '))
  }
  console.log(`\n${formatTable(rows)}`)
  console.log(process.exitCode ? `\nnot met: at most ${MAX_RATIO} times` : `\nmet: at most ${MAX_RATIO} times`)
} finally {
  await service.stop()
}

/**
 * Starts one attack from an address of its own; it has onboarded and filled its wallet when this returns. It stands for
 * another machine, so it gets only the CPU that the service and the victim leave.
 */
async function startAttacker(position: number) {
  const child: ChildProcess = spawn(
    process.execPath,
    [
      '--disable-warning=ExperimentalWarning',
      join(import.meta.dirname, 'neighbours/attacker.ts'),
      service.url,
      String(position),
      String(seconds),
      `127.${position + 1}.0.1`,
    ],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  )
  setPriority(child.pid!, constants.priority.PRIORITY_LOW)
  const lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]()
  const ready = await lines.next()
  if (ready.value !== 'ready') throw new Error(`The attacker '${attacks[position]!.name}' did not start.`)
  const result = lines.next().then(({ value }) => {
    if (!value) throw new Error(`The attacker '${attacks[position]!.name}' ended early.`)
    return JSON.parse(value) as { statuses: Record<string, number>; largestAnswer: number }
  })
  return { result }
}
