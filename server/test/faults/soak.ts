import { execFile } from 'node:child_process'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { verifyReceipt } from '@countersign/proof'
import { createRandom, type Random } from '../fuzz/random.ts'
import { clients, hostEnv, testEnv } from '../harness.ts'
import { FAULT_KINDS, type FaultKind, randomFault } from './fault-proxy.ts'
import { type Load, startLoad } from './load.ts'
import {
  type FaultWorld,
  findMissing,
  openFaultWorld,
  PARTS,
  type Part,
  readRssMegabytes,
  type Service,
} from './world.ts'

export type SoakOptions = {
  seed: number
  /** For how long faults are made, and how many rounds at most; the checks come on top. */
  seconds: number
  rounds?: number
  /** Longest time of one fault. */
  maxHoldMs?: number
  /** Whether the tenants have webhooks, whose retries take minutes. */
  webhooks?: boolean
  clientsPerKind: number
  /** Only faults of these; of all when absent. */
  only?: readonly string[]
  /** How long what is left over may take once the faults have ended. */
  settleSeconds: number
  log(line: string): void
}

type Card = { part: Part; kind: FaultKind } | { part: 'disk'; kind: 'full' } | { part: 'clock'; kind: 'step' }
type Round = { name: string; seconds: number; recoverySeconds: number; health: string[] }

export type SoakReport = {
  rounds: Round[]
  answers: Load['answers']
  counts: ReturnType<Load['counts']> & { webhooks: number; webhookRequests: number }
  longestRecovery: Round | undefined
  maxRssMegabytes: number
  problems: string[]
}

const RECOVERY_LIMIT_SECONDS = 90
const SLOW_RECOVERY_SECONDS = 5
/** Two processes with live lanes stay below half of it. */
const MAX_RSS_MEGABYTES = 800
const MAX_CLOCK_STEP_SECONDS = 300
const RECEIPTS_TO_VERIFY = 40
const MEMORY_SAMPLE_MS = 1_000
const MAX_HOLD_MS = 8_500

/** A soak from beginning to end, with a world of its own. */
export async function runFaultSoak(options: SoakOptions): Promise<SoakReport> {
  for (const line of findMissing()) options.log(`missing: ${line}`)
  const world = await openFaultWorld(options)
  try {
    const report = await soakWorld(world, options)
    for (const service of world.services) {
      const code = await service.stop()
      if (code !== 0) report.problems.push(`a process ended with ${code} when it was stopped`)
    }
    return report
  } finally {
    await world.close()
  }
}

/** Makes faults by a seed while clients run, and afterwards looks for everything that must not have happened. */
export async function soakWorld(world: FaultWorld, options: SoakOptions): Promise<SoakReport> {
  const exits: string[] = []
  let isOver = false
  for (const [index, service] of world.services.entries())
    void service.exited.then((code) => {
      if (!isOver) exits.push(`service ${index} ended by itself (${code}):\n${service.output().slice(-2_000)}`)
    })
  const memory: number[] = []
  const memoryTimer = setInterval(() => {
    try {
      memory.push(Math.max(...world.services.map(({ child }) => readRssMegabytes(child.pid!))))
    } catch {
      // One has ended, which is a problem of its own.
    }
  }, MEMORY_SAMPLE_MS)
  try {
    const load = await startLoad(world, options)
    // Some work without faults, so that every client has its first answers.
    await delay(2_000)
    const rounds = await makeFaults(world, load, options)
    options.log('faults are over; waiting for what is left')
    await load.stop(options.settleSeconds * 1_000)
    const webhooks = await checkEverything(world, load, options)
    const maxRssMegabytes = Math.max(...memory)
    if (maxRssMegabytes > MAX_RSS_MEGABYTES) load.violate(`memory: ${maxRssMegabytes} MB`)
    options.log(`memory in tenths of the time, in MB: ${sampleEvenly(memory, 10).join(', ')}`)
    const longestRecovery = rounds.toSorted((a, b) => b.recoverySeconds - a.recoverySeconds)[0]
    const problems = [...exits, ...load.violations]
    const counts = { ...load.counts(), ...webhooks }
    return { rounds, answers: load.answers, counts, longestRecovery, maxRssMegabytes, problems }
  } finally {
    isOver = true
    clearInterval(memoryTimer)
  }
}

