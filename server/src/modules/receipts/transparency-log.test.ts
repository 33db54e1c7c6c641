import { createPrivateKey, generateKeyPairSync, sign } from 'node:crypto'
import {
  cosignatureLine,
  cosignatureMessage,
  decodeEntryBundle,
  formatVerifierKey,
  NOTE_COSIGNATURE_V1,
  parseCheckpoint,
  parseTilePath,
  rootFromTiles,
  rootOfLeaves,
  tileInTree,
  tilesForRoot,
  toBase64,
  verifyCheckpoint,
  verifyConsistency,
  verifyReceipt,
} from '@countersign/proof'
import { sql } from 'kysely'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { createReceiptsFixture, createTestDatabase, ORIGIN, testKeys } from '../../../test/receipts/helpers.ts'

let testDatabase: Awaited<ReturnType<typeof createTestDatabase>>
beforeAll(async () => {
  testDatabase = await createTestDatabase()
})
beforeEach(() => testDatabase.clear())
afterAll(() => testDatabase.drop())

const createFixture = (options: Parameters<typeof createReceiptsFixture>[1] = {}) =>
  createReceiptsFixture(testDatabase.database, options)

const fullCheck = (jwks: { keys: never[] }) => ({ jwks, log: { origin: ORIGIN, required: true } })

function createWitness(name: string) {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  const bytes = Buffer.from(publicKey.export({ format: 'jwk' }).x!, 'base64url')
  const key = createPrivateKey(privateKey.export({ format: 'pem', type: 'pkcs8' }))
  return {
    verifierKey: formatVerifierKey({ name, type: NOTE_COSIGNATURE_V1, publicKey: bytes }),
    cosign(checkpoint: string, time: number) {
      const { text } = parseCheckpoint(checkpoint)!.note
      const signature = sign(null, cosignatureMessage(text, time), key)
      return checkpoint + cosignatureLine({ name, publicKey: bytes }, time, signature)
    },
  }
}

test('every receipt gets a place in the log without gaps, and each place is proven', async () => {
  const fixture = createFixture()
  const signed = await fixture.issueMany(300)
  expect((await fixture.receipts.get(signed[0]!.row.id)).log).toBeNull()
  await fixture.sequencer.runOnce()
  const options = fullCheck((await fixture.jwks()) as never)
  for (const { row } of signed.filter((_, i) => i % 25 === 0 || i === 299))
    expect(verifyReceipt(await fixture.receipts.get(row.id), options)).toMatchObject({ ok: true })
  const { rows } = await sql<{
    log_index: bigint
    receipt_id: string
  }>`select * from log_entries order by log_index`.execute(fixture.db)
  expect(rows.map(({ log_index }) => Number(log_index))).toEqual(Array.from({ length: 300 }, (_, i) => i))
  expect(rows.map(({ receipt_id }) => receipt_id)).toEqual(signed.map(({ row }) => row.id).sort())
})

test('the log is the tree of its entries, and every checkpoint extends every one before it', async () => {
  const fixture = createFixture()
  const heads = []
  for (const count of [1, 1, 5, 249, 1, 300, 60]) {
    await fixture.issueMany(count)
    await fixture.sequencer.runOnce()
    heads.push(parseCheckpoint(await fixture.log.checkpoint())!)
  }
  const { rows } = await sql<{ body: string }>`
    select body from log_entries join receipts on id = receipt_id order by log_index
  `.execute(fixture.db)
  for (const { size, root } of heads)
    expect(rootOfLeaves(rows.slice(0, size).map(({ body }) => Buffer.from(body)))).toEqual(root)
  for (const older of heads)
    for (const newer of heads.filter(({ size }) => size >= older.size)) {
      const { proof } = await fixture.log.consistency(older.size, newer.size)
      const claim = { oldSize: older.size, oldRoot: older.root, newSize: newer.size, newRoot: newer.root, proof }
      expect(verifyConsistency(claim)).toBe(true)
      expect(verifyConsistency({ ...claim, newRoot: Buffer.alloc(32, 1) })).toBe(false)
    }
  await expect(fixture.log.consistency(0, 618)).rejects.toThrow('617 entries')
})

