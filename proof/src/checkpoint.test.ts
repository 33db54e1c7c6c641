import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import {
  bitFlips,
  fillerHashes,
  issuerKey,
  LOG_ORIGIN,
  logKey,
  makeCheckpoint,
  untrustedKey,
} from '../test/fixtures.ts'
import { checkpointSignatureLine, checkpointText, parseCheckpoint, verifyCheckpoint } from './checkpoint.ts'
import { fromUtf8, toBase64, utf8 } from './encoding.ts'
import { emptyRoot, rootOfLeafHashes } from './merkle-tree.ts'
import { formatNote, formatVerifierKey, NOTE_COSIGNATURE_V1, NOTE_ED25519 } from './note.ts'

type PublicLog = { log: string; origin: string; keys: string[]; note: string }
const publicLogs: PublicLog[] = JSON.parse(
  readFileSync(new URL('../testdata/public-checkpoints.json', import.meta.url), 'utf8'),
)

const leafHashes = fillerHashes(7)
const note = makeCheckpoint(leafHashes)
const trust = { origin: LOG_ORIGIN, keys: [logKey.jwk] }

describe('checkpoints of public logs', () => {
  test.each(publicLogs)('of $log', ({ origin, keys, note: signedNote }) => {
    const result = verifyCheckpoint(signedNote, { origin, keys })
    expect(result).toMatchObject({ ok: true, signedBy: [keys[0]!.split('+')[0]] })
    expect(verifyCheckpoint(signedNote.replace(/^(.*\n)(\d)/, '$11$2'), { origin, keys }).ok).toBe(false)
  })
})

test('a signed checkpoint verifies with the key of the log', () => {
  const root = rootOfLeafHashes(leafHashes)
  const text = checkpointText({ origin: LOG_ORIGIN, size: 7, root })
  expect(text).toBe(`${LOG_ORIGIN}\n7\n${toBase64(root)}\n`)
  const result = verifyCheckpoint(note, trust)
  expect(result).toMatchObject({ ok: true, checkpoint: { origin: LOG_ORIGIN, size: 7, root, extensions: [] } })
})

test('a key may be a verifier key line', () => {
  const line = formatVerifierKey({ name: LOG_ORIGIN, type: NOTE_ED25519, publicKey: logKey.publicKey })
  expect(verifyCheckpoint(note, { origin: LOG_ORIGIN, keys: [line] }).ok).toBe(true)
  const witness = formatVerifierKey({ name: LOG_ORIGIN, type: NOTE_COSIGNATURE_V1, publicKey: logKey.publicKey })
  expect(verifyCheckpoint(note, { origin: LOG_ORIGIN, keys: [witness] }).ok).toBe(false)
})

test('flipping any bit of a checkpoint makes it invalid', () => {
  for (const alteredBytes of bitFlips(utf8(note))) {
    const text = fromUtf8(alteredBytes)
    if (text !== undefined) expect(verifyCheckpoint(text, trust).ok, text).toBe(false)
  }
})

test('signatures of unknown keys are ignored, also beside a trusted one', () => {
  const text = checkpointText({ origin: LOG_ORIGIN, size: 7, root: rootOfLeafHashes(leafHashes) })
  const lines = [untrustedKey, logKey].map(({ publicKey, sign }) =>
    checkpointSignatureLine(LOG_ORIGIN, publicKey, sign(utf8(text))),
  )
  const both = formatNote(text, lines)
  expect(verifyCheckpoint(both, trust).ok).toBe(true)
  expect(verifyCheckpoint(both, { ...trust, keys: [untrustedKey.jwk, logKey.jwk] })).toMatchObject({
    ok: true,
    signedBy: [LOG_ORIGIN, LOG_ORIGIN],
    reason: `Signed by ${LOG_ORIGIN}, ${LOG_ORIGIN}.`,
  })
  expect(verifyCheckpoint(both, { ...trust, keys: [issuerKey.jwk] })).toMatchObject({
    ok: false,
    reason: expect.stringMatching(/No trusted key/),
  })
  expect(verifyCheckpoint(both, { ...trust, keys: [] }).ok).toBe(false)
  expect(verifyCheckpoint(both, { ...trust, keys: ['nonsense', { kty: 'RSA' }] }).ok).toBe(false)
  expect(verifyCheckpoint(both, { ...trust, keys: ['nonsense', { kty: 'RSA' }, logKey.jwk] }).ok).toBe(true)
})

