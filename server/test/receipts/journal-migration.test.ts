import { appendToTiles, hashLeaf, parseCheckpoint, rootOfLeafHashes, utf8, verifyAuditExport } from '@countersign/proof'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { canonicalJson, hashJson } from '../../src/platform/canonical.ts'
import type { Database } from '../../src/platform/db.ts'
import { migrate } from '../../src/platform/migrate.ts'
import { createTestDatabase, migrateUntil, type TestDatabase } from '../database.ts'
import { readEvents } from '../journal.ts'
import { createReceiptsFixture, ORIGIN } from './helpers.ts'

let scratch: TestDatabase
let database: Database
beforeAll(async () => {
  scratch = await createTestDatabase({ empty: true })
  database = scratch.open(4)
  await migrateUntil(database, '0055')
})
afterAll(async () => {
  await database.close()
  await scratch.drop()
})

const AT = '2026-11-16T15:00:00.000Z'
const later = (seconds: number) => new Date(Date.parse(AT) + seconds * 1_000).toISOString()

/** Four linked events and one that waits, as the release before stored them; the third is older than the second. */
async function seedAudit() {
  let prev_hash: string | null = null
  const lines: string[] = []
  for (const [index, seconds] of [0, 10, 5, 20, 30].entries()) {
    const event = {
      id: `aud_${index}`,
      type: 'policy.created',
      occurred_at: later(seconds),
      actor: 'key_1',
      subject: `pol_${index % 2}`,
      decision: null,
      policy_ids: ['pol_1'],
      input_hash: null,
      data: { amount: 0.1 + index, nested: { b: [1, null], a: 'ünïcode' } },
    }
    await database.pool.query(
      `insert into audit_events (id, tenant_id, type, occurred_at, actor, subject, policy_ids, data) values ($1, 'ten_1', $2, $3, $4, $5, $6, $7)`,
      [event.id, event.type, event.occurred_at, event.actor, event.subject, event.policy_ids, event.data],
    )
    if (index === 4) {
      await database.pool.query('insert into audit_queue (event_id) values ($1)', [event.id])
      break
    }
    const hash: string = hashJson({ ...event, seq: index + 1, prev_hash })
    await database.pool.query(
      `insert into audit_links (tenant_id, seq, event_id, prev_hash, hash) values ('ten_1', $1, $2, $3, $4)`,
      [index + 1, event.id, prev_hash, hash],
    )
    lines.push(canonicalJson({ ...event, seq: index + 1, prev_hash, hash }))
    prev_hash = hash
  }
  await database.pool.query(
    `insert into audit_heads (tenant_id, chain, seq, hash, committed_seq, committed_at) values ('ten_1', 'audit_1', 4, $1, 4, $2)`,
    [prev_hash, later(60)],
  )
  return lines
}

