import { afterAll, beforeAll, expect, test } from 'vitest'
import { readChallenge, signPayment, startService, type TestService } from '../harness.ts'

/** Two cells, each a whole service on a database and a chain of its own. */
let east: TestService
let west: TestService
beforeAll(async () => {
  ;[east, west] = await Promise.all([
    startService({ env: { CELL: 'east1' } }),
    startService({ env: { CELL: 'west1' } }),
  ])
})
afterAll(() => Promise.all([east.close(), west.close()]))

const task = { task: 'Tell a joke about maps.', agent_id: 'comedian-v1' }

test('a key names its cell, works there, and is refused elsewhere with the name of its cell', async () => {
  const { body } = await east.post('/api/onboard', { org_name: 'Acme', email: 'a@example.com' })
  expect(body.api_key).toMatch(/^csk_east1_/)
  const headers = { 'x-api-key': body.api_key }
  const me = await east.get('/api/me', headers)
  expect(me.status).toBe(200)
  expect(body.key_prefix).toBe(body.api_key.slice(0, 'csk_east1_'.length + 8))

  const elsewhere = await west.get('/api/me', headers)
  expect(elsewhere.status).toBe(401)
  expect(elsewhere.body.message).toBe(
    "This API key is of the cell 'east1', and this service is not: send the request there.",
  )
  const renamed = await west.get('/api/me', { 'x-api-key': body.api_key.replace('east1', 'west1') })
  expect(renamed.status).toBe(401)
})

test('a payment signed for one cell pays in no other, and its quote names the cell', async () => {
  const payer = await east.payer(1)
  const offer = readChallenge((await east.post('/api/run', task)).headers)
  expect(JSON.stringify(offer)).toMatch(/"q1-east1\./)
  const headers = await signPayment(payer, offer)

  const elsewhere = await west.post('/api/run', task, headers)
  expect(elsewhere.status).toBe(402)
  expect(elsewhere.headers.get('payment-response')).toBeNull()

  const paid = await east.post('/api/run', task, headers)
  expect(paid.status, paid.text).toBe(200)
  expect(await east.balance(payer.address)).toBe(990_000n)
})

test('a service that gets a name later goes on taking the keys it made before', async () => {
  const before = await startService()
  try {
    const { headers } = await before.onboard()
    const databaseUrl = before.service.config.DATABASE_URL!
    const dataDir = before.service.dataDir
    const after = await startService({ databaseUrl, env: { CELL: 'east1', COUNTERSIGN_DATA_DIR: dataDir } })
    expect((await after.get('/api/me', headers)).status).toBe(200)
    expect((await after.onboard()).apiKey).toMatch(/^csk_east1_/)
    await after.close()
  } finally {
    await before.close()
  }
})
