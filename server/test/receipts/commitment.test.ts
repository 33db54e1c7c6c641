import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { verifyOpening, verifyReceipt } from '@countersign/proof'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { verify } from '../../../cli/src/commands/verify.ts'
import { hashJson, sha256 } from '../../src/platform/canonical.ts'
import { failingLane, startWorld, type World } from '../money/world.ts'

let world: World
let jwks: { keys: [] }

beforeAll(async () => {
  world = await startWorld()
  jwks = (await world.get('/.well-known/jwks.json')).body
}, 120_000)

afterAll(() => world?.close())

const TASK = 'Write one joke about umbrellas.'
const runBody = { task: TASK, agent_id: 'comedian-v1' }

/** What anybody can read: the receipt, the list and the entry of the log. */
async function readPublic(receiptId: string, runId: string): Promise<string> {
  const receipt = await world.get(`/api/receipts/${receiptId}`)
  const list = await world.get(`/api/receipts?run_id=${runId}`)
  const proof = await world.get(`/api/receipts/${receiptId}/proof`)
  return receipt.text + list.text + proof.text
}

// biome-ignore lint/suspicious/noExplicitAny: tests assert on the response
async function expectCommitment(body: any, salted: string[], opening: Record<string, unknown>) {
  const { receipt, evidence } = body
  expect(receipt).toMatchObject({ schema: 'run-receipt/v1', commitment: { alg: 'sha256-salted', salted } })
  expect(evidence.salt).toMatch(/^[A-Za-z0-9_-]{22}$/)
  const { request_hash, input_hash, output_hash } = receipt
  const { counters, ...hashes } = evidence
  expect(hashes).toEqual({ request_hash, input_hash, output_hash, salt: evidence.salt })
  expect(counters === undefined).toBe(receipt.counters === undefined)
  expect(verifyReceipt(receipt, { jwks }).ok).toBe(true)
  expect(verifyOpening(receipt, { salt: evidence.salt, ...opening })).toMatchObject({ ok: true })
  expect(verifyOpening(receipt, opening).ok).toBe(false)

  const publicText = await readPublic(receipt.receipt_id, receipt.run_id)
  const guesses = [sha256(TASK), hashJson({ method: 'POST', path: '/api/run', body: runBody })]
  for (const secret of [evidence.salt, body.output && sha256(body.output), ...guesses].filter(Boolean))
    expect(publicText).not.toContain(secret)
}

