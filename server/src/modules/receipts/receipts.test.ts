import { verifyReceiptChain } from '@countersign/proof'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { createReceiptsFixture, createTestDatabase, testKeys } from '../../../test/receipts/helpers.ts'
import type { FindTransfers } from './check-settlement.ts'

let testDatabase: Awaited<ReturnType<typeof createTestDatabase>>
beforeAll(async () => {
  testDatabase = await createTestDatabase()
})
beforeEach(() => testDatabase.clear())
afterAll(() => testDatabase.drop())

const PAYER = '0xAbC0000000000000000000000000000000000001'
const TRANSACTION: `0x${string}` = `0x${'ab'.repeat(32)}`

/** A chain with one transaction of this value, or with none. */
const chain =
  (value: bigint | null): FindTransfers =>
  async (transaction) =>
    value !== null && transaction === TRANSACTION
      ? [{ asset: '0xasset', from: PAYER.toLowerCase(), to: '0xpayee', value }]
      : null

const settlement = {
  status: 'settled',
  transaction: TRANSACTION,
  network: 'eip155:8453',
  payer: PAYER,
  amount: '10000',
}

async function createIssuedReceipt(transfers?: FindTransfers) {
  const fixture = createReceiptsFixture(testDatabase.database, { findTransfers: transfers })
  const [signed] = await fixture.issue([fixture.draft({ run_id: 'run_v', settlement, payer: PAYER })])
  await fixture.sequencer.runOnce()
  return { ...fixture, receipt: signed!.receipt as unknown as Record<string, unknown> }
}

const outcomesByName = (checks: { name: string; ok: unknown }[]) =>
  Object.fromEntries(checks.map(({ name, ok }) => [name, ok]))

test('a receipt is listed by lane, kind, run, payer and time, newest first, page by page', async () => {
  const fixture = createReceiptsFixture(testDatabase.database)
  for (const [agent_id, kind] of [
    ['analyst-v1', 'run'],
    ['writer-v1', 'loop'],
    ['writer-v1', 'failure'],
  ] as const) {
    fixture.clock.advance(1000)
    await fixture.issue([fixture.draft({ agent_id, kind, run_id: `run_${kind}`, payer: PAYER })])
  }
  const ids = async (filter: Parameters<typeof fixture.receipts.list>[0]) =>
    (await fixture.receipts.list(filter, { limit: 10 })).receipts.map(({ kind }) => kind)
  expect(await ids({})).toEqual(['failure', 'loop', 'run'])
  expect(await ids({ agent_id: 'writer-v1' })).toEqual(['failure', 'loop'])
  expect(await ids({ agent_id: 'writer-v1', kind: 'loop' })).toEqual(['loop'])
  expect(await ids({ run_id: 'run_run' })).toEqual(['run'])
  expect(await ids({ payer: PAYER.toLowerCase() })).toHaveLength(3)
  expect(await ids({ payer: '0x0000000000000000000000000000000000000002' })).toEqual([])
  expect(await ids({ since: '2026-11-16T15:00:02.000Z', until: '2026-11-16T15:00:03.000Z' })).toEqual(['loop'])
  const first = await fixture.receipts.list({}, { limit: 2 })
  expect(first).toMatchObject({ has_more: true, next_cursor: first.receipts[1]!.receipt_id })
  expect(await fixture.receipts.list({}, { limit: 2, cursor: first.next_cursor! })).toMatchObject({
    receipts: [{ kind: 'run' }],
    has_more: false,
    next_cursor: null,
  })
  await expect(fixture.receipts.list({}, { limit: 2, cursor: 'rcpt_none' })).rejects.toThrow('cursor')
  await expect(fixture.receipts.get('rcpt_none')).rejects.toThrow('No such receipt')
})

test('every check of a valid receipt passes, and the result lists what it does not prove', async () => {
  const { receipts, receipt } = await createIssuedReceipt(chain(10000n))
  const explanation = await receipts.verify({ receipt })
  expect(explanation).toMatchObject({ ok: true, receipt_id: receipt.receipt_id, later: [] })
  const { shape, key, key_purpose, signature, prev_hash, checkpoint, inclusion, record, log_history, settlement } =
    outcomesByName(explanation.checks)
  expect([
    shape,
    key,
    key_purpose,
    signature,
    prev_hash,
    checkpoint,
    inclusion,
    record,
    log_history,
    settlement,
  ]).toEqual(Array(10).fill(true))
  expect(explanation.does_not_prove.join(' ')).toMatch(/output is correct/)
  expect(explanation.does_not_prove.join(' ')).not.toMatch(/settlement/)
  expect(await receipts.verify({ receipt_id: String(receipt.receipt_id) })).toMatchObject({ ok: true })
})

test.each([
  ['another price', { pricing: { price_usdc: 9 } }, 'signature'],
  [
    'another issuer',
    { signature: { alg: 'ed25519', key_id: 'unknown', value: Buffer.alloc(64).toString('base64') } },
    'key',
  ],
  ['another form', { schema: 'run-receipt/v2' }, 'shape'],
  ['no canonical form', { route: { text: '\ud800' } }, 'signature'],
  ['an invented member', { tip: 1 }, 'signature'],
])('a receipt with %s fails its check and is not on record', async (_case, change, broken) => {
  const { receipts, receipt } = await createIssuedReceipt()
  const explanation = await receipts.verify({ receipt: { ...receipt, ...change } })
  expect(explanation.ok).toBe(false)
  expect(outcomesByName(explanation.checks)).toMatchObject({ [broken]: false, record: false })
})

