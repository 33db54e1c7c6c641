import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  type CheckpointStore,
  consistencyProof,
  hashLeaf,
  inclusionProof,
  receiptLeaf,
  toBase64,
  utf8,
  verifyLogEvidence,
} from '@countersign/proof'
import { createClient } from '@countersign/sdk'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { verify } from '../../../cli/src/commands/verify.ts'
import { fillerHashes, jwks, LOG_ORIGIN, makeCheckpoint, makeReceipt } from '../../../proof/test/fixtures.ts'

/** A service whose log shows what the test says: the readers of its receipts remember what it showed before. */
const receipt = makeReceipt({ receipt_id: 'rcpt_remembered' })
const history = (fork = false) => {
  const leaves = fillerHashes(12)
  leaves[1] = hashLeaf(receiptLeaf(receipt))
  if (fork) leaves[3] = hashLeaf(utf8('another entry'))
  return leaves
}
const folder = mkdtempSync(join(tmpdir(), 'countersign-log-memory-'))
let server: Server
let url: string
let shown: { leaves: Uint8Array[]; size: number }
let isDown = false
let states = 0

beforeAll(async () => {
  server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url!, 'http://127.0.0.1')
    const answer = (status: number, body: unknown) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    const leaves = shown.leaves.slice(0, shown.size)
    if (pathname === '/.well-known/jwks.json') return answer(200, jwks)
    if (pathname === '/api/receipts/rcpt_remembered') {
      const proof = inclusionProof(leaves, 1).map(toBase64)
      const log = { origin: LOG_ORIGIN, index: 1, inclusion_proof: proof, checkpoint: makeCheckpoint(leaves) }
      return answer(200, { ...receipt, log })
    }
    const [from, to] = [Number(searchParams.get('from')), Number(searchParams.get('to'))]
    if (isDown) return answer(503, { error: 'error', code: 'unavailable', message: 'Later.' })
    if (to > shown.size) return answer(400, { error: 'error', code: 'invalid_request', message: 'No such size.' })
    return answer(200, { proof: consistencyProof(leaves.slice(0, to), from).map(toBase64) })
  })
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterAll(() => {
  server.close()
  rmSync(folder, { recursive: true, force: true })
})
beforeEach(() => {
  shown = { leaves: history(), size: 5 }
  isDown = false
})

type Reader = () => Promise<{ ok: boolean | 'skipped' | undefined; reason: string | undefined; all: boolean | null }>

const readers: Record<string, () => { read: Reader; folder?: string }> = {
  'countersign verify'() {
    const state = join(folder, `state-${states++}`)
    const read: Reader = async () => {
      const { ok, checks } = await verify('rcpt_remembered', { url, state })
      const check = checks.find(({ name }) => name === 'log_memory')
      return { ok: check?.ok, reason: check?.reason, all: ok }
    }
    return { read, folder: state }
  },
  'the SDK'() {
    const notes = new Map<string, string>()
    // A store of one's own survives the client.
    const checkpoints: CheckpointStore = {
      read: async (log) => notes.get(log),
      write: async (log, note) => void notes.set(log, note),
    }
    const read: Reader = async () => {
      const { checks, verified } = await createClient({ baseUrl: url, checkpoints }).verifyReceipt('rcpt_remembered')
      const check = checks.find(({ name }) => name === 'log_memory')
      return { ok: check?.ok, reason: check?.reason, all: verified }
    }
    return { read }
  },
}

describe.each(Object.keys(readers))('%s', (name) => {
  test('remembers the first checkpoint and follows the log as it grows', async () => {
    const { read } = readers[name]!()
    for (const size of [5, 5, 8, 12]) {
      shown.size = size
      expect(await read()).toMatchObject({ ok: true, all: true })
    }
  })

  test('objects to a rollback', async () => {
    const { read } = readers[name]!()
    shown.size = 9
    await read()
    shown.size = 6
    expect(await read()).toMatchObject({ ok: false, all: false, reason: expect.stringContaining('was rolled back') })
  })

  test('objects to a fork, at the same size and at a larger one', async () => {
    for (const size of [5, 9]) {
      const { read } = readers[name]!()
      await read()
      shown = { leaves: history(true), size }
      expect(await read()).toMatchObject({ ok: false, all: false })
      shown = { leaves: history(), size: 5 }
    }
  })

  test('does not take for growth what it could not compare', async () => {
    const { read } = readers[name]!()
    await read()
    isDown = true
    shown = { leaves: history(true), size: 9 }
    expect(await read()).toMatchObject({ ok: 'skipped', all: true })
    isDown = false
    expect(await read()).toMatchObject({ ok: false })
  })
})

describe('countersign verify', () => {
  test('writes evidence that verifies, and nothing with --no-memory', async () => {
    const reader = readers['countersign verify']!()
    await reader.read()
    shown = { leaves: history(true), size: 5 }
    await reader.read()
    const file = readdirSync(reader.folder!).find((each) => each.startsWith('evidence-fork-'))!
    const evidence = JSON.parse(readFileSync(join(reader.folder!, file), 'utf8'))
    expect(verifyLogEvidence(evidence, { keys: jwks.keys }).ok).toBe(true)

    const state = join(folder, 'none')
    const { checks } = await verify('rcpt_remembered', { url, state, memory: false })
    expect([checks.some(({ name }) => name === 'log_memory'), readdirSync(folder).includes('none')]).toEqual([
      false,
      false,
    ])
  })
})
