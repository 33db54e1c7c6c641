import { type ChildProcess, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { afterEach, expect, test } from 'vitest'
import { checkBooks } from '../../src/modules/ledger/check-books.ts'
import { checkChain } from '../../src/modules/payments/check-chain-balance.ts'
import { readChallenge, readJson, signPayment, startService, type TestService } from '../harness.ts'
import { computeBalances, readTransfers } from './external-chain.ts'

/**
 * A facilitator with every kind of fault, and clients that sign a new payment on every 402, as generic clients do. In the
 * end the external chain's file shows what each client paid, and it must be the price of its runs, once.
 */
const cleanups: (() => Promise<unknown> | unknown)[] = []
afterEach(async () => {
  for (const stop of cleanups.splice(0).reverse()) await stop()
})

const SEED = '20261116'
const PRICE = 10_000n
const INITIAL_BALANCE = 100_000_000n

async function startFacilitator(faults: 'all' | 'honest') {
  const folder = mkdtempSync(join(tmpdir(), 'countersign-outside-'))
  const file = join(folder, 'chain.jsonl')
  cleanups.push(() => rmSync(folder, { recursive: true, force: true }))
  const child: ChildProcess = spawn(process.execPath, [join(import.meta.dirname, 'faulty-facilitator.ts')], {
    env: { PATH: process.env.PATH, FILE: file, SEED, FAULTS: faults },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  cleanups.push(() => child.kill())
  const url = await new Promise<string>((resolve) =>
    child.stdout!.on('data', (output: Buffer) => resolve(/http:\S+/.exec(String(output))![0])),
  )
  const post = async (path: string, body: unknown = {}) =>
    readJson(await fetch(`${url}${path}`, { method: 'POST', body: JSON.stringify(body) }))
  return { url, file, post }
}

/** The time of the seller and of the external chain; the test advances both together. */
let offset = 0
const now = () => Date.now() + offset

type Job = { index: number; payer: PrivateKeyAccount; signed: number; statuses: Record<number, number>; run?: string }

/** The nonces of all payments derive from the seed, so a run can be repeated. */
async function runJob(seller: TestService, job: Job) {
  const body = { task: `Say something about the number ${job.index}.`, agent_id: 'comedian-v1' }
  let payment: Record<string, string> | undefined
  for (let attempt = 0; attempt < 200; attempt++) {
    const response = await seller.post('/api/run', body, payment)
    job.statuses[response.status] = (job.statuses[response.status] ?? 0) + 1
    if (response.status === 200) {
      job.run = response.body.run_id
      return
    }
    if (response.status === 402) {
      const nonce = `0x${createHash('sha256')
        .update(`${SEED}:${job.index}:${job.signed++}`)
        .digest('hex')}`
      const validBefore = BigInt(Math.floor(now() / 1000) + 300)
      payment = await signPayment(job.payer, readChallenge(response.headers), { nonce, validBefore })
      // Some responses are lost on the way to the client, which then sends the same payment again.
      if (job.index % 10 === 0) await sendAndDrop(seller, body, payment)
      continue
    }
    // Only a run that failed without a charge may be paid again.
    if (response.status === 500) {
      expect(response.body, response.text).toMatchObject({ charged: false })
      payment = undefined
      continue
    }
    expect([409, 429, 503], response.text).toContain(response.status)
    await pause(1_500)
  }
  throw new Error(`Job ${job.index} did not finish: ${JSON.stringify(job.statuses)}`)
}

async function sendAndDrop(seller: TestService, body: unknown, payment: Record<string, string>) {
  const headers = { 'content-type': 'application/json', ...payment }
  await fetch(`${seller.url}/api/run`, {
    method: 'POST',
    headers,
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(30),
  }).catch(() => {})
}

async function runConcurrently(jobs: Job[], concurrency: number, seller: TestService) {
  const waitingJobs = [...jobs]
  await Promise.all(
    Array.from({ length: concurrency }, async () => {
      for (let job = waitingJobs.shift(); job; job = waitingJobs.shift()) await runJob(seller, job)
    }),
  )
}

/**
 * A facilitator that reports `settled` without sending anything is not asked again, and the chain shows nothing until the
 * authorisation has expired. Instead of waiting five minutes, the test advances the time.
 */
function advanceWhenStuck(jobs: Job[], advance: (seconds: number) => Promise<void>) {
  let [finishedJobs, since] = [0, performance.now()]
  const timer = setInterval(() => {
    const count = jobs.filter((job) => job.run).length
    if (count !== finishedJobs) [finishedJobs, since] = [count, performance.now()]
    if (performance.now() - since < 6_000) return
    since = performance.now()
    void advance(310)
  }, 500)
  return () => clearInterval(timer)
}

const findInState = (seller: TestService, table: 'settlements' | 'payouts', states: string[]) =>
  seller.db.selectFrom(table).select(['id', 'state']).where('state', 'in', states).execute()

async function waitUntil(description: string, isDone: () => Promise<boolean>) {
  for (let attempt = 0; attempt < 120; attempt++) {
    if (await isDone()) return
    await pause(500)
  }
  throw new Error(`Timed out: ${description}`)
}

/** A thousand by `npm run test:soak -- facilitator-faults`. */
const RUNS = Number(process.env.FACILITATOR_FAULT_RUNS ?? 300)

for (const { name, faults, runs, chain } of [
  { name: 'every fault, with a chain to compare with', faults: 'all', runs: RUNS, chain: true },
  { name: 'lost responses, without a chain', faults: 'honest', runs: Math.ceil(RUNS / 6), chain: false },
] as const)
  test(`${name}: ${runs} runs, no client pays twice and no payment is lost`, async () => {
    const facilitator = await startFacilitator(faults)
    const payeeKey = generatePrivateKey()
    const payee = privateKeyToAccount(payeeKey).address.toLowerCase()
    const advance = async (seconds: number) => {
      offset += seconds * 1000
      await facilitator.post('/advance', { seconds })
    }
    offset = 0
    const seller = await startService({
      clock: { now: () => new Date(now()) },
      env: {
        FACILITATOR_URL: ['a', 'b', 'c', 'd'].map((part) => `${facilitator.url}/${part}`).join(','),
        PAY_TO_ADDRESS: payee,
        ...(chain && { CHAIN_RPC_URL: `${facilitator.url}/rpc`, FACILITATOR_PRIVATE_KEY: payeeKey }),
      },
    })
    cleanups.push(() => seller.close())
    const payers = Array.from({ length: 25 }, () => privateKeyToAccount(generatePrivateKey()))
    for (const { address } of payers)
      await facilitator.post('/mint', { to: address, amount: INITIAL_BALANCE.toString() })

    const jobs: Job[] = Array.from({ length: runs }, (_, index) => ({
      index,
      payer: payers[index % payers.length]!,
      signed: 0,
      statuses: {},
    }))
    const startedAt = performance.now()
    // Without a chain the outcome of an expired payment cannot be known, so time is not advanced there.
    const stop = chain ? advanceWhenStuck(jobs, advance) : () => {}
    await runConcurrently(jobs, 128, seller)
    stop()
    await waitUntil(
      'every settlement ends',
      async () => (await findInState(seller, 'settlements', ['pending', 'unknown'])).length === 0,
    )
    const seconds = Math.round((performance.now() - startedAt) / 1000)

    if (chain) {
      // After a minute the background work checks the payments that were given up and refunds those that arrived.
      await advance(61)
      await waitUntil('every refund is paid', async () => {
        const { due } = await seller.db
          .selectFrom('settlements')
          .select((on) => on.fn.countAll<bigint>().as('due'))
          .where('state', '=', 'failed')
          .where('next_attempt_at', '<=', new Date(now()))
          .executeTakeFirstOrThrow()
        return due === 0n && (await findInState(seller, 'payouts', ['pending'])).length === 0
      })
    }

    const faultCounts: Record<string, number> = await facilitator.post('/fired')
    const statuses: Record<number, number> = {}
    for (const job of jobs)
      for (const [status, count] of Object.entries(job.statuses))
        statuses[Number(status)] = (statuses[Number(status)] ?? 0) + count
    const payouts = await seller.db.selectFrom('payouts').selectAll().execute()
    console.log(
      `${runs} runs in ${seconds} s; ${jobs.reduce((sum, job) => sum + job.signed, 0)} payments signed; statuses`,
      statuses,
      `; refunds ${payouts.length}`,
    )
    console.table(faultCounts)

    // Each job ran once, and each payer paid for its jobs and nothing else.
    expect(new Set(jobs.map((job) => job.run)).size).toBe(runs)
    const transfers = readTransfers(facilitator.file)
    const balances = computeBalances(transfers)
    for (const payer of payers) {
      const boughtRuns = BigInt(jobs.filter((job) => job.payer === payer).length)
      expect(INITIAL_BALANCE - balances.get(payer.address.toLowerCase())!).toBe(boughtRuns * PRICE)
    }
    expect(balances.get(payee)).toBe(BigInt(runs) * PRICE)

    // The used authorisations and the booked settlements are the same.
    const usedAuthorizations = transfers
      .filter((transfer) => transfer.nonce && transfer.from !== payee)
      .map((transfer) => `${transfer.from}:${transfer.nonce}`)
    const bookedSettlements = await seller.db
      .selectFrom('settlements')
      .select(['payer', 'nonce', 'state'])
      .where('state', 'in', ['settled', 'refunded'])
      .execute()
    expect(bookedSettlements.map(({ payer, nonce }) => `${payer}:${nonce}`).sort()).toEqual(
      [...usedAuthorizations].sort(),
    )
    expect(bookedSettlements.filter(({ state }) => state === 'settled')).toHaveLength(runs)
    expect(transfers.filter((transfer) => transfer.from === payee)).toHaveLength(payouts.length)
    expect(bookedSettlements.filter(({ state }) => state === 'refunded')).toHaveLength(payouts.length)

    const { reader, asset, payTo } = seller.service.chain
    const checks = [
      ...(await checkBooks(seller.db)),
      ...(reader ? await checkChain({ db: seller.db, chain: reader, asset, payTo, pause: (ms) => pause(ms) }) : []),
    ]
    expect(checks.filter((check) => check.differences.length > 0)).toEqual([])
    if (runs < 1_000) return
    expect(Object.keys(faultCounts)).toHaveLength(19)
    for (const [fault, count] of Object.entries(faultCounts)) expect(count, fault).toBeGreaterThanOrEqual(25)
  })