test('a place in the log that belongs to another receipt fails the inclusion check', async () => {
  const fixture = await createIssuedReceipt()
  const [other] = await fixture.issueMany(1)
  await fixture.sequencer.runOnce()
  const { log } = await fixture.receipts.get(other!.row.id)
  const explanation = await fixture.receipts.verify({ receipt: { ...fixture.receipt, log } })
  expect(outcomesByName(explanation.checks)).toMatchObject({ signature: true, checkpoint: true, inclusion: false })
  expect(explanation.ok).toBe(false)
})

test('a checkpoint that our key signed but the log never had is reported as a fork', async () => {
  const fixture = await createIssuedReceipt()
  const place = (await fixture.receipts.get(String(fixture.receipt.receipt_id))).log
  await testDatabase.clear()
  const fork = createReceiptsFixture(testDatabase.database)
  await fork.issueMany(1)
  await fork.sequencer.runOnce()
  const explanation = await fork.receipts.verify({ receipt: { ...fixture.receipt, log: place } })
  expect(explanation.ok).toBe(false)
  expect(outcomesByName(explanation.checks)).toMatchObject({
    signature: true,
    checkpoint: true,
    inclusion: true,
    log_history: false,
  })
})

test.each([
  ['a transaction that moved the amount', chain(10000n), true],
  ['a transaction that moved less', chain(9999n), false],
  ['a transaction the chain does not know', chain(null), false],
  ['a chain that cannot be reached', async () => Promise.reject(new Error('down')), 'skipped'],
  ['no chain', undefined, 'skipped'],
] as const)('the settlement is checked on the chain: %s', async (_case, transfers, ok) => {
  const { receipts, receipt } = await createIssuedReceipt(transfers as FindTransfers | undefined)
  const explanation = await receipts.verify({ receipt })
  expect(outcomesByName(explanation.checks).settlement).toBe(ok)
  expect(explanation.ok).toBe(ok !== false)
  // A settlement that was found on the chain is no longer among the things the receipt does not prove.
  expect(explanation.does_not_prove.some((sentence) => /settlement/.test(sentence))).toBe(ok !== true)
})

test('a refund continues the receipt it refunds, and verifying the first receipt lists it', async () => {
  const fixture = await createIssuedReceipt()
  const prev_hash = await fixture.receipts.lastHashOfRun(fixture.db, 'run_v')
  const [refund] = await fixture.issue([fixture.draft({ run_id: 'run_v', kind: 'refund', prev_hash })])
  await fixture.sequencer.runOnce()
  expect(await fixture.receipts.verify({ receipt: fixture.receipt })).toMatchObject({
    ok: true,
    later: [{ receipt_id: refund!.row.id, kind: 'refund' }],
  })
  const explanation = await fixture.receipts.verify({ receipt: refund!.receipt as never })
  expect(explanation.ok).toBe(true)
  expect(explanation.checks.find(({ name }) => name === 'prev_hash')).toMatchObject({
    ok: true,
    reason: expect.stringContaining('hash of the previous receipt'),
  })
})

test('keys that were replaced stay in the key set, marked as retired in the DID document', async () => {
  const before = createReceiptsFixture(testDatabase.database, { keys: testKeys('old') })
  await before.receipts.open()
  const after = createReceiptsFixture(testDatabase.database, { keys: testKeys('new') })
  await after.receipts.open()
  const { keys } = await after.receipts.jwks()
  const [oldKey, newKey] = [testKeys('old'), testKeys('new')].map((set) => set.signer('receipts').keyId)
  expect(keys.map(({ kid }) => kid)).toEqual(expect.arrayContaining([oldKey, newKey]))
  const did = await after.receipts.did()
  expect(did.assertionMethod).toContain(`${did.id}#${newKey}`)
  expect(did.assertionMethod).not.toContain(`${did.id}#${oldKey}`)
  expect(keys.find(({ kid }) => kid === newKey)?.purpose).toBe('receipt')
})

test('private receipts of a run leave a chain of commitments in the public log, and nothing else', async () => {
  const fixture = createReceiptsFixture(testDatabase.database)
  await testDatabase.database.pool.query(`
    insert into tenants (id, org_name, email, created_at, updated_at) values ('ten_canary', 'c', 'c@example.com', now(), now())
    on conflict do nothing`)
  const commit = (receiptId: string, digit: string) =>
    fixture.receipts.issueCommitment(fixture.db, {
      receiptId,
      runId: 'a-brokerage-run',
      tenantId: 'ten_canary',
      agentId: null,
      issuedAt: fixture.clock.now(),
      hash: `sha256:${digit.repeat(64)}`,
      counters: { secret: 'a secret of the test', counted: [] },
    })
  await commit('rcpt_1', '1')
  await commit('rcpt_2', '2')
  await fixture.sequencer.runOnce()
  const [first, second] = [await fixture.receipts.get('rcpt_1'), await fixture.receipts.get('rcpt_2')]
  const options = { jwks: (await fixture.jwks()) as never, log: { required: true } }
  expect(verifyReceiptChain([first, second], options)).toMatchObject({ ok: true })
  expect(second.output_hash).toBe(`sha256:${'2'.repeat(64)}`)
  expect(JSON.stringify([first, second])).not.toMatch(/canary/)
})