const sampleEvenly = (values: number[], count: number) =>
  Array.from({ length: count }, (_, index) => values[Math.floor((index * (values.length - 1)) / (count - 1))])

/** Every kind of fault of every part once, in an order by the seed; then again. */
function* dealCards(world: FaultWorld, random: Random, only: SoakOptions['only']): Generator<Card> {
  const cards: Card[] = [
    ...PARTS.filter((part) => world.proxies[part]).flatMap((part) => FAULT_KINDS.map((kind) => ({ part, kind }))),
    ...Array.from({ length: 3 }, (): Card[] => [
      ...(world.disk ? [{ part: 'disk', kind: 'full' } as const] : []),
      ...(world.clock ? [{ part: 'clock', kind: 'step' } as const] : []),
    ]).flat(),
  ].filter(({ part }) => !only || only.includes(part))
  for (;;) {
    const deck = cards.map((card) => ({ card, order: random.next() })).toSorted((a, b) => a.order - b.order)
    for (const { card } of deck) yield card
  }
}

const nameOf = ({ part, kind }: Card) => `${part} ${kind}`

async function makeFaults(world: FaultWorld, load: Load, options: SoakOptions): Promise<Round[]> {
  const { seed, seconds, log, maxHoldMs = MAX_HOLD_MS } = options
  const random = createRandom(seed, 0)
  const deck = dealCards(world, random, options.only)
  const rounds: Round[] = []
  const until = performance.now() + seconds * 1_000
  while (performance.now() < until && rounds.length < (options.rounds ?? Number.POSITIVE_INFINITY)) {
    const cards = [deck.next().value as Card]
    // Sometimes two at once, of different parts.
    const second = random.chance(0.25) ? (deck.next().value as Card) : undefined
    if (second && second.part !== cards[0]!.part) cards.push(second)
    const holdMs = 1_500 + random.below(maxHoldMs - 1_500)
    const share = random.chance(0.6) ? 1 : 0.5
    for (const card of cards) await begin(world, card, random, share)
    const startedAt = performance.now()
    const health = new Set<string>()
    while (performance.now() - startedAt < holdMs) {
      await delay(500)
      for (const service of world.services) for (const problem of await readHealth(service)) health.add(problem)
    }
    for (const card of cards) await end(world, card)
    const endedAt = performance.now()
    const { recovered, obstacles } = await waitForRecovery(world, load, endedAt)
    const name = cards.map(nameOf).join(' + ')
    const round = {
      name,
      seconds: Math.round((endedAt - startedAt) / 100) / 10,
      recoverySeconds: Math.round((performance.now() - endedAt) / 100) / 10,
      health: [...health].sort(),
    }
    if (!recovered) load.violate(`not recovered ${RECOVERY_LIMIT_SECONDS} s after ${name}`)
    rounds.push(round)
    log(
      `${String(rounds.length).padStart(3)}. ${name} (${round.seconds} s, share ${share}): well again after ${round.recoverySeconds} s; health said ${round.health.join(', ') || 'nothing'}`,
    )
    if (round.recoverySeconds > SLOW_RECOVERY_SECONDS) log(`     in its way: ${JSON.stringify(obstacles)}`)
    await delay(300 + random.below(1_000))
  }
  return rounds
}

async function begin(world: FaultWorld, card: Card, random: Random, share: number) {
  if (card.part === 'disk') return world.disk!.fill()
  if (card.part === 'clock') return world.clock!.step(random.below(2 * MAX_CLOCK_STEP_SECONDS) - MAX_CLOCK_STEP_SECONDS)
  await world.proxies[card.part].setFault(randomFault(card.kind, random), { share })
}