describe('a receipt commits to what it hides with a salt that only the answer has', () => {
  test('a run paid by x402, and again when its answer is read or replayed', async () => {
    const tenant = await world.onboard()
    const { payment, answer } = await world.pay(await world.payer(1), '/api/run', runBody, tenant.headers)
    expect(answer.status).toBe(200)
    const request = { method: 'POST', path: '/api/run', body: runBody }
    await expectCommitment(answer.body, ['request_hash', 'input_hash', 'output_hash'], {
      request,
      input: TASK,
      output: answer.body.output,
    })
    expect((await world.post('/api/run', runBody, { ...tenant.headers, ...payment })).text).toBe(answer.text)
    const stored = await world.get(`/api/runs/${answer.body.run_id}`, tenant.headers)
    expect(stored.body.answer.body.evidence).toEqual(answer.body.evidence)
    const { body: list } = await world.get('/api/loops', tenant.headers)
    expect(list.loops[0].output_hash).toBe(answer.body.receipt.output_hash)
  })

  test('a run paid from a wallet, whose public receipt does not name the wallet', async () => {
    const tenant = await world.tenantWithWallet(1)
    const body = { ...runBody, payment: { wallet_id: tenant.walletId } }
    const answer = await world.post('/api/run', body, tenant.headers)
    expect(answer.status).toBe(200)
    await expectCommitment(answer.body, ['request_hash', 'input_hash', 'output_hash'], {
      request: { method: 'POST', path: '/api/run', body },
      input: TASK,
      output: answer.body.output,
    })
    const { receipt } = answer.body
    expect(JSON.stringify(receipt)).not.toContain('wal_')
    expect(receipt.settlement).toMatchObject({ method: 'wallet', payer: 'wallet', asserted_by: 'ledger' })
    const { body: found } = await world.get(`/api/receipts?payer=${tenant.walletId}`)
    expect(found.receipts).toEqual([])
  })

  test('a loop', async () => {
    const body = { input: TASK }
    const { answer } = await world.pay(await world.payer(1), '/api/loop', body)
    expect(answer.status).toBe(200)
    await expectCommitment(answer.body, ['request_hash', 'input_hash', 'output_hash'], {
      request: { method: 'POST', path: '/api/loop', body },
      input: TASK,
      output: answer.body.output,
    })
    expect(answer.body.receipt.settlement.asserted_by).toBe('chain')
  })

  test('a run that failed, and one that failed on the money of a wallet', async () => {
    const tenant = await world.tenantWithWallet(1)
    world.setLane(failingLane)
    const walletBody = { ...runBody, payment: { wallet_id: tenant.walletId } }
    const { answer } = await world.pay(await world.payer(1), '/api/run', runBody)
    const fromWallet = await world.post('/api/run', walletBody, tenant.headers)
    world.setLane(undefined)
    for (const { status, body } of [answer, fromWallet]) {
      expect(status).toBe(500)
      await expectCommitment(body, ['request_hash', 'input_hash'], { input: TASK })
      expect(JSON.stringify(body.receipt)).not.toContain('wal_')
    }
  })

  test('a top-up', async () => {
    const tenant = await world.tenantWithWallet(0)
    const path = `/api/wallets/${tenant.walletId}/topup`
    const { answer } = await world.pay(tenant.payer, path, { amount_usdc: 0.5 }, tenant.headers)
    expect(answer.status).toBe(200)
    await expectCommitment(answer.body, ['request_hash'], {
      request: { method: 'POST', path, body: { amount_usdc: 0.5 } },
    })
    expect(JSON.stringify(answer.body.receipt)).not.toContain('wal_')
  })

  test('the close of a pre-authorisation that names a request, also when it is read later', async () => {
    const tenant = await world.onboard()
    const requestHash = sha256('a request that can be guessed')
    const preauth = await world.post(
      '/api/pre-auth',
      { agent_id: 'buyer', merchant: { id: 'shop' }, amount_usdc: 0.01, request_hash: requestHash },
      tenant.headers,
    )
    expect(preauth.status).toBe(201)
    const { preauth_id } = preauth.body
    const closed = await world.post('/api/pre-auth/close', { preauth_id, outcome: 'voided' }, tenant.headers)
    expect(closed.status).toBe(200)
    const { receipt, evidence } = closed.body
    expect(receipt.commitment).toEqual({ alg: 'sha256-salted', salted: ['request_hash'] })
    expect(verifyOpening(receipt, { salt: evidence.salt, request_hash: requestHash }).ok).toBe(true)
    expect(await readPublic(receipt.receipt_id, receipt.run_id)).not.toContain(requestHash)
    expect(await readPublic(receipt.receipt_id, receipt.run_id)).not.toContain(evidence.salt)
    const read = await world.get(`/api/pre-auth/${preauth_id}`, tenant.headers)
    expect(read.body.closed.evidence).toEqual(evidence)
  })

  test('a trade: its private receipt has the salt, which its attested hash covers', async () => {
    const tenant = await world.onboard()
    const order = {
      tenant_id: tenant.tenantId,
      symbol: 'BTC-USD',
      side: 'buy',
      quantity: 0.001,
      instrument_type: 'crypto',
    }
    const { body } = await world.post('/api/rh/run', order, tenant.headers)
    const { attestation, ...content } = body.receipt
    expect(content.salt).toMatch(/^[A-Za-z0-9_-]{22}$/)
    expect(hashJson({ ...content, prev_hash: attestation.prev_hash })).toBe(attestation.hash)
    const publicReceipt = await world.get(content.receipt_url)
    expect(publicReceipt.body.output_hash).toBe(attestation.hash)
    expect(publicReceipt.text).not.toContain(content.salt)
  })
})

test('countersign verify opens the receipt of a saved answer, and refuses one with another output', async () => {
  const { answer } = await world.pay(await world.payer(1), '/api/run', runBody)
  const folder = mkdtempSync(join(tmpdir(), 'countersign-opening-'))
  const save = (name: string, value: unknown) => {
    writeFileSync(join(folder, name), JSON.stringify(value))
    return join(folder, name)
  }
  const keySet = save('jwks.json', jwks)
  const opened = await verify(save('answer.json', answer.body), { jwks: keySet })
  expect(opened).toMatchObject({
    ok: true,
    checks: expect.arrayContaining([expect.objectContaining({ name: 'output' })]),
  })
  const changed = save('changed.json', { ...answer.body, output: 'Another joke.' })
  expect((await verify(changed, { jwks: keySet })).ok).toBe(false)
  const receipt = save('receipt.json', answer.body.receipt)
  const { salt } = answer.body.evidence
  const verifyWith = (opening: unknown) => verify(receipt, { jwks: keySet, opening: save('opening.json', opening) })
  expect((await verifyWith({ salt, input: TASK })).ok).toBe(true)
  expect((await verifyWith({ salt, input: `${TASK}?` })).ok).toBe(false)
  rmSync(folder, { recursive: true })
})

test('the same task gives other hashes each time', async () => {
  const tenant = await world.tenantWithWallet(1)
  const body = { ...runBody, payment: { wallet_id: tenant.walletId } }
  const answers = [
    await world.post('/api/run', body, tenant.headers),
    await world.post('/api/run', body, tenant.headers),
  ].map((answer) => answer.body)
  expect(answers[0].output).toBe(answers[1].output)
  const hashes = answers.flatMap(({ receipt }) => [receipt.request_hash, receipt.input_hash, receipt.output_hash])
  expect(new Set(hashes).size).toBe(6)
})
