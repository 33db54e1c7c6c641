import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  type CountedBy,
  type CountersOpening,
  type DisclosedCounter,
  verifyOpening,
  verifyReceipt,
} from '@countersign/proof'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { verify } from '../../../cli/src/commands/verify.ts'
import { failingLane, startWorld, type World } from '../money/world.ts'

/** Which budgets and mandates counted a payment stands in its receipt as a commitment that only the answer opens. */
let world: World
let jwks: { keys: never[] }
beforeAll(async () => {
  world = await startWorld()
  jwks = (await world.get('/.well-known/jwks.json')).body
}, 120_000)
afterAll(() => world?.close())

type Tenant = { tenantId: string; headers: Record<string, string> }
const TASK = 'Write one joke about umbrellas.'
const run = { task: TASK, agent_id: 'comedian-v1' }

const post = async (tenant: Tenant, path: string, body: unknown) => {
  const response = await world.post(path, body, tenant.headers)
  expect(response.status, response.text).toBeLessThan(300)
  return response.body
}
const budget = (tenant: Tenant, budget_id: string, terms: Record<string, unknown> = {}) =>
  post(tenant, '/api/budgets', { budget_id, window: 'total', limit_usdc: 1_000, ...terms })

/** A tenant with a wallet, two budgets and a mandate that count its runs. */
async function openTenant() {
  const tenant = await world.tenantWithWallet(1)
  await budget(tenant, 'marketing-canary')
  await budget(tenant, 'rolling-canary', { window: 'rolling_24h' })
  const { mandate_id } = await post(tenant, '/api/mandates', {
    name: 'm',
    constraints: [
      { type: 'payment.budget', currency: 'USDC', max: 100 },
      { type: 'payment.agent_recurrence', frequency: 'ON_DEMAND', max_occurrences: 1000 },
    ],
  })
  return { ...tenant, mandateId: mandate_id as string, walletRun: { ...run, payment: { wallet_id: tenant.walletId } } }
}

const withoutSalt = ({ salt: _, ...countedBy }: DisclosedCounter): CountedBy => countedBy
const shown = (opening: CountersOpening) => (opening.items as DisclosedCounter[]).map(withoutSalt)
const names = (opening: CountersOpening) => shown(opening).map(({ counter }) => counter)

const namesOf = ({ tenantId, mandateId }: { tenantId: string; mandateId: string }) => [
  `budget:${tenantId}:marketing-canary`,
  `budget:${tenantId}:rolling-canary`,
  `mandate:${mandateId}:max_occurrences`,
  `mandate:${mandateId}:payment.budget`,
]

/** Opens a public receipt, and refuses each opening that says something else. */
function expectOpening(receipt: Record<string, unknown>, opening: CountersOpening) {
  const opens = (counters: unknown) => verifyOpening(receipt, { counters: counters as CountersOpening }).ok
  expect(verifyReceipt(receipt, { jwks, opening: { counters: opening } })).toMatchObject({ ok: true })
  const items = opening.items as DisclosedCounter[]
  const added = { counter: 'budget:ten_x:other', period: 'total', measure: 'money', amount: '1', salt: opening.salt }
  const lies: unknown[] = [[...items, added], ...items.map((_, index) => items.toSpliced(index, 1))]
  for (const [index, item] of items.entries()) {
    const changes = [{ counter: `${item.counter}x` }, { amount: `${BigInt(item.amount) + 1n}` }, { period: 'total:x' }]
    for (const change of changes) lies.push(items.with(index, { ...item, ...change }))
  }
  if (items.length > 1)
    lies.push(items.with(0, { ...items[0]!, salt: items[1]!.salt }).with(1, { ...items[1]!, salt: items[0]!.salt }))
  expect(lies.filter((lie) => opens({ salt: opening.salt, items: lie }))).toEqual([])
  const [first, ...rest] = opening.salt
  expect(opens({ ...opening, salt: (first === 'A' ? 'B' : 'A') + rest.join('') })).toBe(false)
}

/** What anybody can read of a run: its receipts and their entries in the log. */
async function readPublic(runId: string, receiptId: string): Promise<string> {
  const paths = [`/api/receipts/${receiptId}`, `/api/receipts?run_id=${runId}`, `/api/receipts/${receiptId}/proof`]
  return (await Promise.all(paths.map((path) => world.get(path)))).map(({ text }) => text).join()
}

