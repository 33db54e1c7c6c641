import {
  decodeEntryBundle,
  hashLeaf,
  parseCheckpoint,
  rootOfLeafHashes,
  tileInTree,
  tilePath,
  verifyAuditExport,
  verifyCheckpoint,
  verifyConsistency,
  verifyInclusion,
  verifyReceipt,
} from '@countersign/proof'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startService, type TestService } from '../harness.ts'

let service: TestService
let tenant: Awaited<ReturnType<TestService['onboard']>>
let paidRun: { receipt: Record<string, unknown>; run_id: string; receipt_url: string }
const CANARY = 'canary-7f3a write a haiku about receipts'

beforeAll(async () => {
  service = await startService()
  tenant = await service.onboard('Canary Org 7f3a')
  const payer = await service.payer()
  const response = await payer.fetch(`${service.url}/api/run`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...tenant.headers },
    body: JSON.stringify({ task: CANARY, agent_id: 'comedian-v1' }),
  })
  expect(response.status).toBe(200)
  paidRun = (await response.json()) as typeof paidRun
})
afterAll(() => service?.close())

const getPlacedReceipt = async () => {
  await expect.poll(async () => (await service.get(paidRun.receipt_url)).body.log).not.toBeNull()
  return (await service.get(paidRun.receipt_url)).body
}

test('the receipt in the response equals the stored one, and soon has an inclusion proof', async () => {
  const jwks = (await service.get('/.well-known/jwks.json')).body
  expect(paidRun.receipt.log).toBeNull()
  expect(verifyReceipt(paidRun.receipt, { jwks })).toMatchObject({ ok: true })
  const receipt = await getPlacedReceipt()
  expect({ ...receipt, log: null }).toEqual(paidRun.receipt)
  expect(verifyReceipt(receipt, { jwks, log: { required: true } })).toMatchObject({ ok: true })
  const { body: proof } = await service.get(`${paidRun.receipt_url}/proof`)
  expect(proof).toMatchObject({ receipt_id: receipt.receipt_id, log: { index: receipt.log.index } })
})

test('the service explains every check, including the payment on the chain', async () => {
  const { status, body } = await service.post('/api/receipts/verify', { receipt: await getPlacedReceipt() })
  expect(status).toBe(200)
  expect(body).toMatchObject({ ok: true, later: [] })
  const outcome = Object.fromEntries(body.checks.map(({ name, ok }: { name: string; ok: unknown }) => [name, ok]))
  expect(outcome).toMatchObject({ signature: true, inclusion: true, checkpoint: true, record: true, settlement: true })
  const changedVerdict = await service.post('/api/receipts/verify', { receipt: { ...paidRun.receipt, charged: false } })
  expect(changedVerdict.body.ok).toBe(false)
  expect((await service.post('/api/receipts/verify', {})).status).toBe(400)
  expect((await service.post('/api/receipts/verify', { receipt_id: 'rcpt_none' })).status).toBe(404)
})

test('a mirror that reads the log over HTTP computes the signed root', async () => {
  await getPlacedReceipt()
  const { text: checkpoint, headers } = await service.get('/api/log/checkpoint')
  expect(headers.get('content-type')).toContain('text/plain')
  const jwks = (await service.get('/.well-known/jwks.json')).body
  const keys = jwks.keys.filter(({ purpose }: { purpose: string }) => purpose === 'log')
  const { origin, size, root } = parseCheckpoint(checkpoint)!
  expect(verifyCheckpoint(checkpoint, { origin, keys })).toMatchObject({ ok: true })
  const { width } = tileInTree(0, 0, size)!
  const tileResponse = await fetch(`${service.url}/api/log/${tilePath({ level: 'entries', index: 0, width })}`)
  expect(tileResponse.headers.get('content-type')).toBe('application/octet-stream')
  const entries = decodeEntryBundle(new Uint8Array(await tileResponse.arrayBuffer()), width)
  const hashes = entries.map(hashLeaf)
  expect(rootOfLeafHashes(hashes)).toEqual(root)
  const tile = await fetch(`${service.url}/api/log/${tilePath({ level: 0, index: 0, width })}`)
  expect(Buffer.from(await tile.arrayBuffer())).toEqual(Buffer.concat(hashes))
  const { body } = await service.get(`/api/log/consistency?from=1`)
  const { size: newSize, root: newRoot } = parseCheckpoint(body.checkpoint)!
  const claim = { oldSize: 1, oldRoot: hashes[0]!, newSize, newRoot, proof: body.proof }
  expect(verifyConsistency(claim)).toBe(true)
  for (const path of ['tile/0/5', 'tile/0/000.p/999', 'tile/9/000'])
    expect((await service.get(`/api/log/${path}`)).status).toBe(404)
  expect((await service.get('/api/log/consistency?from=5&to=999999')).status).toBe(400)
  expect((await service.post('/api/log/witness', { checkpoint })).status).toBe(503)
})

