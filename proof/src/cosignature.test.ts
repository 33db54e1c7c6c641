import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  fillerHashes,
  flipBit,
  issuerKey,
  LOG_ORIGIN,
  logKey,
  makeCheckpoint,
  type TestKey,
  testKey,
} from '../test/fixtures.ts'
import { verifyCheckpoint } from './checkpoint.ts'
import { cosignatureLine, cosignatureMessage, verifyCosignatures } from './cosignature.ts'
import { fromUtf8, utf8 } from './encoding.ts'
import { formatVerifierKey, NOTE_COSIGNATURE_V1, NOTE_ED25519, noteSignatureLine, parseNote } from './note.ts'

type PublicLog = { log: string; origin: string; keys: string[]; witnesses: string[]; note: string }
const publicLogs: PublicLog[] = JSON.parse(
  readFileSync(new URL('../testdata/public-checkpoints.json', import.meta.url), 'utf8'),
)

const TIME = 1_763_305_200
const witnessOne = testKey(11)
const witnessTwo = testKey(12)
const checkpoint = makeCheckpoint(fillerHashes(7))
const { text } = parseNote(checkpoint)!
const lineOf = (name: string, { publicKey, sign }: TestKey, time = TIME) =>
  cosignatureLine({ name, publicKey }, time, sign(cosignatureMessage(text, time)))
const cosigned = checkpoint + lineOf('w1.test', witnessOne) + lineOf('w2.test', witnessTwo)
const firstWitness = { name: 'w1.test', key: witnessOne.jwk }
const secondWitness = { name: 'w2.test', key: witnessTwo.jwk }

describe('cosignatures of public witnesses', () => {
  test.each(publicLogs.filter(({ witnesses }) => witnesses.length > 0))(
    'on a checkpoint of $log',
    ({ witnesses, note }) => {
      const result = verifyCosignatures(note, { witnesses, quorum: witnesses.length })
      expect(result.ok).toBe(true)
      expect(result.cosignatures.map(({ name }) => name)).toEqual(witnesses.map((line) => line.split('+')[0]))
      expect(verifyCosignatures(note.replace(/^(.*\n)(\d)/, '$11$2'), { witnesses }).ok).toBe(false)
    },
  )
})

test('the message is the header, the time and the whole checkpoint', () => {
  expect(fromUtf8(cosignatureMessage(text, TIME))).toBe(`cosignature/v1\ntime ${TIME}\n${text}`)
})

test('a quorum of known witnesses verifies, and the log signature stays valid', () => {
  expect(verifyCosignatures(cosigned, { witnesses: [firstWitness, secondWitness], quorum: 2 })).toMatchObject({
    ok: true,
    cosignatures: [
      { name: 'w1.test', time: TIME },
      { name: 'w2.test', time: TIME },
    ],
  })
  expect(verifyCosignatures(cosigned, { witnesses: [firstWitness, secondWitness], quorum: 3 })).toMatchObject({
    ok: false,
    reason: '2 known witnesses cosigned, 3 required.',
  })
  expect(verifyCosignatures(checkpoint, { witnesses: [firstWitness, secondWitness] }).ok).toBe(false)
  expect(verifyCosignatures(cosigned, { witnesses: [], quorum: 0 }).ok).toBe(false)
  expect(verifyCheckpoint(cosigned, { origin: LOG_ORIGIN, keys: [logKey.jwk] }).ok).toBe(true)
})

test('a witness counts once, however often or under how many names it signs', () => {
  const duplicated =
    checkpoint +
    lineOf('w1.test', witnessOne) +
    lineOf('w1.test', witnessOne, TIME + 1) +
    lineOf('alias.test', witnessOne)
  const witnesses = [firstWitness, { name: 'alias.test', key: witnessOne.jwk }]
  expect(verifyCosignatures(duplicated, { witnesses, quorum: 2 }).ok).toBe(false)
  expect(verifyCosignatures(duplicated, { witnesses, quorum: 1 }).ok).toBe(true)
})

