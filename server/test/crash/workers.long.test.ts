import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, expect, test } from 'vitest'
import { readChallenge, signPayment, spawnService } from '../harness.ts'

/** `serve --workers 2` on the embedded database and chain, as real processes. */
const PRICE_MICRO = 10_000n
const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean()
})

type Service = Awaited<ReturnType<typeof spawnService>>

async function startWorkers(env: Record<string, string> = {}, dataDir = makeDataDir()): Promise<Service> {
  const service = await spawnService({ COUNTERSIGN_DATA_DIR: dataDir, WORKERS: '2', ...env })
  cleanups.push(() => service.stop())
  return service
}

function makeDataDir() {
  const dataDir = mkdtempSync(join(tmpdir(), 'countersign-workers-'))
  cleanups.push(() => rmSync(dataDir, { recursive: true, force: true }))
  return dataDir
}

/** The processes that the supervisor started, by their command: `serve` or `work`. */
function childrenOf(pid: number, command: string): number[] {
  const children = readdirSync(`/proc/${pid}/task`).flatMap((task) =>
    readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8').split(' ').filter(Boolean).map(Number),
  )
  return children.filter((child) => commandOf(child).endsWith(`main.ts\0${command}\0`))
}

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8')
  } catch {
    return ''
  }
}

const isAlive = (pid: number) => commandOf(pid) !== ''

/** Sends one payment until it is answered; the connection may be lost with a killed worker. */
async function runUntilAnswered(service: Service, payer: Awaited<ReturnType<Service['payer']>>, task: string) {
  const body = { task, agent_id: 'comedian-v1' }
  let header: Record<string, string> | undefined
  let last = 'none'
  for (let attempt = 0; attempt < 200; attempt++) {
    const answer = await service.post('/api/run', body, header).catch(() => undefined)
    last = answer ? `${answer.status} ${answer.text}` : 'lost connection'
    if (answer?.status === 200) return answer.body as { receipt: { receipt_id: string } }
    if (answer?.status === 402 && header) throw new Error('A payment that may have been taken got another 402.')
    if (answer?.status === 402) header = await signPayment(payer, readChallenge(answer.headers))
    // The run was given up with its process and never charged, which its stored response says: pay anew.
    else if (answer?.body?.charged === false) header = undefined
    else await delay(100)
  }
  throw new Error(`No answer for ${task}; the last attempt: ${last}`)
}

async function readRunsByWorker(service: Service): Promise<Map<string, number>> {
  const { text } = await service.get('/metrics')
  const runs = new Map<string, number>()
  for (const [, labels, value] of text.matchAll(/^countersign_runs_total\{(.*)\} (\d+)$/gm)) {
    const worker = /worker="([^"]+)"/.exec(labels!)![1]!
    runs.set(worker, (runs.get(worker) ?? 0) + Number(value))
  }
  return runs
}

