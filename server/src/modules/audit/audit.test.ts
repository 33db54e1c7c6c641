import { verifyAuditExport, verifyReceipt } from '@countersign/proof'
import { sql } from 'kysely'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { createReceiptsFixture, createTestDatabase, ORIGIN } from '../../../test/receipts/helpers.ts'
import { createOutbox } from '../../platform/outbox.ts'

let testDatabase: Awaited<ReturnType<typeof createTestDatabase>>
let fixture: ReturnType<typeof createReceiptsFixture>

beforeAll(async () => {
  testDatabase = await createTestDatabase()
  await testDatabase.database.pool.query(`
    insert into tenants (id, org_name, email, created_at, updated_at)
    select 'ten_' || name, name, name || '@example.com', now(), now() from unnest(array['ada', 'bob']) as name`)
})
beforeEach(async () => {
  await testDatabase.clear()
  fixture = createReceiptsFixture(testDatabase.database)
})
afterAll(() => testDatabase.drop())

async function record(
  tenantId: string,
  count: number,
  change: { type?: string; actor?: string; subject?: string } = {},
) {
  const { audit } = createOutbox(fixture.ids)
  for (let i = 0; i < count; i += 1) {
    fixture.clock.advance(1)
    const data = { note: 'ünïcode \u2028', amount: 0.1 + i, nested: { b: [1, null], a: true } }
    await audit(fixture.db, {
      tenantId,
      type: 'run.completed',
      actor: 'key_1',
      subject: `run_${i}`,
      at: fixture.clock.now(),
      decision: 'pass',
      data,
      ...change,
    })
  }
}

async function exportOf(tenantId: string, after = 0) {
  let text = ''
  for await (const lines of fixture.audit.exportLines(tenantId, after)) text += lines
  return text
}

test('events of two tenants, recorded in turns, make two chains without gaps that verify independently', async () => {
  for (const round of [3, 1, 4]) {
    await record('ten_ada', round)
    await record('ten_bob', 1)
    await fixture.sequencer.runOnce()
  }
  const ada = verifyAuditExport(await exportOf('ten_ada'))
  expect(ada).toMatchObject({ ok: true, count: 8, head: { seq: 8 } })
  expect(verifyAuditExport(await exportOf('ten_bob'))).toMatchObject({ ok: true, count: 3 })
  const tailExport = await exportOf('ten_ada', 5)
  const fifth = JSON.parse((await exportOf('ten_ada')).split('\n')[4]!)
  expect(verifyAuditExport(tailExport, { after: { seq: 5, hash: fifth.hash } })).toMatchObject({ ok: true, count: 3 })
})

test('an export with a missing, changed or reordered event does not verify', async () => {
  await record('ten_ada', 5)
  await fixture.sequencer.runOnce()
  const text = await exportOf('ten_ada')
  const lines = text.trimEnd().split('\n')
  const head = { seq: 5, hash: JSON.parse(lines[4]!).hash }
  expect(verifyAuditExport(text, { head }).ok).toBe(true)
  expect(verifyAuditExport(lines.toSpliced(2, 1), { head }).ok).toBe(false)
  expect(verifyAuditExport(lines.slice(1), { head }).ok).toBe(false)
  expect(verifyAuditExport(lines.slice(0, 4), { head }).ok).toBe(false)
  expect(verifyAuditExport(text.replace('"amount":2.1', '"amount":2.2'), { head }).ok).toBe(false)
  expect(verifyAuditExport([lines[1]!, lines[0]!, ...lines.slice(2)], { head }).ok).toBe(false)
})

test('the head of a chain is in the public log, without revealing the tenant', async () => {
  await record('ten_ada', 2)
  await fixture.sequencer.runOnce()
  const { checkpoint } = await fixture.audit.list('ten_ada', {}, { limit: 1 })
  const text = await exportOf('ten_ada')
  expect(checkpoint).toMatchObject({ seq: 2, committed_seq: 2, receipt: { kind: 'audit_head', audit: { seq: 2 } } })
  const receipt = checkpoint!.receipt as { audit: { seq: number; hash: string }; run_id: string }
  const jwks = (await fixture.jwks()) as never
  expect(verifyReceipt(receipt, { jwks, log: { origin: ORIGIN, required: true } })).toMatchObject({ ok: true })
  expect(verifyAuditExport(text, { head: receipt.audit })).toMatchObject({ ok: true })
  expect(JSON.stringify(receipt)).not.toMatch(/ten_ada/)
  const { receipts } = await fixture.receipts.list({}, { limit: 100 })
  expect(receipts).toEqual([])
  expect((await fixture.receipts.list({ kind: 'audit_head' }, { limit: 100 })).receipts).toHaveLength(1)
})

