import { attestationId, decodeEntryBundle, verifyAttestation } from '@countersign/proof'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Database, openDatabase } from '../../src/platform/db.ts'
import { createIds } from '../../src/platform/ids.ts'
import { createJournalTask } from '../../src/platform/journal.ts'
import { createSequencer } from '../../src/platform/sequencer.ts'
import { createTestClock } from '../clock.ts'
import { createTestDatabase, silent } from '../harness.ts'
import { type BasisNode, openBasisNode } from './basis-node.ts'

/** Attestations as entries of the public log: two processes over one database, whose clock stands still. */
const MINUTE = 60_000
const AT = new Date('2026-11-16T15:00:30.000Z')
const clock = createTestClock(AT)
const API = '/api/basis/v1'

let scratch: Awaited<ReturnType<typeof createTestDatabase>>
let database: Database
let node: BasisNode
let otherNode: BasisNode
let sequencer: ReturnType<typeof createSequencer>
let jwks: { keys: never[] }

beforeAll(async () => {
  scratch = await createTestDatabase()
  database = scratch.open(5)
  node = await openBasisNode(database, { clock })
  otherNode = await openBasisNode(database, { clock })
  await node.receipts.open()
  const tasks = [createJournalTask({ log: silent, consumers: [node.receipts.log.consumer] })]
  const instance = createIds(clock).uuid()
  sequencer = createSequencer({ db: database.db, log: silent, instance, tasks, leaseMs: 60_000 })
  const logKey = { ...node.keys.signer('log').publicJwk, purpose: 'log' }
  jwks = { keys: [...node.jwks.keys, logKey] as never[] }
})
// Each test has an hour of its own, so that none sees the attestations of another.
beforeEach(() => clock.advance(60 * MINUTE))
afterAll(async () => {
  await node.close()
  await otherNode.close()
  await database.close()
  await scratch.drop()
})

const entryCount = async () => {
  const { rows } = await database.pool.query(`select count(*)::int as count from receipts where kind = 'attestation'`)
  return rows[0].count as number
}
const newest = (symbol = 'TSLAx', from = node) => from.get(`${API}/attestation/${symbol}`)
const listed = async (query: string) => {
  const { status, body, text } = await node.get(`${API}/attestations?${query}`)
  expect(status, text).toBe(200)
  return body as { attestations: Record<string, never>[]; has_more: boolean; next_cursor: string | null }
}
const required = () => ({ jwks, log: { origin: node.receipts.log.origin, required: true } })

describe('an attestation is one entry of the log a reading', () => {
  test('however many ask for it, at once, one after the other or in another process', async () => {
    const before = await entryCount()
    const together = await Promise.all(
      Array.from({ length: 20 }, (_, index) => newest('TSLAx', index % 2 === 0 ? node : otherNode)),
    )
    const later = [await newest(), await newest('tslax', otherNode)]
    expect(new Set([...together, ...later].map(({ status }) => status))).toEqual(new Set([200]))
    expect(new Set([...together, ...later].map(({ text }) => text)).size).toBe(1)
    expect(await entryCount()).toBe(before + 1)
  })

  test('and another for the next reading, and for another wrapper', async () => {
    const before = await entryCount()
    const first = await newest()
    const other = await newest('AAPLc')
    clock.advance(MINUTE)
    const second = await newest()
    expect(new Set([first, other, second].map(({ body }) => body.id)).size).toBe(3)
    expect(await entryCount()).toBe(before + 3)
  })

  test('but none for a quote, a board or a stream that nobody asked to have attested', async () => {
    const before = await entryCount()
    for (const path of ['/quote/TSLAx', '/board', '/symbols', '/history/TSLAx']) {
      const { status, text } = await node.get(`${API}${path}`)
      expect(status, text).toBe(200)
    }
    expect(await entryCount()).toBe(before)
  })

  test('which is handed out only when it is written: while the database is away there is none', async () => {
    const unreachable = openDatabase('postgres://nobody@127.0.0.1:1/none', { max: 1, log: silent })
    const broken = await openBasisNode(unreachable, { clock })
    const { status, body } = await broken.get(`${API}/attestation/TSLAx`)
    expect([status, body.signature]).toEqual([503, undefined])
    await broken.close()
    await unreachable.close()
  })
})

