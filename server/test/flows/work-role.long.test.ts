import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { createTestDatabase, readChallenge, signPayment, spawnService, spawnWorker } from '../harness.ts'

const stops: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop()
})

test('worker processes can do the background work, and if one dies another continues', async () => {
  const database = await createTestDatabase()
  stops.push(database.drop)
  const dataDir = mkdtempSync(join(tmpdir(), 'countersign-work-'))
  stops.push(async () => rmSync(dataDir, { recursive: true, force: true }))
  const env = { DATABASE_URL: database.url, COUNTERSIGN_DATA_DIR: dataDir }
  const service = await spawnService({ ...env, BACKGROUND_WORK: 'off' })
  stops.push(() => service.stop())
  const payer = await service.payer(1)
  const firstBody = { task: 'Say hello.', agent_id: 'comedian-v1' }
  const firstRun = await service.post(
    '/api/run',
    firstBody,
    await signPayment(payer, readChallenge((await service.post('/api/run', firstBody)).headers)),
  )
  expect(firstRun.status).toBe(200)
  await new Promise((resume) => setTimeout(resume, 1_500))
  expect((await service.get(firstRun.body.receipt_url)).body.log).toBeNull()

  const workers = [await spawnWorker(env), await spawnWorker(env)]
  for (const worker of workers) stops.push(() => worker.stop())
  await expect
    .poll(async () => (await service.get(firstRun.body.receipt_url)).body.log?.index, { timeout: 60_000 })
    .toBe(0)
  // One worker dies; the other continues.
  await workers[0]!.stop('SIGKILL')
  const secondBody = { task: 'Say goodbye.', agent_id: 'comedian-v1' }
  const secondRun = await service.post(
    '/api/run',
    secondBody,
    await signPayment(payer, readChallenge((await service.post('/api/run', secondBody)).headers)),
  )
  await expect
    .poll(async () => (await service.get(secondRun.body.receipt_url)).body.log?.index, { timeout: 60_000 })
    .toBe(1)
})