async function end(world: FaultWorld, card: Card) {
  if (card.part === 'disk') return world.disk!.free()
  if (card.part === 'clock') return world.clock!.step(0)
  await world.proxies[card.part].clear()
}

/** What a process says is wrong. */
async function readHealth(service: Service): Promise<string[]> {
  try {
    const response = await fetch(`${service.url}/api/health`, { signal: AbortSignal.timeout(10_000) })
    const body = (await response.json()) as { status: string; problems?: { part: string }[] }
    return body.problems?.map(({ part }) => part) ?? (body.status === 'ok' ? [] : [body.status])
  } catch {
    return ['no answer']
  }
}

/** Waits until both processes say that all is well and each has done a run from a wallet and one paid on the chain. */
async function waitForRecovery(world: FaultWorld, load: Load, endedAt: number) {
  const waiting = new Set(world.services)
  /** What kept a process from being well again, with how often it was seen. */
  const obstacles: Record<string, number> = {}
  const meet = (obstacle: string) => {
    obstacles[obstacle] = (obstacles[obstacle] ?? 0) + 1
  }
  for (let turn = 0; waiting.size > 0; turn++) {
    if (performance.now() - endedAt > RECOVERY_LIMIT_SECONDS * 1_000) return { recovered: false, obstacles }
    for (const service of waiting) {
      const index = world.services.indexOf(service)
      // A receiver of webhooks that has not been tried again is no reason to wait.
      const problems = (await readHealth(service)).filter((part) => part !== 'webhooks')
      for (const part of problems) meet(`process ${index} health ${part}`)
      if (problems.length > 0) continue
      const task = `Tell a joke about recovery ${Math.round(endedAt)}.${turn}.`
      const fromWallet = await load.tryRun(service, task)
      const onChain = fromWallet === 200 ? await load.tryPaidRun(service, task) : undefined
      if (onChain === 200) waiting.delete(service)
      else meet(`process ${index} ${onChain === undefined ? `wallet ${fromWallet}` : `x402 ${onChain}`}`)
    }
    if (waiting.size > 0) await delay(250)
  }
  return { recovered: true, obstacles }
}