describe('an attestation that was handed out', () => {
  test('verifies with its place in the log, offline, and not with a changed figure or the place of another', async () => {
    const { body: handedOut } = await newest('NVDAx')
    const { body: other } = await newest('SPYx')
    const pending = await node.get(`${API}/attestations/${handedOut.id}`)
    expect(pending.body).toEqual({ ...handedOut, log: null })
    await sequencer.runOnce()
    const { body: logged } = await node.get(`${API}/attestations/${handedOut.id}`)
    const { log, ...attestation } = logged
    expect(attestation).toEqual(handedOut)
    expect(verifyAttestation(logged, required())).toMatchObject({ ok: true })
    expect(attestationId(logged)).toBe(logged.id)
    expect(verifyAttestation(handedOut, required()).ok).toBe(false)
    expect(verifyAttestation({ ...logged, snapshot: { ...logged.snapshot, basis_bps: 0 } }, required()).ok).toBe(false)
    const { body: otherLogged } = await node.get(`${API}/attestations/${other.id}`)
    expect(verifyAttestation({ ...logged, log: otherLogged.log }, required()).ok).toBe(false)

    const proof = await node.get(handedOut.proof_url)
    expect(proof.body).toMatchObject({ attestation_id: handedOut.id, log })
    const [first, second] = [logged.log.index, otherLogged.log.index]
    expect(first).not.toBe(second)
  })

  test('is the entry that the log shows, and no receipt', async () => {
    const { body } = await newest('QQQx')
    await sequencer.runOnce()
    const { index } = (await node.get(body.proof_url)).body.log
    const width = (index % 256) + 1
    const bundle = await node.receipts.log.tile({ level: 'entries', index: Math.floor(index / 256), width })
    const { schema, symbol, chain, as_of, snapshot, backing, signature } = body
    expect(JSON.parse(new TextDecoder().decode(decodeEntryBundle(bundle, width).at(-1)))).toEqual({
      schema,
      symbol,
      chain,
      as_of,
      snapshot,
      backing,
      signature,
    })
    await expect(node.receipts.get(body.id)).rejects.toThrow('No such receipt.')
    await expect(node.receipts.proof(body.id, { witnessed: false })).rejects.toThrow('No such receipt.')
    const { receipts } = await node.receipts.list({}, { limit: 100 })
    expect(receipts).toEqual([])
  })

  test('can be neither changed nor deleted', async () => {
    await newest('COINx')
    for (const statement of [`update basis_attestations set body = ''`, 'delete from basis_attestations'])
      await expect(database.pool.query(statement)).rejects.toThrow('immutable')
  })

  test('stays when the readings of its time are pruned, after years', async () => {
    const { body } = await newest('MSTRx')
    await sequencer.runOnce()
    clock.advance(5 * 365 * 24 * 60 * MINUTE)
    await node.basis.prune()
    const { status, body: kept } = await node.get(`${API}/attestations/${body.id}`)
    expect(status).toBe(200)
    expect(verifyAttestation(kept, required())).toMatchObject({ ok: true })
    clock.set(new Date(AT.getTime() + 24 * 60 * MINUTE))
  })
})

describe('the list of attestations', () => {
  test('has those of a symbol and a time, newest first, by pages that neither repeat nor leave out one', async () => {
    const start = clock.now()
    const expected: string[] = []
    for (let count = 0; count < 5; count++) {
      expected.unshift((await newest('GOOGLc')).body.id)
      await newest('METAc')
      clock.advance(MINUTE)
    }
    await sequencer.runOnce()
    const time = `since=${start.toISOString().slice(0, 16)}:00.000Z&until=${clock.now().toISOString()}`
    const ids: string[] = []
    let cursor: string | null = ''
    while (cursor !== null) {
      const page = await listed(`symbol=googlc&${time}&limit=2${cursor && `&cursor=${cursor}`}`)
      expect(page.attestations.length).toBeLessThanOrEqual(2)
      for (const attestation of page.attestations) {
        expect(verifyAttestation(attestation, required())).toMatchObject({ ok: true })
        ids.push(attestation.id!)
      }
      cursor = page.next_cursor
    }
    expect(ids).toEqual(expected)
    expect((await listed(`${time}&limit=100`)).attestations.length).toBe(10)
    const until = new Date(start.getTime() + 2 * MINUTE).toISOString().replace(/:\d\d\.\d+/, ':00.000')
    expect(
      (await listed(`symbol=GOOGLc&since=${start.toISOString().slice(0, 16)}:00Z&until=${until}`)).attestations.length,
    ).toBe(2)
    expect((await listed(`symbol=GOOGLc&chain=solana&${time}`)).attestations).toEqual([])
  })

  test.each([
    ['an unknown symbol', '/attestations?symbol=TSLAxx', 404],
    ['an unknown cursor', `/attestations?cursor=att_${'0'.repeat(32)}`, 400],
    ['a cursor of another kind', '/attestations?cursor=rcpt_1', 400],
    ['a limit above 100', '/attestations?limit=101', 400],
    ['a time that is none', '/attestations?since=yesterday', 400],
    ['an id that nobody has', `/attestations/att_${'0'.repeat(32)}`, 404],
    ['an id of another form', '/attestations/att_1', 400],
    ['the proof of an id that nobody has', `/attestations/att_${'0'.repeat(32)}/proof`, 404],
    ['a reading named twice', '/attestation/TSLAx?seq=1&as_of=2026-11-16T15:00:00.000Z', 400],
    ['a time between two readings', '/attestation/TSLAx?as_of=2026-11-16T15:00:07.000Z', 404],
    ['a reading of the future', '/attestation/TSLAx?as_of=2096-11-16T15:00:00.000Z', 404],
    ['a reading of long ago', '/attestation/TSLAx?as_of=1996-11-18T15:00:00.000Z', 404],
  ])('answers %s with a clear refusal', async (_, path, expectedStatus) => {
    const before = await entryCount()
    const { status, body } = await node.get(`${API}${path}`)
    expect([status, typeof body.message]).toEqual([expectedStatus, 'string'])
    expect(await entryCount()).toBe(before)
  })
})

describe('quote and board link to the attestation of the reading that they show', () => {
  test('also after the next reading, as long as it is valid, and for good once somebody has asked', async () => {
    const { body: quote } = await node.get(`${API}/quote/TSLAon`)
    const { body: board } = await node.get(`${API}/board`)
    const row = board.rows.find(({ symbol }: { symbol: string }) => symbol === 'TSLAon')
    expect(row.attestation_url).toBe(quote.attestation_url)
    clock.advance(14 * MINUTE)
    const { status, body: attestation, text } = await otherNode.get(quote.attestation_url)
    expect(status, text).toBe(200)
    const { wrapper_price, reference_price, basis_bps, underlying_state } = quote
    expect(attestation).toMatchObject({
      as_of: quote.as_of,
      snapshot: { wrapper_price, reference_price, basis_bps, underlying_state },
    })
    const { body: unasked } = await node.get(`${API}/quote/NVDAon`)
    clock.advance(60 * MINUTE)
    expect((await node.get(quote.attestation_url)).text).toBe(text)
    expect((await node.get(unasked.attestation_url)).status).toBe(404)
  })
})