test('the list is public, filtered and paged, and refuses a limit out of range', async () => {
  const { body } = await service.get(`/api/receipts?agent_id=comedian-v1&kind=run&limit=1&run_id=${paidRun.run_id}`)
  expect(body).toMatchObject({
    receipts: [{ receipt_id: paidRun.receipt.receipt_id }],
    has_more: false,
    next_cursor: null,
  })
  for (const query of ['limit=0', 'limit=101', 'kind=nothing', 'since=yesterday', 'cursor=rcpt_none', 'unknown=1'])
    expect((await service.get(`/api/receipts?${query}`)).status, query).toBe(400)
  expect((await service.get('/api/receipts/rcpt_none')).status).toBe(404)
})

test('no public response contains the task, the output or the tenant', async () => {
  const receipt = await getPlacedReceipt()
  const size = parseCheckpoint((await service.get('/api/log/checkpoint')).text)!.size
  const { width } = tileInTree(0, 0, size)!
  for (const path of [
    '/api/receipts?limit=100',
    '/api/receipts?kind=audit_head&limit=100',
    paidRun.receipt_url,
    `${paidRun.receipt_url}/proof`,
    `/api/log/${tilePath({ level: 'entries', index: 0, width })}`,
  ]) {
    const { status, text } = await service.get(path)
    expect(status).toBe(200)
    expect(text).not.toMatch(/canary-7f3a|Canary Org|haiku about/)
    expect(text).not.toContain(tenant.tenantId)
  }
  expect(receipt.input_hash).toMatch(/^sha256:/)
})

test('the audit trail is private to the tenant, verifies as exported, and its head is in the public log', async () => {
  expect((await service.get('/api/audit')).status).toBe(401)
  const read = async () => (await service.get('/api/audit?limit=100', tenant.headers)).body
  await expect.poll(async () => (await read()).checkpoint?.receipt?.log ?? null).not.toBeNull()
  const { events, checkpoint } = await read()
  expect(events.map(({ subject }: { subject: string }) => subject)).toContain(paidRun.run_id)
  const exportResponse = await fetch(`${service.url}/api/audit?format=ndjson`, { headers: tenant.headers })
  expect(exportResponse.headers.get('content-type')).toContain('application/x-ndjson')
  const text = await exportResponse.text()
  expect(verifyAuditExport(text, { head: checkpoint.receipt.audit })).toMatchObject({ ok: true })
  const jwks = (await service.get('/.well-known/jwks.json')).body
  expect(verifyReceipt(checkpoint.receipt, { jwks, log: { required: true } })).toMatchObject({ ok: true })
  const stranger = await service.onboard()
  const strangerAudit = (await service.get('/api/audit?limit=100', stranger.headers)).body
  expect(JSON.stringify(strangerAudit)).not.toContain(paidRun.run_id)
  for (const query of ['format=ndjson&limit=5', 'format=json&after_seq=1', 'limit=101', `cursor=${events[0].id}x`])
    expect((await service.get(`/api/audit?${query}`, tenant.headers)).status, query).toBe(400)
  expect((await service.get(`/api/audit?cursor=${events[0].id}`, stranger.headers)).status).toBe(400)
})

test('the DID document lists the keys of the key set under the address of the service', async () => {
  const { body: did } = await service.get('/.well-known/did.json')
  const { body: jwks } = await service.get('/.well-known/jwks.json')
  expect(did.id).toBe(`did:web:${new URL(service.url).host.replace(':', '%3A')}`)
  expect(did.verificationMethod.map(({ id }: { id: string }) => id.split('#')[1])).toEqual(
    jwks.keys.map(({ kid }: { kid: string }) => kid),
  )
})

test('an inclusion proof does not verify for another entry', async () => {
  const receipt = await getPlacedReceipt()
  const { size, root } = parseCheckpoint(receipt.log.checkpoint)!
  const claim = { index: receipt.log.index, size, root, proof: receipt.log.inclusion_proof }
  expect(verifyInclusion({ ...claim, leafHash: hashLeaf(new TextEncoder().encode('another')) })).toBe(false)
})

test('a page of any origin may fetch the evidence endpoints and no others', async () => {
  const allowedOrigin = async (path: string) =>
    (await service.get(path, tenant.headers)).headers.get('access-control-allow-origin')
  const evidence = [
    '/.well-known/jwks.json',
    '/.well-known/did.json',
    '/api/log/checkpoint',
    '/api/log/consistency?from=0',
  ]
  for (const path of [
    ...evidence,
    paidRun.receipt_url,
    `${paidRun.receipt_url}/proof`,
    '/api/receipts',
    '/api/log/tile/0/000',
  ])
    expect.soft(await allowedOrigin(path), path).toBe('*')
  for (const path of ['/api/me', '/api/runs', '/api/audit', '/api/session', '/api/pricing'])
    expect.soft(await allowedOrigin(path), path).toBeNull()
})