test('flipping a bit of the checkpoint text or of a cosignature makes it invalid', () => {
  const line = lineOf('w1.test', witnessOne)
  const signedBytes = utf8(checkpoint + line)
  // A witness does not sign the log's own line, which has its own check; only the bytes before and after it are flipped.
  const textBits = utf8(text).length * 8
  const lineBits = utf8(line).length * 8
  fc.assert(
    fc.property(fc.nat(textBits + lineBits - 1), (bitIndex) => {
      const flipped = fromUtf8(
        flipBit(
          signedBytes,
          bitIndex < textBits ? bitIndex : signedBytes.length * 8 - lineBits + (bitIndex - textBits),
        ),
      )
      fc.pre(flipped !== undefined)
      expect(verifyCosignatures(flipped, { witnesses: [firstWitness] }).ok, flipped).toBe(false)
    }),
    { numRuns: 120 },
  )
})

test('a witness key is not accepted as a log key, nor a log key as a witness key', () => {
  const asLog = formatVerifierKey({ name: 'w1.test', type: NOTE_ED25519, publicKey: witnessOne.publicKey })
  const asWitness = formatVerifierKey({ name: 'w1.test', type: NOTE_COSIGNATURE_V1, publicKey: witnessOne.publicKey })
  expect(verifyCosignatures(cosigned, { witnesses: [asLog] }).ok).toBe(false)
  expect(verifyCosignatures(cosigned, { witnesses: [asWitness] }).ok).toBe(true)
  expect(verifyCosignatures(checkpoint, { witnesses: [{ name: LOG_ORIGIN, key: logKey.jwk }] }).ok).toBe(false)
})

test('a cosignature from the future is rejected when a time is given, with a small skew allowed', () => {
  const at = (seconds: number) =>
    verifyCosignatures(cosigned, { witnesses: [firstWitness], now: new Date(seconds * 1000) })
  expect(at(TIME).ok).toBe(true)
  expect(at(TIME - 299).ok).toBe(true)
  expect(at(TIME - 300).ok).toBe(true)
  expect(at(TIME - 301)).toMatchObject({ ok: false, reason: expect.stringMatching(/future/) })
})

test('malformed cosignatures are invalid and do not throw', () => {
  const short =
    checkpoint + cosignatureLine({ name: 'w1.test', publicKey: witnessOne.publicKey }, TIME, new Uint8Array(63))
  expect(verifyCosignatures(short, { witnesses: [firstWitness] })).toMatchObject({
    ok: false,
    reason: expect.stringMatching(/does not verify/),
  })
  expect(verifyCosignatures('nonsense', { witnesses: [firstWitness] })).toMatchObject({ ok: false, cosignatures: [] })
  const key = { name: 'w1.test', type: NOTE_COSIGNATURE_V1, publicKey: witnessOne.publicKey } as const
  for (const line of [
    noteSignatureLine(key, new Uint8Array(3)),
    cosignatureLine(key, 2 ** 60, new Uint8Array(64)),
    cosignatureLine(key, TIME, new Uint8Array(65)),
  ])
    expect(verifyCosignatures(checkpoint + line, { witnesses: [firstWitness] })).toMatchObject({
      ok: false,
      reason: "The cosignature in the name of 'w1.test' does not verify.",
    })
  expect(verifyCosignatures(cosigned, { witnesses: ['nonsense', { name: 'x', key: { kty: 'RSA' } }] }).ok).toBe(false)
  expect(() => cosignatureMessage(text, 1.5)).toThrow('whole seconds')
  expect(() => cosignatureMessage(text, -1)).toThrow('whole seconds')
  expect(fromUtf8(cosignatureMessage(text, 0))).toContain('\ntime 0\n')
  expect(verifyCosignatures(cosigned, { witnesses: [{ name: 'w1.test', key: issuerKey.jwk }] }).ok).toBe(false)
})