async function checkEverything(world: FaultWorld, load: Load, { settleSeconds, log, webhooks = true }: SoakOptions) {
  const { pool } = world
  const until = performance.now() + settleSeconds * 1_000
  const one = async (query: string, values: unknown[] = []) =>
    Number(Object.values((await pool.query(query, values)).rows[0])[0])
  const waitFor = async (what: string, query: string) => {
    for (;;) {
      const count = await one(query)
      if (count === 0) return
      if (performance.now() > until) return load.violate(`stuck: ${count} ${what}`)
      await delay(500)
    }
  }
  await waitFor('open runs', 'select count(*) from open_runs')
  await waitFor('rows of the journal', 'select count(*) from journal')
  await waitFor('holds', 'select count(*) from open_holds')
  await waitFor('reserved amounts of wallets', 'select count(*) from wallets where reserved_micro <> 0')

  // Nothing that was acknowledged is lost, and its result is kept.
  const byId = new Map(load.runs.map((run) => [run.runId, run]))
  if (byId.size !== load.runs.length) load.violate(`${load.runs.length - byId.size} runs were acknowledged twice`)
  const { rows } = await pool.query<{
    id: string
    outcome: string
    receipt_id: string | null
    has_answer: boolean
    in_log: boolean
  }>(
    `select run.id, run.outcome, run.receipt_id, run.answer is not null or run.answer_body is not null as has_answer,
            exists (select from log_entries entry where entry.receipt_id = run.receipt_id) as in_log
     from runs run where kind = 'run'`,
  )
  const stored = new Map(rows.map((row) => [row.id, row]))
  for (const run of load.runs) {
    const row = stored.get(run.runId)
    if (row?.outcome !== 'completed' || row.receipt_id !== run.receiptId || !row.has_answer)
      load.violate(`lost: ${JSON.stringify(run)} is ${JSON.stringify(row)}`)
    else if (!row.in_log) load.violate(`the receipt ${run.receiptId} is not in the log`)
  }
  // Every completed run was acknowledged: the clients repeat their requests until they have their answer.
  for (const row of rows)
    if (row.outcome === 'completed' && !byId.has(row.id) && !load.earlierRuns.has(row.id))
      load.violate(`charged and not acknowledged: ${row.id}`)

  // Nobody was charged twice, on the chain and in wallets.
  const chain = clients(world.chain.url)
  for (const payer of load.payers) {
    const bought = BigInt(load.runs.filter((run) => run.payer === payer.address.toLowerCase()).length)
    const paid = load.payerMicro - (await chain.balance(payer.address))
    if (paid !== bought * load.priceMicro) load.violate(`a payer paid ${paid} for ${bought} runs of ${load.priceMicro}`)
  }
  for (const { walletId } of load.tenants) {
    const bought = BigInt(load.runs.filter((run) => run.walletId === walletId).length)
    const paid = load.walletMicro - BigInt(await one('select available_micro from wallets where id = $1', [walletId]))
    if (paid !== bought * load.priceMicro)
      load.violate(`a wallet paid ${paid} for ${bought} runs of ${load.priceMicro}`)
  }
  await checkLedger(world, load)
  await checkReceipts(world, load)
  return webhooks ? checkWebhooks(world, load, settleSeconds, log) : { webhooks: 0, webhookRequests: 0 }
}

async function checkLedger(world: FaultWorld, load: Load) {
  const env = {
    ...hostEnv,
    ...testEnv,
    ...world.directSettings,
    COUNTERSIGN_DATA_DIR: world.services[0]!.dataDir,
  }
  const check = promisify(execFile)(process.execPath, ['server/src/main.ts', 'ledger-check'], { env })
  await check.catch((error: { code: number; stdout: string; stderr: string }) =>
    load.violate(`ledger-check ended with ${error.code}: ${error.stdout} ${error.stderr}`),
  )
}

/** Some receipts are verified offline, with public keys alone. */
async function checkReceipts(world: FaultWorld, load: Load) {
  const service = world.services[0]!
  const { body: jwks } = await service.get('/.well-known/jwks.json')
  const step = Math.max(1, Math.floor(load.runs.length / RECEIPTS_TO_VERIFY))
  for (let index = 0; index < load.runs.length; index += step) {
    const { body } = await service.get(`/api/receipts/${load.runs[index]!.receiptId}`)
    const { ok, checks } = verifyReceipt(body, { jwks })
    if (!ok) load.violate(`a receipt does not verify: ${JSON.stringify(checks)}`)
  }
}

/** Every event of a tenant's run has come, now that the receiver is back; the retry schedule decides when. */
async function checkWebhooks(world: FaultWorld, load: Load, settleSeconds: number, log: (line: string) => void) {
  const expected = load.runs.filter(({ walletId }) => walletId !== undefined).map(({ runId }) => runId)
  const until = performance.now() + settleSeconds * 1_000
  let position = 0
  const missing = new Set(expected)
  for (let turn = 0; missing.size > 0; turn++) {
    for (; position < world.receiver.received.length; position++)
      missing.delete((world.receiver.received[position]!.json as { data: { run_id: string } }).data.run_id)
    if (missing.size === 0) break
    if (turn % 60 === 0) log(`${missing.size} webhooks wait for their next attempt`)
    if (performance.now() > until) {
      load.violate(`${missing.size} of ${expected.length} webhooks were not delivered, such as of ${[...missing][0]}`)
      break
    }
    await delay(500)
  }
  return { webhooks: expected.length - missing.size, webhookRequests: world.receiver.received.length }
}