test('a reader computes the signed root from tiles and entries alone', async () => {
  const fixture = createFixture()
  await fixture.issueMany(700)
  await fixture.sequencer.runOnce()
  const { size, root } = parseCheckpoint(await fixture.log.checkpoint())!
  const tiles = new Map<string, Uint8Array>()
  for (const tile of tilesForRoot(size)) tiles.set(`${tile.level}/${tile.index}`, await fixture.log.tile(tile))
  expect(rootFromTiles(size, (tile) => tiles.get(`${tile.level}/${tile.index}`))).toEqual(root)
  const entries: Uint8Array[] = []
  for (const index of [0, 1, 2]) {
    const { width } = tileInTree(0, index, size)!
    entries.push(...decodeEntryBundle(await fixture.log.tile({ level: 'entries', index, width }), width))
  }
  expect(rootOfLeaves(entries)).toEqual(root)
})

test('an older, narrower form of a tile is still served, and nothing beyond the checkpoint is', async () => {
  const fixture = createFixture()
  await fixture.issueMany(10)
  await fixture.sequencer.runOnce()
  const narrow = await fixture.log.tile(parseTilePath('tile/0/000.p/4')!)
  await fixture.issueMany(10)
  await fixture.sequencer.runOnce()
  expect(await fixture.log.tile(parseTilePath('tile/0/000.p/4')!)).toEqual(narrow)
  for (const path of ['tile/0/000', 'tile/0/000.p/21', 'tile/0/001.p/1', 'tile/1/000.p/1', 'tile/entries/000'])
    await expect(fixture.log.tile(parseTilePath(path)!)).rejects.toThrow('No such tile')
})

test('an empty log has a signed checkpoint too', async () => {
  const fixture = createFixture()
  await fixture.sequencer.runOnce()
  const jwk = fixture.keys.signer('log').publicJwk
  const verification = verifyCheckpoint(await fixture.log.checkpoint(), { origin: ORIGIN, keys: [jwk] })
  expect(verification).toMatchObject({ ok: true, checkpoint: { size: 0 } })
})

test('while a key is being replaced, readers who pinned the old one and readers who pinned the new one both verify', async () => {
  const [old, fresh] = [testKeys('old'), testKeys('new')]
  const before = createFixture({ keys: old })
  const [signed] = await before.issueMany(3)
  await before.sequencer.runOnce()
  await before.receipts.open()
  await before.sequencer.stop()
  const verifies = async (fixture: ReturnType<typeof createFixture>, keys: typeof old) =>
    verifyCheckpoint(await fixture.log.checkpoint(), { origin: ORIGIN, keys: [keys.signer('log').publicJwk] }).ok

  const overlap = createFixture({ keys: fresh, previousLogSigners: [old.signer('log')] })
  await overlap.sequencer.runOnce()
  await overlap.receipts.open()
  expect(await verifies(overlap, old)).toBe(true)
  expect(await verifies(overlap, fresh)).toBe(true)
  await overlap.sequencer.stop()

  const after = createFixture({ keys: fresh })
  await after.sequencer.runOnce()
  expect(await verifies(after, old)).toBe(false)
  expect(await verifies(after, fresh)).toBe(true)
  // The old key's receipts stay verifiable, because a retired key stays in the key set.
  const receipt = await after.receipts.get(signed!.row.id)
  expect(verifyReceipt(receipt, fullCheck((await after.jwks()) as never))).toMatchObject({ ok: true })
  const did = await after.receipts.did()
  expect(did.id).toBe('did:web:api.example%3A8443')
  expect(did.verificationMethod.length).toBe(2 * did.assertionMethod.length)
})

test('a cosignature of a known witness is accepted and served, and a receipt verifies with it', async () => {
  const witness = createWitness('witness.example/w1')
  const fixture = createFixture({ witnesses: [witness.verifierKey] })
  const [signed] = await fixture.issueMany(5)
  await fixture.sequencer.runOnce()
  await expect(fixture.log.checkpoint({ witnessed: true })).rejects.toThrow('No such cosigned checkpoint')
  const time = Math.floor(fixture.clock.now().getTime() / 1000)
  const cosigned = witness.cosign(await fixture.log.checkpoint(), time)
  expect(await fixture.log.addCosignatures(cosigned)).toEqual({
    size: 5,
    accepted: [{ witness: 'witness.example/w1', cosigned_at: '2026-11-16T15:00:00.000Z' }],
  })
  expect(await fixture.log.checkpoint()).toBe(cosigned)
  await fixture.issueMany(5)
  await fixture.sequencer.runOnce()
  expect(await fixture.log.checkpoint()).not.toBe(cosigned)
  expect(await fixture.log.checkpoint({ witnessed: true })).toBe(cosigned)

  const { log } = await fixture.receipts.proof(signed!.row.id, { witnessed: true })
  const jwks = (await fixture.jwks()) as never
  const witnesses = [witness.verifierKey]
  expect(verifyReceipt({ ...signed!.receipt, log }, { jwks, log: { required: true, witnesses } })).toMatchObject({
    ok: true,
  })
})