test('paid runs over one port are shared by both workers, and one scrape shows every process', async () => {
  const service = await startWorkers()
  const payer = await service.payer(1)
  // The service answers from its first worker on; a slow machine may start the second one after all runs are done.
  await expect
    .poll(async () => (await service.get('/api/health')).body, { timeout: 60_000 })
    .toMatchObject({ workers_ready: 2 })
  await Promise.all(Array.from({ length: 16 }, (_, index) => runUntilAnswered(service, payer, `Joke ${index}.`)))

  const runs = await readRunsByWorker(service)
  expect([...runs.keys()].filter((worker) => worker.startsWith('api-')).sort()).toEqual(['api-1', 'api-2'])
  expect([...runs.values()].reduce((sum, count) => sum + count, 0)).toBe(16)
  expect(await service.balance(payer.address)).toBe(1_000_000n - 16n * PRICE_MICRO)
  expect((await service.get('/api/health')).body).toEqual({
    status: 'ok',
    redis: 'not_configured',
    supabase: 'embedded',
    workers: 2,
    workers_ready: 2,
    background: 'running',
  })
  const { text } = await service.get('/metrics')
  for (const worker of ['supervisor', 'api-1', 'api-2', 'background'])
    expect(text).toContain(`countersign_process_cpu_seconds_total{worker="${worker}"}`)
  expect(text.match(/^countersign_runs_unfinished /gm)).toHaveLength(1)
  // Only the process for background work sweeps, once it has something to do.
  const readSweepers = async () => {
    const metrics = (await service.get('/metrics')).text
    const names = [...metrics.matchAll(/^countersign_job_seconds_count\{.*worker="([^"]+)"/gm)].map(([, name]) => name)
    return [...new Set(names)]
  }
  await expect.poll(readSweepers).toEqual(['background'])
})

test('workers killed under load: nothing is lost or charged twice, and they come back', async () => {
  const service = await startWorkers()
  const payers = await Promise.all(Array.from({ length: 8 }, () => service.payer(1)))
  const RUNS = 6
  const load = Promise.all(
    payers.map(async (payer, index) => {
      const answers = []
      for (let run = 0; run < RUNS; run++)
        answers.push(await runUntilAnswered(service, payer, `Joke ${run} for payer ${index}.`))
      return answers
    }),
  )
  const killed: number[] = []
  for (let kill = 0; kill < 3; kill++) {
    await delay(700)
    const victim = childrenOf(service.child.pid!, kill === 1 ? 'work' : 'serve')[0]
    if (victim === undefined) continue
    killed.push(victim)
    process.kill(victim, 'SIGKILL')
  }
  const answers = (await load).flat()
  expect(killed.length).toBeGreaterThan(0)
  expect(new Set(answers.map(({ receipt }) => receipt.receipt_id)).size).toBe(payers.length * RUNS)
  // A request that meets a worker at the moment of its death is reset, so the balances are read once both are back.
  await expect
    .poll(async () => (await service.get('/api/health')).body, { timeout: 30_000 })
    .toMatchObject({ workers_ready: 2, background: 'running' })
  for (const payer of payers) expect(await service.balance(payer.address)).toBe(1_000_000n - BigInt(RUNS) * PRICE_MICRO)
  // Every receipt gets its place in the log, also after the process that numbers them was killed.
  await expect
    .poll(async () => (await service.get('/metrics')).text, { timeout: 30_000 })
    .toMatch(/^countersign_receipts_unsequenced 0$/m)
})

test.each(['SIGTERM', 'SIGINT'] as const)(
  '%s ends every process and the database, and frees the port',
  async (signal) => {
    const service = await startWorkers()
    const payer = await service.payer(1)
    await runUntilAnswered(service, payer, 'One joke.')
    const pids = [...childrenOf(service.child.pid!, 'serve'), ...childrenOf(service.child.pid!, 'work')]
    expect(pids).toHaveLength(3)
    const postmaster = Number(readFileSync(join(service.dataDir, 'postgres/postmaster.pid'), 'utf8').split('\n')[0])
    expect(isAlive(postmaster)).toBe(true)

    expect(await service.stop(signal)).toBe(0)

    expect([...pids, postmaster].filter(isAlive)).toEqual([])
    expect(existsSync(join(service.dataDir, 'postgres/postmaster.pid'))).toBe(false)
    await expect(fetch(`${service.url}/api/health`)).rejects.toThrow()
  },
)

test('a killed supervisor takes its processes with it, and the next start takes the database over', async () => {
  const dataDir = makeDataDir()
  const first = await startWorkers({}, dataDir)
  const payer = await first.payer(1)
  await runUntilAnswered(first, payer, 'A joke before.')
  const pids = childrenOf(first.child.pid!, 'serve')
  await first.stop('SIGKILL')
  await expect.poll(() => pids.filter(isAlive)).toEqual([])

  const second = await startWorkers({}, dataDir)
  expect(await second.balance(payer.address)).toBe(1_000_000n - PRICE_MICRO)
  await runUntilAnswered(second, payer, 'A joke after.')
  expect(await second.balance(payer.address)).toBe(1_000_000n - 2n * PRICE_MICRO)
})

test('a rate limit is one limit for all workers', async () => {
  const service = await startWorkers({ RATE_LIMIT_ANON_PER_MINUTE: '20' })
  const statuses: number[] = []
  for (let request = 0; request < 40; request++) {
    // A new connection each time, so that the requests go to both workers.
    const response = await fetch(`${service.url}/api/pricing`, { headers: { connection: 'close' } })
    await response.arrayBuffer()
    statuses.push(response.status)
    await delay(60)
  }
  const admitted = statuses.filter((status) => status === 200).length
  expect(admitted).toBeGreaterThanOrEqual(20)
  // Some requests more pass while they are counted, and one every three seconds anyway; two limits would admit all 40.
  expect(admitted).toBeLessThanOrEqual(30)
})

test('a start that cannot succeed ends with its reason and leaves nothing running', async () => {
  const dataDir = makeDataDir()
  const first = await startWorkers()
  const start = startWorkers({ PORT: new URL(first.url).port }, dataDir)
  await expect(start).rejects.toThrow(/ended \(1\)[\s\S]*EADDRINUSE/)
  expect(existsSync(join(dataDir, 'postgres/postmaster.pid'))).toBe(false)
})