test('an invalid signature in the name of a trusted key invalidates the note, although another verifies', () => {
  const text = checkpointText({ origin: LOG_ORIGIN, size: 7, root: rootOfLeafHashes(leafHashes) })
  const invalidLine = checkpointSignatureLine(LOG_ORIGIN, issuerKey.publicKey, logKey.sign(utf8(text)))
  const validLine = checkpointSignatureLine(LOG_ORIGIN, logKey.publicKey, logKey.sign(utf8(text)))
  const mixedNote = formatNote(text, [validLine, invalidLine])
  expect(verifyCheckpoint(mixedNote, trust).ok).toBe(true)
  expect(verifyCheckpoint(mixedNote, { ...trust, keys: [logKey.jwk, issuerKey.jwk] })).toMatchObject({
    ok: false,
    reason: expect.stringMatching(/does not verify/),
  })
})

test("another log's checkpoint is rejected, even when signed with the same key", () => {
  const otherLogNote = makeCheckpoint(leafHashes, logKey, 'other.test/log')
  expect(verifyCheckpoint(otherLogNote, trust)).toMatchObject({
    ok: false,
    reason: expect.stringMatching(/other\.test/),
  })
})

test('extension lines are returned separately', () => {
  const text = `${checkpointText({ origin: LOG_ORIGIN, size: 7, root: rootOfLeafHashes(leafHashes) })}more\n`
  const signedNote = formatNote(text, [checkpointSignatureLine(LOG_ORIGIN, logKey.publicKey, logKey.sign(utf8(text)))])
  expect(verifyCheckpoint(signedNote, trust)).toMatchObject({ ok: true, checkpoint: { extensions: ['more'] } })
})

describe('malformed checkpoints are rejected', () => {
  const root = toBase64(rootOfLeafHashes(leafHashes))
  const line = checkpointSignatureLine(LOG_ORIGIN, logKey.publicKey, new Uint8Array(64))
  test.each([
    ['two lines', `${LOG_ORIGIN}\n7\n`],
    ['a blank line inside', `${LOG_ORIGIN}\n7\n${root}\n\nmore\n`],
    ['a leading zero', `${LOG_ORIGIN}\n07\n${root}\n`],
    ['a sign', `${LOG_ORIGIN}\n+7\n${root}\n`],
    ['a size beyond 2^53', `${LOG_ORIGIN}\n9007199254740992\n${root}\n`],
    ['a size of twenty digits', `${LOG_ORIGIN}\n18446744073709551615\n${root}\n`],
    ['a short root', `${LOG_ORIGIN}\n7\nAAAA\n`],
    ['a root in base64url', `${LOG_ORIGIN}\n7\n${root.replace(/[+/]/g, '-')}-\n`],
    ['an empty tree with another root', `${LOG_ORIGIN}\n0\n${root}\n`],
  ])('%s', (_, text) => {
    expect(parseCheckpoint(`${text}\n${line}`)).toBeUndefined()
  })

  test('a value that is not a string', () => {
    for (const value of [undefined, null, 7, {}, [], '']) expect(verifyCheckpoint(value, trust).ok).toBe(false)
  })

  test('checkpointText rejects invalid parts', () => {
    expect(() => checkpointText({ origin: '', size: 7, root })).toThrow("'' cannot be the origin of a log.")
    expect(() => checkpointText({ origin: 'a\nb', size: 7, root })).toThrow('cannot be the origin of a log.')
    expect(() => checkpointText({ origin: LOG_ORIGIN, size: -1, root })).toThrow('tree size')
    expect(() => checkpointText({ origin: LOG_ORIGIN, size: 7, root: 'AAAA' })).toThrow('32 bytes')
    expect(checkpointText({ origin: LOG_ORIGIN, size: 0, root: emptyRoot() })).toContain('\n0\n')
  })
})
