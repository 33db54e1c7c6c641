import { type ChildProcess, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { afterEach, expect, test } from 'vitest'
import { checkBooks } from '../../src/modules/ledger/check-books.ts'
import { checkChain } from '../../src/modules/payments/check-chain.ts'
import { readChallenge, readJson, signPayment, startService, type TestService } from '../harness.ts'
import { balancesOf, readMined } from './outside-chain.ts'

/**
 * A facilitator that does everything wrong, and clients that do what generic ones do: sign anew on every 402. At the end
 * the outside world's own file says who paid what, and it must be the price of what each got, once.
 */
const started: (() => Promise<unknown> | unknown)[] = []
afterEach(async () => {
  for (const stop of started.splice(0).reverse()) await stop()
})

const SEED = '20261116'
const PRICE = 10_000n
const START = 100_000_000n

async function startFacilitator(faults: 'all' | 'honest') {
  const folder = mkdtempSync(join(tmpdir(), 'countersign-outside-'))
  const file = join(folder, 'chain.jsonl')
  started.push(() => rmSync(folder, { recursive: true, force: true }))
  const child: ChildProcess = spawn(process.execPath, [join(import.meta.dirname, 'faulty-facilitator.ts')], {
    env: { PATH: process.env.PATH, FILE: file, SEED, FAULTS: faults },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  started.push(() => child.kill())
  const url = await new Promise<string>((found) =>
    child.stdout!.on('data', (said: Buffer) => found(/http:\S+/.exec(String(said))![0])),
  )
  const post = async (path: string, body: unknown = {}) =>
    readJson(await fetch(`${url}${path}`, { method: 'POST', body: JSON.stringify(body) }))
  return { url, file, post }
}

/** Time as the seller and the outside world see it; the test moves both on together. */
let offset = 0
const now = () => Date.now() + offset

type Job = { index: number; payer: PrivateKeyAccount; signed: number; answers: Record<number, number>; run?: string }

/** Every payment that this client ever signs has a nonce that follows from the seed. */
async function work(seller: TestService, job: Job) {
  const body = { task: `Say something about the number ${job.index}.`, agent_id: 'comedian-v1' }
  let payment: Record<string, string> | undefined
  for (let tries = 0; tries < 200; tries++) {
    const answer = await seller.post('/api/run', body, payment)
    job.answers[answer.status] = (job.answers[answer.status] ?? 0) + 1
    if (answer.status === 200) {
      job.run = answer.body.run_id
      return
    }
    if (answer.status === 402) {
      const nonce = `0x${createHash('sha256')
        .update(`${SEED}:${job.index}:${job.signed++}`)
        .digest('hex')}`
      const validBefore = BigInt(Math.floor(now() / 1000) + 300)
      payment = await signPayment(job.payer, readChallenge(answer.headers), { nonce, validBefore })
      // Now and then an answer gets lost on the way to the client, who sends the same payment again.
      if (job.index % 10 === 0) await lose(seller, body, payment)
      continue
    }
    // A run that failed uncharged says so: then, and only then, another payment is in order.
    if (answer.status === 500) {
      expect(answer.body, answer.text).toMatchObject({ charged: false })
      payment = undefined
      continue
    }
    expect([409, 429, 503], answer.text).toContain(answer.status)
    await pause(1_500)
  }
  throw new Error(`Job ${job.index} came to no end: ${JSON.stringify(job.answers)}`)
}

async function lose(seller: TestService, body: unknown, payment: Record<string, string>) {
  const headers = { 'content-type': 'application/json', ...payment }
  await fetch(`${seller.url}/api/run`, {
    method: 'POST',
    headers,
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(30),
  }).catch(() => {})
}

async function race(jobs: Job[], atOnce: number, seller: TestService) {
  const waiting = [...jobs]
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      for (let job = waiting.shift(); job; job = waiting.shift()) await work(seller, job)
    }),
  )
}

/**
 * A facilitator that says «settled» of what it never sent is not asked again, and the chain will show nothing until the
 * authorisation has expired. Nobody waits five minutes for that here.
 */
function moveOnWhenStuck(jobs: Job[], advance: (seconds: number) => Promise<void>) {
  let [done, since] = [0, performance.now()]
  const timer = setInterval(() => {
    const count = jobs.filter((job) => job.run).length
    if (count !== done) [done, since] = [count, performance.now()]
    if (performance.now() - since < 6_000) return
    since = performance.now()
    void advance(310)
  }, 500)
  return () => clearInterval(timer)
}

const open = (seller: TestService, table: 'settlements' | 'payouts', states: string[]) =>
  seller.db.selectFrom(table).select(['id', 'state']).where('state', 'in', states).execute()

