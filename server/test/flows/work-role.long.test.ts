import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { createTestDatabase, readChallenge, signPayment, spawnService, spawnWorker } from '../harness.ts'

const stops: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop()
})

test('the background work can be left to processes of its own, and any of several does it', async () => {
  const database = await createTestDatabase()
  stops.push(database.drop)
  const dataDir = mkdtempSync(join(tmpdir(), 'countersign-work-'))
  stops.push(async () => rmSync(dataDir, { recursive: true, force: true }))
  const env = { DATABASE_URL: database.url, COUNTERSIGN_DATA_DIR: dataDir }
  const service = await spawnService({ ...env, BACKGROUND_WORK: 'off' })
  stops.push(() => service.stop())
  const payer = await service.payer(1)
  const body = { task: 'Say hello.', agent_id: 'comedian-v1' }
  const run = await service.post(
    '/api/run',
    body,
    await signPayment(payer, readChallenge((await service.post('/api/run', body)).headers)),
  )
  expect(run.status).toBe(200)
  await new Promise((resume) => setTimeout(resume, 1_500))
  expect((await service.get(run.body.receipt_url)).body.log).toBeNull()

  const workers = [await spawnWorker(env), await spawnWorker(env)]
  for (const worker of workers) stops.push(() => worker.stop())
  await expect.poll(async () => (await service.get(run.body.receipt_url)).body.log?.index, { timeout: 15_000 }).toBe(0)
  // One of them dies; the other goes on.
  await workers[0]!.stop('SIGKILL')
  const second = { task: 'Say goodbye.', agent_id: 'comedian-v1' }
  const again = await service.post(
    '/api/run',
    second,
    await signPayment(payer, readChallenge((await service.post('/api/run', second)).headers)),
  )
  await expect
    .poll(async () => (await service.get(again.body.receipt_url)).body.log?.index, { timeout: 20_000 })
    .toBe(1)
})
