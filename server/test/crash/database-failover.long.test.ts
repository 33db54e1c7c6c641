import { setTimeout as sleep } from 'node:timers/promises'
import { parseCheckpoint, verifyConsistency } from '@countersign/proof'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { checkBooks } from '../../src/modules/ledger/check-books.ts'
import { readChallenge, signPayment, startService, type TestService } from '../harness.ts'
import { type PostgresNode, poll, type ReplicatedPostgres, startReplicatedPostgres } from '../replicated-postgres.ts'

let cluster: ReplicatedPostgres
let primary: PostgresNode
let standby: PostgresNode
let service: TestService
beforeAll(async () => {
  cluster = await startReplicatedPostgres()
  ;[primary, standby] = cluster.nodes as [PostgresNode, PostgresNode]
  service = await startService({ databaseUrl: cluster.url() })
}, 120_000)
afterAll(async () => {
  await service?.close()
  await cluster?.close()
})

test('while the primary is killed and a standby takes over, callers get 200 or 503, and what was answered stays', async () => {
  const refused: string[] = []
  const acknowledged = new Map<string, string>()
  const payments: { body: object; headers: Record<string, string> }[] = []
  for (let number = 0; number < 30; number += 1) {
    const body = { task: `Tell joke number ${number}.`, agent_id: 'comedian-v1' }
    const payer = await service.payer(1)
    const challenge = readChallenge((await service.post('/api/run', body)).headers)
    payments.push({ body, headers: await signPayment(payer, challenge) })
  }
  const note = (answer: { status: number; text: string; headers: Headers }) => {
    if (answer.status === 200) return
    refused.push(answer.text)
    expect([answer.status, answer.headers.get('retry-after')], answer.text).toEqual([
      503,
      expect.stringMatching(/^\d+$/),
    ])
  }
  const send = async (index: number) => {
    const { body, headers } = payments[index]!
    const answer = await service.post('/api/run', body, headers)
    // The same payment may still be under way after its first caller was told to come back.
    if (answer.status === 409 && answer.body.retryable) return
    note(answer)
    if (answer.status === 200) acknowledged.set(answer.body.run_id, answer.body.receipt.receipt_id)
    return answer.status === 200
  }
  let isOver = false
  const reading = (async () => {
    while (!isOver) {
      note(await service.get('/api/lanes'))
      note(await service.get('/api/log/checkpoint'))
      await sleep(20)
    }
  })()
  await send(0)
  const readCheckpoint = async () => parseCheckpoint((await service.get('/api/log/checkpoint')).text)!
  await poll('the first receipt to be in the log', async () => (await readCheckpoint()).size > 0)
  const remembered = await readCheckpoint()
  const paying = (async () => {
    const open = new Set(payments.keys())
    while (open.size > 0) {
      const batch = [...open].slice(0, 4)
      const ended = await Promise.all(batch.map(async (index) => ((await send(index)) ? index : undefined)))
      for (const index of ended) if (index !== undefined) open.delete(index)
      await sleep(50)
    }
  })()
  await poll('some runs to be answered', async () => acknowledged.size >= 4)
  await primary.kill()
  await poll('a caller to be refused', async () => refused.length > 0)
  await standby.promote()
  await standby.configure('synchronous_standby_names', '')
  await paying
  isOver = true
  await reading

  expect(acknowledged.size).toBe(payments.length)
  for (const [runId, receiptId] of acknowledged) {
    const { rows } = await service.service.database.pool.query('select state from runs where id = $1', [runId])
    expect(rows).toEqual([{ state: 'completed' }])
    expect((await service.get(`/api/receipts/${receiptId}`)).status).toBe(200)
  }
  expect((await checkBooks(service.db)).flatMap(({ differences }) => differences)).toEqual([])
  await poll('all receipts to be in the log', async () => (await readCheckpoint()).size >= payments.length)
  const newest = await readCheckpoint()
  const { body } = await service.get(`/api/log/consistency?from=${remembered.size}&to=${newest.size}`)
  const claim = { oldSize: remembered.size, oldRoot: remembered.root, newSize: newest.size, newRoot: newest.root }
  expect(verifyConsistency({ ...claim, proof: body.proof })).toBe(true)
}, 180_000)