describe('the receipt of what a budget or a mandate counted', () => {
  test('names, for who has the answer alone, each of them with its window and the amount', async () => {
    const tenant = await openTenant()
    const { receipt, evidence, run_id, amount } = await post(tenant, '/api/run', tenant.walletRun)
    expect(names(evidence.counters)).toEqual(namesOf(tenant))
    const [total, rolling, occurrences, spent] = shown(evidence.counters)
    expect([total!.amount, rolling!.amount, spent!.amount]).toEqual([amount, amount, amount])
    expect(total).toMatchObject({ period: 'total', measure: 'money' })
    expect(rolling).toMatchObject({ period: 'rolling_24h', slice_ends_at: expect.stringMatching(/Z$/) })
    expect(occurrences).toMatchObject({ measure: 'count', amount: '1' })
    expectOpening(receipt, evidence.counters)

    const publicText = await readPublic(run_id, receipt.receipt_id)
    const salts = [evidence.counters, ...evidence.counters.items].map(({ salt }: { salt: string }) => salt)
    expect(new Set([...salts, evidence.salt]).size).toBe(6)
    for (const secret of ['canary', tenant.tenantId, 'max_occurrences', 'payment.budget', ...salts])
      expect(publicText).not.toContain(secret)
    const stored = await world.get(`/api/runs/${run_id}`, tenant.headers)
    expect(stored.body.answer.body.evidence).toEqual(evidence)
  })

  test('looks like the receipt of a run that nothing counts: the same members, the same lengths, no common hash', async () => {
    const counted = await openTenant()
    const plain = await world.tenantWithWallet(1)
    const plainRun = { ...run, payment: { wallet_id: plain.walletId } }
    const answers = [
      await post(counted, '/api/run', counted.walletRun),
      await post(counted, '/api/run', counted.walletRun),
      await post(plain, '/api/run', plainRun),
      (await world.pay(await world.payer(1), '/api/run', run)).answer.body,
    ]
    const commitments = answers.map(({ receipt }) => receipt.counters)
    expect(new Set(commitments.map((commitment) => JSON.stringify(commitment).length)).size).toBe(1)
    expect(new Set(commitments.map(({ hash }) => hash)).size).toBe(4)
    expect(commitments.map(({ alg, hash: _, ...more }) => [alg, more])).toEqual(
      Array.from({ length: 4 }, () => ['sha256-salted-list', {}]),
    )
    for (const { receipt, evidence } of answers.slice(2)) {
      expect(evidence.counters.items).toEqual([])
      expectOpening(receipt, evidence.counters)
    }
    // The opening of one receipt does not open another that the same counters counted.
    const [first, second] = answers
    expect(verifyOpening(second.receipt, { counters: first.evidence.counters }).ok).toBe(false)
  })

  test('of a loop and of a run paid by x402', async () => {
    const tenant = await openTenant()
    const { answer: loop } = await world.pay(await world.payer(1), '/api/loop', { input: TASK }, tenant.headers)
    const { answer: paid } = await world.pay(await world.payer(1), '/api/run', run, tenant.headers)
    for (const { status, text, body } of [loop, paid]) {
      expect(status, text).toBe(200)
      expect(names(body.evidence.counters)).toEqual(namesOf(tenant))
      expectOpening(body.receipt, body.evidence.counters)
    }
  })

  test('of a run that failed opens to none: nothing was counted', async () => {
    const tenant = await openTenant()
    world.setLane(failingLane)
    const failed = await world.post('/api/run', tenant.walletRun, tenant.headers)
    world.setLane(undefined)
    expect([failed.status, failed.body.evidence.counters.items]).toEqual([500, []])
    expectOpening(failed.body.receipt, failed.body.evidence.counters)
  })

  test('of a run under a pre-authorisation names what the pre-authorisation held, at the price of the run', async () => {
    const tenant = await openTenant()
    const terms = { agent_id: 'comedian-v1', merchant: { id: 'countersign' }, amount_usdc: 0.5 }
    const { token } = await post(tenant, '/api/pre-auth', terms)
    const answer = await post(tenant, '/api/run', { ...tenant.walletRun, preauth_token: token })
    expect(names(answer.evidence.counters)).toEqual(namesOf(tenant))
    const money = shown(answer.evidence.counters).filter(({ measure }) => measure === 'money')
    expect(new Set(money.map(({ amount }) => amount))).toEqual(new Set([answer.amount]))
    expectOpening(answer.receipt, answer.evidence.counters)
  })

  test('of a close names what was charged; of one that charged nothing, none; both also when they are read later', async () => {
    const tenant = await openTenant()
    const preauth = { agent_id: 'buyer', merchant: { id: 'shop' }, amount_usdc: 0.5 }
    const outcomes = [
      { report: { outcome: 'settled', actual_amount_usdc: 0.25 }, counted: namesOf(tenant) },
      { report: { outcome: 'voided' }, counted: [] },
    ]
    for (const { report, counted } of outcomes) {
      const { preauth_id } = await post(tenant, '/api/pre-auth', preauth)
      const closed = await post(tenant, '/api/pre-auth/close', { preauth_id, ...report })
      const { counters } = closed.evidence
      expect(names(counters)).toEqual(counted)
      for (const { measure, amount } of shown(counters)) expect(amount).toBe(measure === 'money' ? '250000' : '1')
      expectOpening(closed.receipt, counters)
      const read = await world.get(`/api/pre-auth/${preauth_id}`, tenant.headers)
      expect(read.body.closed.evidence).toEqual(closed.evidence)
      expect(await readPublic(closed.run_id, closed.receipt.receipt_id)).not.toContain('canary')
    }
  })

  test('of a trade: its private receipt opens the commitment of its public entry', async () => {
    const tenant = await world.onboard()
    await budget(tenant, 'desk-canary', { applies_to: ['trades'] })
    const order = { tenant_id: tenant.tenantId, side: 'buy', instrument_type: 'crypto', symbol: 'BTC-USD' }
    const { receipt } = await post(tenant, '/api/rh/run', { ...order, quantity: 0.001 })
    expect(names(receipt.counters)).toEqual([`budget:${tenant.tenantId}:desk-canary`])
    const [{ amount }] = shown(receipt.counters) as [CountedBy]
    const { budgets } = (await world.get('/api/budgets', tenant.headers)).body
    expect(BigInt(amount)).toBe(BigInt(Math.round(budgets[0].spent_usdc * 1e6)))
    const entry = await world.get(receipt.receipt_url)
    expectOpening(entry.body, receipt.counters)
    expect(entry.text).not.toContain('canary')

    const refused = await world.post('/api/rh/run', { ...order, quantity: 5 }, tenant.headers)
    expect(refused.status, refused.text).toBe(422)
    const { run_id } = refused.body
    const [rejection] = (await world.get(`/api/rh/receipts?run_id=${run_id}`, tenant.headers)).body
    expect(rejection.counters.items).toEqual([])
    expectOpening((await world.get(rejection.receipt_url)).body, rejection.counters)
  })
})