async function until(what: string, done: () => Promise<boolean>) {
  for (let tries = 0; tries < 120; tries++) {
    if (await done()) return
    await pause(500)
  }
  throw new Error(`Waited in vain: ${what}`)
}

for (const { name, faults, runs, chain } of [
  { name: 'every fault, with a chain to hold it against', faults: 'all', runs: 1_000, chain: true },
  { name: 'lost answers, with nothing but the facilitator to ask', faults: 'honest', runs: 150, chain: false },
] as const)
  test(`${name}: ${runs} runs, nobody pays twice and nothing is lost`, async () => {
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
    started.push(() => seller.close())
    const payers = Array.from({ length: 25 }, () => privateKeyToAccount(generatePrivateKey()))
    for (const { address } of payers) await facilitator.post('/mint', { to: address, amount: START.toString() })

    const jobs: Job[] = Array.from({ length: runs }, (_, index) => ({
      index,
      payer: payers[index % payers.length]!,
      signed: 0,
      answers: {},
    }))
    const began = performance.now()
    // Without a chain nobody could tell what became of a payment whose time is over, so there time goes its own way.
    const stop = chain ? moveOnWhenStuck(jobs, advance) : () => {}
    await race(jobs, 128, seller)
    stop()
    await until(
      'every settlement ends',
      async () => (await open(seller, 'settlements', ['pending', 'unknown'])).length === 0,
    )
    const seconds = Math.round((performance.now() - began) / 1000)

    if (chain) {
      // A minute later somebody looks at the payments that were given up; what arrived is paid back, faults and all.
      await advance(61)
      await until('every refund is paid', async () => {
        await seller.service.refunds.sweepFailedPayments()
        await seller.service.payouts.sweep()
        const { due } = await seller.db
          .selectFrom('settlements')
          .select((on) => on.fn.countAll<bigint>().as('due'))
          .where('state', '=', 'failed')
          .where('next_attempt_at', '<=', new Date(now()))
          .executeTakeFirstOrThrow()
        return due === 0n && (await open(seller, 'payouts', ['pending'])).length === 0
      })
    }

    const fired: Record<string, number> = await facilitator.post('/fired')
    const answers: Record<number, number> = {}
    for (const job of jobs)
      for (const [status, count] of Object.entries(job.answers))
        answers[Number(status)] = (answers[Number(status)] ?? 0) + count
    const payouts = await seller.db.selectFrom('payouts').selectAll().execute()
    console.log(
      `${runs} runs in ${seconds} s; ${jobs.reduce((sum, job) => sum + job.signed, 0)} payments signed; answers`,
      answers,
      `; refunds ${payouts.length}`,
    )
    console.table(fired)

    // Each job was done once, and each payer has paid for his jobs and for nothing else.
    expect(new Set(jobs.map((job) => job.run)).size).toBe(runs)
    const mined = readMined(facilitator.file)
    const balances = balancesOf(mined)
    for (const payer of payers) {
      const bought = BigInt(jobs.filter((job) => job.payer === payer).length)
      expect(START - balances.get(payer.address.toLowerCase())!).toBe(bought * PRICE)
    }
    expect(balances.get(payee)).toBe(BigInt(runs) * PRICE)

    // Every authorisation that was ever used stands in the books, and the other way round.
    const used = mined.filter((one) => one.nonce && one.from !== payee).map((one) => `${one.from}:${one.nonce}`)
    const booked = await seller.db
      .selectFrom('settlements')
      .select(['payer', 'nonce', 'state'])
      .where('state', 'in', ['settled', 'refunded'])
      .execute()
    expect(booked.map(({ payer, nonce }) => `${payer}:${nonce}`).sort()).toEqual([...used].sort())
    expect(booked.filter(({ state }) => state === 'settled')).toHaveLength(runs)
    expect(mined.filter((one) => one.from === payee)).toHaveLength(payouts.length)
    expect(booked.filter(({ state }) => state === 'refunded')).toHaveLength(payouts.length)

    const { reader, asset, payTo } = seller.service.chain
    const checks = [
      ...(await checkBooks(seller.db)),
      ...(reader ? await checkChain({ db: seller.db, chain: reader, asset, payTo, pause: (ms) => pause(ms) }) : []),
    ]
    expect(checks.filter((check) => check.differences.length > 0)).toEqual([])
    if (runs < 1_000) return
    expect(Object.keys(fired)).toHaveLength(19)
    for (const [fault, count] of Object.entries(fired)) expect(count, fault).toBeGreaterThanOrEqual(25)
  })
