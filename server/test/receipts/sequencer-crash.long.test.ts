import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  hashLeaf,
  parseCheckpoint,
  rootOfLeafHashes,
  utf8,
  verifyAuditExport,
  verifyConsistency,
} from '@countersign/proof'
import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createOutbox } from '../../src/platform/outbox.ts'
import { createReceiptsFixture, createTestDatabase } from './helpers.ts'

let testDatabase: Awaited<ReturnType<typeof createTestDatabase>>
const children = new Set<ChildProcess>()

beforeAll(async () => {
  testDatabase = await createTestDatabase()
  await testDatabase.database.pool.query(`
    insert into tenants (id, org_name, email, created_at, updated_at)
    select 'ten_' || n, 'n', 'n@example.com', now(), now() from generate_series(1, 3) n`)
})
afterAll(async () => {
  for (const child of children) child.kill('SIGKILL')
  await testDatabase.drop()
})

function startProcess() {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'sequencer-process.ts'), testDatabase.url], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  children.add(child)
  let leading = false
  child.stdout!.on('data', () => {
    leading = true
  })
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  return {
    isLeading: () => leading,
    async kill() {
      child.kill('SIGKILL')
      await exited
      children.delete(child)
    },
  }
}

test('two sequencers whose leader is killed again and again leave no gap and no fork and lose nothing', async () => {
  const fixture = createReceiptsFixture(testDatabase.database)
  const { audit } = createOutbox(fixture.ids)
  const checkpoints = new Map<number, ReturnType<typeof parseCheckpoint>>()
  const logSize = () => Math.max(0, ...checkpoints.keys())
  let issuedCount = 0
  let issuing = true

  const issue = async () => {
    while (issuing) {
      await fixture.issueMany(25)
      for (const n of [1, 2, 3])
        await audit(fixture.db, {
          tenantId: `ten_${n}`,
          type: 'test',
          actor: 'a',
          subject: 's',
          at: fixture.clock.now(),
        })
      issuedCount += 25
      const head = await fixture.log.checkpoint().catch(() => undefined)
      const checkpoint = parseCheckpoint(head)
      // The log must have the same root at the same size at all times.
      if (checkpoint) {
        expect(checkpoints.get(checkpoint.size)?.root ?? checkpoint.root).toEqual(checkpoint.root)
        checkpoints.set(checkpoint.size, checkpoint)
      }
      await sleep(5)
    }
  }
  const issueLoop = issue()
  let processes = [startProcess(), startProcess()]
  for (let kills = 0; kills < 12; kills += 1) {
    await expect.poll(() => processes.some((candidate) => candidate.isLeading()), { timeout: 20_000 }).toBe(true)
    // Every other leader is killed after it has published a checkpoint, the rest at any moment.
    const size = logSize()
    if (kills % 2 === 1) await expect.poll(logSize, { timeout: 20_000, interval: 10 }).toBeGreaterThan(size)
    else await sleep(Math.random() * 150)
    const leader = processes.find((candidate) => candidate.isLeading())!
    await leader.kill()
    processes = [...processes.filter((candidate) => candidate !== leader), startProcess()]
  }
  issuing = false
  await issueLoop
  const countQueued = async () => {
    const { rows } = await sql<{ count: string }>`
      select count(*) from journal`.execute(fixture.db)
    return Number(rows[0]!.count)
  }
  await expect.poll(countQueued, { timeout: 30_000 }).toBe(0)
  // A tree is signed after its commit, by the process that numbered it or by its successor.
  const countEntries = async () => {
    const { rows } = await sql<{ count: string }>`select count(*) from log_entries`.execute(fixture.db)
    return Number(rows[0]!.count)
  }
  const isSigned = async () => parseCheckpoint(await fixture.log.checkpoint())?.size === (await countEntries())
  await expect.poll(isSigned, { timeout: 30_000 }).toBe(true)
  for (const candidate of processes) await candidate.kill()

  const { rows } = await sql<{ log_index: bigint; body: string }>`
    select log_index, body from log_entries join receipts on id = receipt_id order by log_index`.execute(fixture.db)
  expect(rows.map(({ log_index }) => Number(log_index))).toEqual(rows.map((_, i) => i))
  expect(rows.filter(({ body }) => !body.includes('"audit_head"'))).toHaveLength(issuedCount)
  const hashes = rows.map(({ body }) => hashLeaf(utf8(body)))
  const newest = parseCheckpoint(await fixture.log.checkpoint())!
  expect(newest.size).toBe(rows.length)
  expect(rootOfLeafHashes(hashes)).toEqual(newest.root)
  expect(checkpoints.size).toBeGreaterThanOrEqual(6)
  for (const checkpoint of checkpoints.values()) {
    const { proof } = await fixture.log.consistency(checkpoint!.size)
    const claim = {
      oldSize: checkpoint!.size,
      oldRoot: checkpoint!.root,
      newSize: newest.size,
      newRoot: newest.root,
      proof,
    }
    expect(verifyConsistency(claim)).toBe(true)
  }
  for (const n of [1, 2, 3]) {
    let text = ''
    for await (const lines of fixture.audit.exportLines(`ten_${n}`, 0)) text += lines
    expect(verifyAuditExport(text)).toMatchObject({ ok: true, count: issuedCount / 25 })
  }
  const { rows: lease } = await sql<{ epoch: bigint }>`select epoch from sequencer_lease`.execute(fixture.db)
  expect(lease[0]!.epoch).toBeGreaterThanOrEqual(12n)
})