test('a busy chain commits its head once a minute, each head referring to the previous one', async () => {
  await record('ten_ada', 1)
  await fixture.sequencer.runOnce()
  await record('ten_ada', 1)
  await fixture.sequencer.runOnce()
  expect((await fixture.audit.list('ten_ada', {}, { limit: 1 })).checkpoint).toMatchObject({ seq: 2, committed_seq: 1 })
  fixture.clock.advance(60_000)
  await fixture.sequencer.runOnce()
  const { checkpoint } = await fixture.audit.list('ten_ada', {}, { limit: 1 })
  const { receipts } = await fixture.receipts.list({ kind: 'audit_head' }, { limit: 10 })
  expect(checkpoint).toMatchObject({ seq: 2, committed_seq: 2 })
  const jwks = (await fixture.jwks()) as never
  expect(verifyReceipt(receipts[0], { jwks, previous: receipts[1] })).toMatchObject({ ok: true })
  fixture.clock.advance(600_000)
  await fixture.sequencer.runOnce()
  expect((await fixture.receipts.list({ kind: 'audit_head' }, { limit: 10 })).receipts).toHaveLength(2)
})

test("a list shows only the tenant's events, newest first, filtered and paged", async () => {
  await record('ten_ada', 3)
  await record('ten_ada', 2, { type: 'policy.created', actor: 'key_2', subject: 'pol_1' })
  await record('ten_bob', 1)
  await fixture.sequencer.runOnce()
  const first = await fixture.audit.list('ten_ada', {}, { limit: 3 })
  expect(first.events.map(({ seq }) => seq)).toEqual([5, 4, 3])
  const second = await fixture.audit.list('ten_ada', {}, { limit: 3, cursor: first.next_cursor! })
  expect(second).toMatchObject({ events: [{ seq: 2 }, { seq: 1 }], has_more: false, next_cursor: null })
  const ofKey = await fixture.audit.list('ten_ada', { actor: 'key_2' }, { limit: 9 })
  expect(ofKey.events.map(({ actor, subject }) => [actor, subject])).toEqual(Array(2).fill(['key_2', 'pol_1']))
  const policies = await fixture.audit.list('ten_ada', { type: 'policy.created', subject: 'pol_1' }, { limit: 9 })
  expect(policies.events).toHaveLength(2)
  const [newest] = policies.events
  expect((await fixture.audit.list('ten_ada', { since: newest!.occurred_at }, { limit: 9 })).events).toEqual([newest])
  expect((await fixture.audit.list('ten_ada', { until: newest!.occurred_at }, { limit: 9 })).events).toHaveLength(4)
  await expect(fixture.audit.list('ten_bob', {}, { limit: 3, cursor: first.next_cursor! })).rejects.toThrow(
    'not the id of an event',
  )
  expect((await fixture.audit.list('ten_nobody', {}, { limit: 3 })).checkpoint).toBeNull()
})

test('since and until find every event of their range although events were recorded out of order', async () => {
  const { audit } = createOutbox(fixture.ids)
  const start = fixture.clock.now().getTime()
  const offsets = Array.from({ length: 60 }, (_, n) => n * 1_000 + ((n * 7919) % 13) * 700)
  for (const [n, offset] of offsets.entries()) {
    await audit(fixture.db, {
      tenantId: 'ten_ada',
      type: 't',
      actor: 'a',
      subject: `${n}`,
      at: new Date(start + offset),
    })
    if (n % 9 === 0) await fixture.sequencer.runOnce()
  }
  await fixture.sequencer.runOnce()
  for (const [from, to] of [
    [0, 9_000],
    [5_300, 30_001],
    [20_000, 20_001],
    [55_000, 90_000],
    [100_000, 200_000],
  ] as const) {
    const filter = { since: new Date(start + from).toISOString(), until: new Date(start + to).toISOString() }
    const { events } = await fixture.audit.list('ten_ada', filter, { limit: 100 })
    const expected = offsets.flatMap((offset, n) => (offset >= from && offset < to ? [`${n}`] : []))
    expect(events.map(({ subject }) => subject).reverse()).toEqual(expected)
  }
})

test('events and links cannot be changed or deleted', async () => {
  await record('ten_ada', 1)
  await fixture.sequencer.runOnce()
  for (const change of [
    sql`update audit_events set actor = 'key_2'`,
    sql`delete from audit_events`,
    sql`update audit_events set hash = 'x'`,
  ])
    await expect(change.execute(fixture.db)).rejects.toThrow('immutable')
})
