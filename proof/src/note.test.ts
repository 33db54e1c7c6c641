import { describe, expect, test } from 'vitest'
import { issuerKey } from '../test/fixtures.ts'
import { verifyEd25519 } from './ed25519.ts'
import { toHex, utf8 } from './encoding.ts'
import {
  formatNote,
  formatVerifierKey,
  MAX_NOTE_LENGTH,
  MAX_NOTE_SIGNATURES,
  NOTE_ED25519,
  type NoteKey,
  noteKeyId,
  noteSignatureLine,
  parseNote,
  parseVerifierKey,
  signaturesOf,
} from './note.ts'

// The example of the format's first implementation, Go's golang.org/x/mod/sumdb/note.
const VKEY = 'PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW'
const TEXT = "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n"
const LINE =
  '— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n'
const NOTE = `${TEXT}\n${LINE}`

describe('the reference note', () => {
  const key = parseVerifierKey(VKEY)!
  const note = parseNote(NOTE)!

  test('is read, and its signature verifies', () => {
    expect(note.text).toBe(TEXT)
    const [signatureLine] = signaturesOf(note, key)
    expect(verifyEd25519(key.publicKey, utf8(note.text), signatureLine!.signature)).toBe(true)
  })

  test('is written back byte for byte', () => {
    expect(toHex(noteKeyId(key))).toBe('c74f20a3')
    expect(formatVerifierKey(key)).toBe(VKEY)
    expect(noteSignatureLine(key, note.signatures[0]!.signature)).toBe(LINE)
    expect(formatNote(TEXT, [LINE])).toBe(NOTE)
  })

  test('the text may contain blank lines: the last one separates it from the signatures', () => {
    expect(parseNote(`a\n\nb\n\n${LINE}`)?.text).toBe('a\n\nb\n')
  })
})

test('a verifier key with a missing or changed part is rejected', () => {
  for (let from = 0; from < VKEY.length; from += 1) {
    for (let to = from + 1; to <= VKEY.length; to += 1) {
      if (from > 0 || to < VKEY.length) expect(parseVerifierKey(VKEY.slice(from, to))).toBeUndefined()
    }
  }
  for (let i = 0; i < VKEY.length; i += 1) {
    const alteredKey = VKEY.slice(0, i) + String.fromCharCode(VKEY.charCodeAt(i) + 1) + VKEY.slice(i + 1)
    expect(parseVerifierKey(alteredKey)).toBeUndefined()
  }
  expect(
    parseVerifierKey(formatVerifierKey({ ...parseVerifierKey(VKEY)!, type: 2 as NoteKey['type'] })),
  ).toBeUndefined()
  for (const value of [undefined, 7, `+${VKEY}`, `x+${VKEY}`, ` ${VKEY}`])
    expect(parseVerifierKey(value)).toBeUndefined()
  const named = (name: string) => parseVerifierKey(formatVerifierKey({ ...parseVerifierKey(VKEY)!, name }))?.name
  expect(named('Peter Neumann')).toBeUndefined()
  const rest = VKEY.length - 'PeterNeumann'.length
  expect(named('x'.repeat(1024 - rest))).toHaveLength(1024 - rest)
  expect(named('x'.repeat(1025 - rest))).toBeUndefined()
})

test.each([
  ['no text', ''],
  ['no signature', TEXT],
  ['no blank line', `${TEXT}${LINE}`],
  ['an empty text', `\n\n${LINE}`],
  ['no newline at the end', NOTE.slice(0, -1)],
  ['another character than a newline at the end', `${NOTE.slice(0, -1)}x`],
  ['a word after the signature', `${NOTE.slice(0, -1)} x\n`],
  ['nothing after the dash', `${TEXT}\n—\n`],
  ['a blank line at the end', `${NOTE}\n`],
  ['a hyphen for the dash', NOTE.replace('—', '-')],
  ['a signature with no name', NOTE.replace(' PeterNeumann', '')],
  ['an empty name', NOTE.replace('PeterNeumann', '')],
  ['a name with a plus', NOTE.replace('PeterNeumann', 'Peter+Neumann')],
  ['a name with a wide blank', NOTE.replace('PeterNeumann', 'Peter\u3000Neumann')],
  ['two blanks', NOTE.replace('— ', '—  ')],
  ['a signature that is not base64', NOTE.replace('x08', 'x0!')],
  ['a signature of four bytes', `${TEXT}\n— PeterNeumann x08goA==\n`],
  ['a carriage return', NOTE.replace('problem,\n', 'problem,\r\n')],
  ['a tab', NOTE.replace('If you', 'If\tyou')],
  ['a zero byte', NOTE.replace('If you', 'If\0you')],
  ['a lone surrogate', NOTE.replace('If you', 'If\ud800you')],
  ['too many signatures', `${TEXT}\n${LINE.repeat(MAX_NOTE_SIGNATURES + 1)}`],
  ['too long a text', `${'x'.repeat(MAX_NOTE_LENGTH)}\n\n${LINE}`],
])('%s is not a note', (_, note) => {
  expect(parseNote(note)).toBeUndefined()
})

test('a note may be as long and have as many signatures as the limits, and a signature may be a byte', () => {
  const longest = `${'x'.repeat(MAX_NOTE_LENGTH - LINE.length - 2)}\n\n${LINE}`
  expect([longest.length, parseNote(longest)?.signatures.length]).toEqual([MAX_NOTE_LENGTH, 1])
  expect(parseNote(`x${longest}`)).toBeUndefined()
  expect(parseNote(`${TEXT}\n${LINE.repeat(MAX_NOTE_SIGNATURES)}`)?.signatures).toHaveLength(MAX_NOTE_SIGNATURES)
  expect(parseNote(`${TEXT}\n— PeterNeumann x08gowE=\n`)?.signatures[0]?.signature).toHaveLength(1)
})

test('a signature belongs to a key only when both name and key id match', () => {
  const logKey: NoteKey = { name: 'log.test', type: NOTE_ED25519, publicKey: issuerKey.publicKey }
  const line = noteSignatureLine(logKey, issuerKey.sign(utf8('x\n')))
  const note = parseNote(formatNote('x\n', [line, line.replace('log.test', 'other.test')]))!
  expect(signaturesOf(note, logKey)).toHaveLength(1)
  expect(signaturesOf(note, { ...logKey, name: 'other.test' })).toHaveLength(0)
})

test('formatNote rejects text and lines that do not form a note', () => {
  expect(() => formatNote('no newline', [LINE])).toThrow('signed note')
  expect(() => formatNote(TEXT, [])).toThrow('signed note')
  expect(() => formatNote(TEXT, ['nonsense\n'])).toThrow('signed note')
  expect(() => formatNote(TEXT, [LINE + LINE])).toThrow('signed note')
  expect(() =>
    noteSignatureLine({ name: 'a b', type: NOTE_ED25519, publicKey: issuerKey.publicKey }, new Uint8Array(64)),
  ).toThrow('whitespace')
})
