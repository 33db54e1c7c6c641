import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { attestationSigningBytes, evidenceHash } from '@countersign/proof'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { verify } from '../../../cli/src/commands/verify.ts'
import { createOutbox } from '../../src/platform/outbox.ts'
import { createReceiptsFixture, createTestDatabase, ORIGIN, testKeys } from './helpers.ts'

const folder = mkdtempSync(join(tmpdir(), 'countersign-cli-'))
const path = (name: string) => join(folder, name)
const save = (name: string, value: unknown) => {
  writeFileSync(path(name), typeof value === 'string' ? value : JSON.stringify(value))
  return path(name)
}

let jwks: string
let receipt: Record<string, unknown>
let refund: Record<string, unknown>
let audit: { text: string; answer: Awaited<ReturnType<ReturnType<typeof createReceiptsFixture>['audit']['list']>> }

// What is remembered of a log stays in this folder.
process.env.COUNTERSIGN_DATA_DIR = folder

// All files are written first; the database is dropped before the first verification.
beforeAll(async () => {
  const testDatabase = await createTestDatabase()
  const fixture = createReceiptsFixture(testDatabase.database)
  await testDatabase.database.pool.query(
    `insert into tenants (id, org_name, email, created_at, updated_at) values ('ten_a', 'a', 'a@example.com', now(), now())`,
  )
  const [first] = await fixture.issue([fixture.draft({ run_id: 'run_cli' })])
  const [second] = await fixture.issue([
    fixture.draft({ run_id: 'run_cli', kind: 'refund', prev_hash: first!.row.hash }),
  ])
  for (let i = 0; i < 4; i += 1)
    await createOutbox(fixture.ids).audit(fixture.db, {
      tenantId: 'ten_a',
      type: 't',
      actor: 'a',
      subject: `s${i}`,
      at: fixture.clock.now(),
    })
  await fixture.sequencer.runOnce()
  jwks = save('jwks.json', await fixture.receipts.jwks())
  receipt = (await fixture.receipts.get(first!.row.id)) as never
  refund = (await fixture.receipts.get(second!.row.id)) as never
  let text = ''
  for await (const lines of fixture.audit.exportLines('ten_a', 0)) text += lines
  audit = { text, answer: await fixture.audit.list('ten_a', {}, { limit: 10 }) }
  await testDatabase.drop()
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const run = (...args: string[]) => runWith({}, ...args)

const runWith = (env: Record<string, string>, ...args: string[]): Promise<{ code: number; out: string; err: string }> =>
  new Promise((finish) =>
    execFile(
      process.execPath,
      [resolve('cli/bin/countersign.mjs'), ...args],
      { env: { ...process.env, ...env } },
      (error, out, err) => finish({ code: error ? Number(error.code) : 0, out, err }),
    ),
  )

test('the command exits with 0 when every check passes, 1 when one fails, 2 when it could not run', async () => {
  const validFile = save('good.json', receipt)
  const changedFile = save('bad.json', { ...receipt, issued_at: '2020-01-01T00:00:00.000Z' })
  const [valid, changed, missing, unpinned] = await Promise.all([
    run('verify', validFile, '--jwks', jwks, '--require-log', '--origin', ORIGIN),
    run('verify', changedFile, '--jwks', jwks),
    run('verify', path('none.json'), '--jwks', jwks),
    run('verify', validFile),
  ])
  expect(valid).toMatchObject({ code: 0, out: expect.stringMatching(/ok +inclusion[\s\S]*Result: valid/) })
  expect(changed).toMatchObject({ code: 1, out: expect.stringMatching(/FAILED +signature[\s\S]*Result: NOT VALID/) })
  expect(missing).toMatchObject({ code: 2, err: expect.stringContaining('There is no file') })
  expect(unpinned).toMatchObject({ code: 2, err: expect.stringContaining('--jwks') })
})

test('an unreadable input is reported in one sentence', async () => {
  await expect(verify(folder, { jwks })).rejects.toThrow(`${folder} is a folder, not a file.`)
  await expect(verify(save('receipt-for-folder.json', receipt), { jwks: folder })).rejects.toThrow('is a folder')
  const page = createServer((_request, response) => response.end('<p>Not JSON.</p>')).listen(0, '127.0.0.1')
  await new Promise((listening) => page.once('listening', listening))
  const url = `http://127.0.0.1:${(page.address() as AddressInfo).port}`
  await expect(verify('rcpt_somewhere', { url, jwks })).rejects.toThrow('did not respond with valid JSON')
  page.close()
})

test('a ledger check that could not run exits with 2, not 1', async () => {
  const nowhere = { DATABASE_URL: 'postgres://127.0.0.1:1/none' }
  const [unknown, unreachable] = await Promise.all([
    run('ledger', 'check', '--nonsense'),
    runWith(nowhere, 'ledger', 'check', '--json', '--no-chain', '--allow-surplus'),
  ])
  expect(unknown).toMatchObject({ code: 2, err: expect.stringContaining('--nonsense') })
  expect(unreachable).toMatchObject({ code: 2, err: expect.stringContaining('ECONNREFUSED') })
})

test('a receipt verifies alone, inside its response, after its predecessor, and as a chain', async () => {
  const validFile = save('receipt.json', receipt)
  expect(await verify(validFile, { jwks })).toMatchObject({ ok: true })
  expect(
    await verify(save('answer.json', { status: 'completed', receipt: { ...receipt, log: null } }), { jwks }),
  ).toMatchObject({ ok: true })
  expect(await verify(save('refund.json', refund), { jwks, previous: validFile })).toMatchObject({ ok: true })
  expect(await verify(validFile, { jwks, previous: save('refund.json', refund) })).toMatchObject({ ok: false })
  expect(await verify(save('chain.json', [receipt, refund]), { jwks })).toMatchObject({ ok: true })
  expect(await verify(save('chain.json', [refund]), { jwks })).toMatchObject({ ok: false })
})

test('a receipt fails without a required log entry, in another log, and with other keys', async () => {
  const unplaced = save('unplaced.json', { ...receipt, log: null })
  expect(await verify(unplaced, { jwks, requireLog: true })).toMatchObject({ ok: false })
  const validFile = save('receipt.json', receipt)
  expect(await verify(validFile, { jwks, origin: 'another.example/log' })).toMatchObject({ ok: false })
  expect(await verify(validFile, { jwks: save('empty.json', { keys: [] }) })).toMatchObject({ ok: false })
  expect(await verify(validFile, { jwks, witness: ['witness.example+00000000+BAAA'] })).toMatchObject({ ok: false })
})

test('JSON with a duplicate key is refused: two parsers could read different documents under one signature', async () => {
  const text = JSON.stringify(receipt).replace('{', '{"kind":"refund",')
  await expect(verify(save('twice.json', text), { jwks })).rejects.toThrow('not a receipt')
})

test('an attestation verifies only with the key of its mode', async () => {
  const sources = [{ id: 'pool', url: null, published_at: null, block: 7, sha256: null }]
  const attest = (mode: 'live' | 'preview') => {
    const evidence = {
      hash: evidenceHash(sources),
      mode,
      valid_until: '2026-11-16T15:05:00.000Z',
      seq: 1,
      asset: 'a',
      prev_hash: null,
      sources,
    }
    const content = {
      schema: 'basis-attestation/v1',
      symbol: 'AAPLx',
      chain: 'base',
      as_of: '2026-11-16T15:00:00.000Z',
      snapshot: { wrapper_price: 1.5, reference_price: 1.4, basis_bps: 714.29, underlying_state: 'open' },
      backing: { issuer: 'i', ratio: 1, report_url: null, report_as_of: null, restated_by: 'countersign', evidence },
    }
    const signer = testKeys().signer(mode === 'live' ? 'basis' : 'basis-preview')
    const value = signer.sign(attestationSigningBytes(content)).toString('base64')
    return { ...content, preview: mode === 'preview', signature: { alg: 'ed25519', key_id: signer.keyId, value } }
  }
  const preview = save('preview.json', attest('preview'))
  const live = save('live.json', { attestation: attest('live') })
  expect(await verify(preview, { jwks })).toMatchObject({ ok: true })
  expect(await verify(preview, { jwks, live: true })).toMatchObject({ ok: false })
  expect(await verify(live, { jwks, live: true })).toMatchObject({ ok: true })
  expect(await verify(save('posing.json', { ...attest('preview'), preview: false }), { jwks })).toMatchObject({
    ok: false,
  })
})

test('an audit export verifies alone and against the head in the public log', async () => {
  const file = save('audit.ndjson', audit.text)
  const head = save('audit-answer.json', audit.answer)
  expect(await verify(file, {})).toMatchObject({ ok: true })
  expect(await verify(save('audit.json', audit.text), {})).toMatchObject({ ok: true })
  expect(await verify(file, { head, jwks, requireLog: true })).toMatchObject({ ok: true })
  const lines = audit.text.trimEnd().split('\n')
  const truncated = save('cut.ndjson', lines.slice(0, 3).join('\n'))
  expect(await verify(truncated, {})).toMatchObject({ ok: true })
  expect(await verify(truncated, { head, jwks })).toMatchObject({ ok: false })
  const remainder = save('rest.ndjson', lines.slice(2).join('\n'))
  expect(await verify(remainder, {})).toMatchObject({ ok: false })
  expect(await verify(remainder, { after: save('second.json', lines[1]!) })).toMatchObject({ ok: true })
  const changed = save('changed.ndjson', audit.text.replace('"subject":"s2"', '"subject":"s9"'))
  expect(await verify(changed, {})).toMatchObject({ ok: false })
})

test('a witness that is asked for must have cosigned the head of an audit export too', async () => {
  const file = save('audit.ndjson', audit.text)
  const witness = ['witness.example+00000000+BAAA']
  const { receipt: headReceipt } = audit.answer.checkpoint as { receipt: Record<string, unknown> }
  const unlogged = save('unlogged-head.json', { ...headReceipt, log: null })
  expect(await verify(file, { head: unlogged, jwks })).toMatchObject({ ok: true })
  expect(await verify(file, { head: unlogged, jwks, witness })).toMatchObject({ ok: false })
})

test('a receipt is fetched by its id and verified locally, whatever the service claims', async () => {
  const answers = new Map<string, unknown>([[`/api/receipts/${receipt.receipt_id}`, receipt]])
  const server = createServer((request, response) => {
    const answer = answers.get(request.url!)
    response.writeHead(answer ? 200 : 404).end(JSON.stringify(answer ?? {}))
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  expect(await verify(String(receipt.receipt_id), { url, jwks })).toMatchObject({ ok: true })
  answers.set(`/api/receipts/${receipt.receipt_id}`, { ...receipt, charged: true })
  expect(await verify(String(receipt.receipt_id), { url, jwks })).toMatchObject({ ok: false })
  await expect(verify('rcpt_unknown', { url, jwks })).rejects.toThrow('404')
  server.close()
})