test('countersign verify opens the counters of a saved answer, and refuses one that names another amount', async () => {
  const tenant = await openTenant()
  const answer = await post(tenant, '/api/run', tenant.walletRun)
  const folder = mkdtempSync(join(tmpdir(), 'countersign-counters-'))
  const save = (name: string, value: unknown) => {
    writeFileSync(join(folder, name), JSON.stringify(value))
    return join(folder, name)
  }
  const options = { jwks: save('jwks.json', jwks) }
  const { checks } = await verify(save('answer.json', answer), options)
  expect(checks).toContainEqual(expect.objectContaining({ name: 'counters', ok: true }))
  answer.evidence.counters.items[0].amount = '1'
  expect((await verify(save('changed.json', answer), options)).ok).toBe(false)
  rmSync(folder, { recursive: true })
})

test('what the openings of all receipts say adds up to what each counter has counted, and no receipt is left over', async () => {
  const tenant = await openTenant()
  await budget(tenant, 'desk-canary', { applies_to: ['trades', 'runs'] })
  const openings: CountersOpening[] = []
  for (let count = 0; count < 3; count++)
    openings.push((await post(tenant, '/api/run', tenant.walletRun)).evidence.counters)
  const { answer } = await world.pay(await world.payer(1), '/api/loop', { input: TASK }, tenant.headers)
  openings.push(answer.body.evidence.counters)
  for (const actual of [0, 0.125]) {
    const preauth = { agent_id: 'buyer', merchant: { id: 'shop' }, amount_usdc: 0.5 }
    const { preauth_id } = await post(tenant, '/api/pre-auth', preauth)
    const report = { preauth_id, outcome: 'settled', actual_amount_usdc: actual }
    openings.push((await post(tenant, '/api/pre-auth/close', report)).evidence.counters)
  }
  const order = { tenant_id: tenant.tenantId, side: 'buy', symbol: 'SOL-USD', instrument_type: 'crypto', quantity: 0.5 }
  openings.push((await post(tenant, '/api/rh/run', order)).receipt.counters)
  world.setLane(failingLane)
  openings.push((await world.post('/api/run', tenant.walletRun, tenant.headers)).body.evidence.counters)
  world.setLane(undefined)

  const sums: Record<string, string> = {}
  for (const { counter, period, amount } of openings.flatMap(shown))
    sums[`${counter} ${period}`] = `${BigInt(sums[`${counter} ${period}`] ?? 0) + BigInt(amount)}`
  const { rows } = await world.service.database.pool.query(
    `select scope || ' ' || period as counter, spent_micro::text as spent from limits
     where (scope like 'budget:' || $1 || ':%' or scope like 'mandate:' || $2 || ':%') and spent_micro > 0`,
    [tenant.tenantId, tenant.mandateId],
  )
  expect(Object.keys(sums).length).toBe(5)
  expect(sums).toEqual(Object.fromEntries(rows.map(({ counter, spent }) => [counter, spent])))
})