/** Three receipts in the log and one that waits for its place. */
async function seedLog(fixture: ReturnType<typeof createReceiptsFixture>) {
  const signed = [0, 1, 2, 3].map(() => fixture.receipts.sign(fixture.draft({ tenant_id: 'ten_1' })))
  for (const { row } of signed)
    await database.pool.query(
      `insert into receipts (id, run_id, tenant_id, kind, agent_id, payer, issued_at, body, hash, prev_hash) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
      [
        row.id,
        row.run_id,
        row.tenant_id,
        row.kind,
        row.agent_id,
        row.payer,
        row.issued_at,
        row.body,
        row.hash,
        row.prev_hash,
      ],
    )
  const leaves = signed.slice(0, 3).map(({ row }) => hashLeaf(utf8(row.body)))
  for (const [index, { row }] of signed.slice(0, 3).entries())
    await database.pool.query('insert into log_entries (log_index, receipt_id) values ($1, $2)', [index, row.id])
  await database.pool.query('insert into log_queue (receipt_id) values ($1)', [signed[3]!.row.id])
  const { size, root, tiles } = appendToTiles(0, () => undefined, leaves)
  for (const { tile, bytes } of tiles)
    await database.pool.query('insert into log_tiles (level, index, bytes) values ($1, $2, $3)', [
      tile.level,
      tile.index,
      Buffer.from(bytes),
    ])
  await database.pool.query(
    `insert into log_head (id, origin, size, root, note, updated_at) values (1, $1, $2, $3, 'a note', now())`,
    [ORIGIN, size, Buffer.from(root)],
  )
  return signed
}

/** Ended runs of a tenant and of a guest, of which one is not in the sums yet because its event waits. */
async function seedRuns() {
  for (const [id, tenant, state, latency] of [
    ['run_1', 'ten_1', 'completed', 100],
    ['run_2', 'ten_1', 'completed', 200],
    ['run_3', null, 'failed', null],
    ['run_4', 'ten_1', 'blocked', null],
  ])
    await database.pool.query(
      `insert into runs (id, kind, tenant_id, agent_id, session_id, loop_id, action, state, outcome, request_hash, request, terms, price_micro, result, created_at, deadline_at)
       values ($1, 'run', $2, 'writer-v1', 's', 'loop_' || $1, 'run', $3, $3, 'h', '{}', '{}', 13000, $4, now() - interval '2 hours', now())`,
      [id, tenant, state, latency === null ? null : { execution: { latency_ms: latency } }],
    )
  await database.pool.query(`
    insert into run_hours (tenant_id, hour, agent_id, runs, completed, blocked, failed, spend_micro, cost_micro)
    values ('ten_1', date_trunc('hour', now() - interval '2 hours', 'UTC'), 'writer-v1', 1, 1, 0, 0, 13000, 0);
    insert into events (id, tenant_id, type, data, created_at, dispatched_at) values
      ('evt_1', 'ten_1', 'run.completed', '{"run_id": "run_1"}', now(), now()),
      ('evt_2', 'ten_1', 'run.completed', '{"run_id": "run_2"}', now(), null),
      ('evt_3', 'ten_1', 'run.blocked', '{"run_id": "run_4"}', now(), null),
      ('evt_4', 'ten_1', 'approval.rejected', '{"run_id": "run_4"}', now(), null);`)
}

test('the audit chain, the log, waiting events and sums of the release before go on unchanged', async () => {
  await database.pool.query(
    `insert into tenants (id, org_name, email, created_at, updated_at) values ('ten_1', 'n', 'n@example.com', now(), now())`,
  )
  const fixture = createReceiptsFixture(database)
  const lines = await seedAudit()
  const signed = await seedLog(fixture)
  await seedRuns()

  await migrate(database)

  const exported = async () => {
    let text = ''
    for await (const page of fixture.audit.exportLines('ten_1', 0)) text += page
    return text
  }
  expect((await exported()).trimEnd().split('\n')).toEqual(lines)
  expect((await readEvents(database.db, 'ten_1')).map(({ type }) => type)).toEqual([
    'run.completed',
    'run.completed',
    'run.blocked',
    'approval.rejected',
  ])
  const totals = async () => {
    const { rows } = await database.pool.query(
      `select sum(runs)::int as runs, sum(completed)::int as completed, sum(blocked)::int as blocked, sum(spend_micro)::int as spend
       from tenant_run_hours('ten_1', '-infinity', 'infinity', '{}')`,
    )
    return rows[0]
  }
  expect(await totals()).toEqual({ runs: 3, completed: 2, blocked: 1, spend: 26_000 })
  const lanes = async () =>
    (await database.pool.query('select agent_id, runs::int, success_rate, p50_ms, p95_ms from lane_stats()')).rows
  const expectedLanes = [{ agent_id: 'writer-v1', runs: 3, success_rate: 2 / 3, p50_ms: 102, p95_ms: 199 }]
  expect(await lanes()).toEqual(expectedLanes)
  const trust = async () =>
    (await database.pool.query('select agent_id, receipts::int, succeeded::int from lane_trust')).rows
  expect(await trust()).toEqual([{ agent_id: 'analyst-v1', receipts: 4, succeeded: 4 }])

  await fixture.sequencer.runOnce()
  expect(verifyAuditExport(await exported())).toMatchObject({ ok: true, count: 5, head: { seq: 5 } })
  expect((await exported()).startsWith(`${lines.join('\n')}\n`)).toBe(true)
  const since = await fixture.audit.list('ten_1', { since: later(7), until: later(25) }, { limit: 9 })
  expect(since.events.map(({ seq }) => seq)).toEqual([4, 2])
  const checkpoint = parseCheckpoint(await fixture.log.checkpoint())!
  const bodies = signed.map(({ row }) => row.body)
  const { rows: heads } = await database.pool.query(`select body from receipts where kind = 'audit_head'`)
  const leaves = [...bodies, ...heads.map(({ body }) => body as string)].map((body) => hashLeaf(utf8(body)))
  expect(rootOfLeafHashes(leaves)).toEqual(checkpoint.root)
  expect(await trust()).toEqual([{ agent_id: 'analyst-v1', receipts: 4, succeeded: 4 }])
  await expect(database.pool.query(`update audit_events set hash = 'x'`)).rejects.toThrow('immutable')
})