test('a cosignature is refused when it is forged, of an unknown witness, from the future, or under another tree', async () => {
  const [witness, otherWitness] = [createWitness('witness.example/w1'), createWitness('witness.example/w1')]
  const fixture = createFixture({ witnesses: [witness.verifierKey] })
  await fixture.issueMany(5)
  await fixture.sequencer.runOnce()
  const checkpoint = await fixture.log.checkpoint()
  const time = Math.floor(fixture.clock.now().getTime() / 1000)
  await expect(fixture.log.addCosignatures(checkpoint)).rejects.toThrow(/^0 .* cosigned/)
  await expect(fixture.log.addCosignatures(otherWitness.cosign(checkpoint, time))).rejects.toThrow(/^0 .* cosigned/)
  await expect(fixture.log.addCosignatures(witness.cosign(checkpoint, time + 3600))).rejects.toThrow('future')
  const fork = checkpoint.replace(toBase64(parseCheckpoint(checkpoint)!.root), toBase64(Buffer.alloc(32, 7)))
  await expect(fixture.log.addCosignatures(witness.cosign(fork, time))).rejects.toThrow('another root')
  const changed = witness.cosign(checkpoint, time)
  const last = changed.trimEnd().split(' ').at(-1)!
  const bytes = Buffer.from(last, 'base64')
  bytes[20] = bytes[20]! ^ 1
  await expect(fixture.log.addCosignatures(changed.replace(last, bytes.toString('base64')))).rejects.toThrow(
    'does not verify',
  )
  await expect(createFixture().log.addCosignatures(checkpoint)).rejects.toThrow('No witness is configured')
})

test('nothing is appended to tiles that do not produce the signed root', async () => {
  const fixture = createFixture()
  await fixture.issueMany(3)
  await fixture.sequencer.runOnce()
  await sql`update log_tiles set bytes = set_byte(bytes, 40, get_byte(bytes, 40) # 1)`.execute(fixture.db)
  const before = await fixture.log.checkpoint()
  await fixture.issueMany(3)
  await fixture.sequencer.runOnce()
  expect(await fixture.log.checkpoint()).toBe(before)
})

test('receipts and their places can be neither changed nor deleted, and a chain of receipts cannot fork', async () => {
  const fixture = createFixture()
  const [first] = await fixture.issue([fixture.draft({ run_id: 'run_x' })])
  await fixture.sequencer.runOnce()
  for (const change of [
    sql`update receipts set body = '{}'`,
    sql`delete from receipts`,
    sql`update log_entries set log_index = 7`,
    sql`delete from log_entries`,
  ])
    await expect(change.execute(fixture.db)).rejects.toThrow('immutable')
  const refund = () => fixture.draft({ run_id: 'run_x', kind: 'refund', prev_hash: first!.row.hash })
  expect(await fixture.receipts.lastHashOfRun(fixture.db, 'run_x')).toBe(first!.row.hash)
  const [second] = await fixture.issue([refund()])
  expect(await fixture.receipts.lastHashOfRun(fixture.db, 'run_x')).toBe(second!.row.hash)
  await expect(fixture.issue([refund()])).rejects.toThrow('receipts_chain')
  await expect(fixture.issue([fixture.draft({ run_id: 'run_x' })])).rejects.toThrow('receipts_chain')
})

test('a log cannot be opened under another name', async () => {
  const fixture = createFixture()
  await fixture.log.open()
  await fixture.sequencer.runOnce()
  await fixture.log.open()
  await expect(createFixture({ logName: 'another.example/log' }).log.open()).rejects.toThrow('a log keeps its name')
})
