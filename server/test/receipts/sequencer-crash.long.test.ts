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
import { createReceiptsBench, createTestDatabase } from './helpers.ts'

let opened: Awaited<ReturnType<typeof createTestDatabase>>
const children = new Set<ChildProcess>()

beforeAll(async () => {
  opened = await createTestDatabase()
  await opened.database.pool.query(`
    insert into tenants (id, org_name, email, created_at, updated_at)
    select 'ten_' || n, 'n', 'n@example.com', now(), now() from generate_series(1, 3) n`)
})
afterAll(async () => {
  for (const child of children) child.kill('SIGKILL')
  await opened.drop()
})

function startProcess() {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'sequencer-process.ts'), opened.url], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  children.add(child)
  let leading = false
  child.stdout!.on('data', () => {
    leading = true
  })
  const exited = new Promise<void>((done) => child.once('exit', () => done()))
  return {
    leads: () => leading,
    async kill() {
      child.kill('SIGKILL')
      await exited
      children.delete(child)
    },
  }
}

test('two processes number while the leading one is killed over and over: no gap, no fork, nothing lost', async () => {
  const b = createReceiptsBench(opened.database)
  const { audit } = createOutbox(b.ids)
  const checkpoints = new Map<number, ReturnType<typeof parseCheckpoint>>()
  let issued = 0
  let issuing = true

  const issue = async () => {
    while (issuing) {
      await b.issueMany(25)
      for (const n of [1, 2, 3])
        await audit(b.db, { tenantId: `ten_${n}`, type: 'test', actor: 'a', subject: 's', at: b.clock.now() })
      issued += 25
      const head = await b.log.checkpoint().catch(() => undefined)
      const checkpoint = parseCheckpoint(head)
      // A size that was seen before must have the root it had before.
      if (checkpoint) {
        expect(checkpoints.get(checkpoint.size)?.root ?? checkpoint.root).toEqual(checkpoint.root)
        checkpoints.set(checkpoint.size, checkpoint)
      }
      await sleep(5)
    }
  }
  const done = issue()
  let processes = [startProcess(), startProcess()]
  for (let kills = 0; kills < 12; kills += 1) {
    await expect.poll(() => processes.some((one) => one.leads()), { timeout: 20_000 }).toBe(true)
    await sleep(Math.random() * 150)
    const leader = processes.find((one) => one.leads())!
    await leader.kill()
    processes = [...processes.filter((one) => one !== leader), startProcess()]
  }
  issuing = false
  await done
  const left = async () => {
    const { rows } = await sql<{ count: string }>`
      select (select count(*) from log_queue) + (select count(*) from audit_queue) as count`.execute(b.db)
    return Number(rows[0]!.count)
  }
  await expect.poll(left, { timeout: 30_000 }).toBe(0)
  for (const one of processes) await one.kill()

  const { rows } = await sql<{ log_index: bigint; body: string }>`
    select log_index, body from log_entries join receipts on id = receipt_id order by log_index`.execute(b.db)
  expect(rows.map(({ log_index }) => Number(log_index))).toEqual(rows.map((_, i) => i))
  expect(rows.filter(({ body }) => !body.includes('"audit_head"'))).toHaveLength(issued)
  const hashes = rows.map(({ body }) => hashLeaf(utf8(body)))
  const newest = parseCheckpoint(await b.log.checkpoint())!
  expect(newest.size).toBe(rows.length)
  expect(rootOfLeafHashes(hashes)).toEqual(newest.root)
  for (const checkpoint of checkpoints.values()) {
    const { proof } = await b.log.consistency(checkpoint!.size)
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
    for await (const lines of b.audit.exportLines(`ten_${n}`, 0)) text += lines
    expect(verifyAuditExport(text)).toMatchObject({ ok: true, count: issued / 25 })
  }
  const { rows: lease } = await sql<{ epoch: bigint }>`select epoch from sequencer_lease`.execute(b.db)
  expect(lease[0]!.epoch).toBeGreaterThanOrEqual(12n)
})
