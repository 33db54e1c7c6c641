import { type ChildProcess, fork } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Webhook } from 'standardwebhooks'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import type { Database } from '../../src/platform/db.ts'
import { createTestDatabase } from '../harness.ts'
import { type Node, onboard, openNode, sendRequest } from '../tenants/test-node.ts'

const EVENTS = 10_000
const BATCH = 250
// The delays of the retry schedule with jitter and some margin.
const STEPS_MS = [6_000, 36_000, 140_000, 700_000, 4_000_000, 16_000_000, 32_000_000, 48_000_000]

let testDatabase: Awaited<ReturnType<typeof createTestDatabase>>
let database: Database
let node: Node
const folder = mkdtempSync(join(tmpdir(), 'countersign-receiver-'))
const file = join(folder, 'received.ndjson')
let child: ChildProcess | undefined
let starts = 0

beforeAll(async () => {
  testDatabase = await createTestDatabase()
  database = testDatabase.open(20)
  node = await openNode(database, { timeoutMs: 5_000 })
})
afterAll(async () => {
  child?.kill('SIGKILL')
  await node?.close()
  await database?.close()
  await testDatabase?.drop()
  rmSync(folder, { recursive: true, force: true })
})

async function startReceiver(port: number): Promise<number> {
  starts += 1
  const started = fork(join(import.meta.dirname, 'receiver-process.ts'), [String(port), file, String(starts * 7919)], {
    execArgv: ['--disable-warning=ExperimentalWarning'],
  })
  child = started
  const message = await new Promise<{ port: number }>((resolve, failed) => {
    started.once('message', (message) => resolve(message as { port: number }))
    started.once('exit', (code) => failed(new Error(`The receiver ended with ${code} before it listened.`)))
  })
  return message.port
}

async function killReceiver() {
  const receiver = child!
  const exited = new Promise((resolve) => receiver.once('exit', resolve))
  receiver.kill('SIGKILL')
  await exited
}

test('every committed event reaches a receiver that fails at random and is killed, and no rolled-back one does', async () => {
  const { tenant_id, api_key } = await onboard(node)
  await node.tick()
  const port = await startReceiver(0)
  const createResponse = await sendRequest(
    node,
    'POST /api/webhooks',
    { url: `http://127.0.0.1:${port}/hook`, events: ['run.completed'] },
    { key: api_key },
  )
  const { id, signingSecret } = createResponse.body
  const emit = (n: number, commit: boolean) =>
    database.db
      .transaction()
      .execute(async (tx) => {
        const data = { n, committed: commit }
        await node.outbox.emit(tx, { tenantId: tenant_id, type: 'run.completed', data, at: node.clock.now() })
        if (!commit) throw new Error('rolled back')
      })
      .catch((error) => {
        if (commit) throw error
      })

  for (let sent = 0; sent < EVENTS; sent += BATCH) {
    // Many transactions at once, for every tenth event also one that is rolled back, while deliveries are running.
    const batch = Array.from({ length: BATCH }, (_, n) => sent + n)
    await Promise.all(batch.flatMap((n) => [emit(n, true), ...(n % 10 === 0 ? [emit(n, false)] : [])]))
    if (sent % 2_500 === 0) {
      await node.sequencer.runOnce()
      await node.deliveryWorker.deliverDue()
      await killReceiver()
      await startReceiver(port)
    }
    await node.tick()
    node.clock.advance(1_000)
  }
  for (const step of STEPS_MS) {
    await node.tick()
    node.clock.advance(step)
  }
  await node.tick()

  const { rows: states } = await database.pool.query(
    'select state, count(*)::int as count from webhook_deliveries where subscription_id = $1 group by state',
    [id],
  )
  expect(states).toEqual([{ state: 'delivered', count: EVENTS }])

  const received = readFileSync(file, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { headers: Record<string, string>; body: string })
  const webhook = new Webhook(signingSecret)
  const idByNumber = new Map<number, string>()
  const seqByNumber = new Map<number, number>()
  vi.useFakeTimers({ toFake: ['Date'] })
  for (const { headers, body } of received) {
    vi.setSystemTime(Number(headers['webhook-timestamp']) * 1000)
    const { seq, data } = webhook.verify(body, headers) as { seq: number; data: { n: number; committed: boolean } }
    expect(data.committed).toBe(true)
    expect(idByNumber.get(data.n) ?? headers['webhook-id']).toBe(headers['webhook-id'])
    expect(seqByNumber.get(data.n) ?? seq).toBe(seq)
    idByNumber.set(data.n, headers['webhook-id']!)
    seqByNumber.set(data.n, seq)
  }
  vi.useRealTimers()

  expect(idByNumber.size).toBe(EVENTS)
  expect(new Set(idByNumber.values()).size).toBe(EVENTS)
  // Sequence numbers have neither gaps nor duplicates, so a receiver can tell that nothing is missing.
  expect([...seqByNumber.values()].sort((a, b) => a - b)).toEqual(Array.from({ length: EVENTS }, (_, n) => n + 1))
  expect(received.length).toBeGreaterThan(EVENTS)
  console.log(`${EVENTS} events, ${received.length} received, ${starts} starts of the receiver`)
})
