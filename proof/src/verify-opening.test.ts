import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { jwks, makeReceipt } from '../test/fixtures.ts'
import { saltHash, verifyOpening } from './verify-opening.ts'
import { verifyReceipt } from './verify-receipt.ts'

const plain = (text: string) => `sha256:${createHash('sha256').update(text).digest('hex')}`

const SALT = 'AAECAwQFBgcICQoLDA0ODw'
const INPUT = 'Summarise the Q3 report.'
const OUTPUT = '# Summary'
const REQUEST = { path: '/api/run', method: 'POST', body: { task: INPUT } }
const REQUEST_TEXT = '{"body":{"task":"Summarise the Q3 report."},"method":"POST","path":"/api/run"}'

const committed = {
  request_hash: plain(`${SALT}.request_hash.${plain(REQUEST_TEXT)}`),
  input_hash: plain(`${SALT}.input_hash.${plain(INPUT)}`),
  output_hash: plain(`${SALT}.output_hash.${plain(OUTPUT)}`),
}
const commitment = { alg: 'sha256-salted', salted: ['request_hash', 'input_hash', 'output_hash'] }
const receipt = makeReceipt({ ...committed, commitment })
const plainReceipt = makeReceipt({
  request_hash: plain(REQUEST_TEXT),
  input_hash: plain(INPUT),
  output_hash: plain(OUTPUT),
})

test('the salted hash has these values', () => {
  expect(saltHash(SALT, 'input_hash', plain('hello'))).toBe(
    'sha256:3585ff9b191ab434ac990b5e88ab09eaef5d8a5b1cc4649fa686ef778da4ecc7',
  )
  expect(saltHash(SALT, 'output_hash', plain('hello'))).toBe(
    'sha256:4fcebcb7c5fdc7343ff9122241fd1039b7f8638c89b60dfae5e6b0ce0b9a64ff',
  )
})

describe('an opened receipt', () => {
  test('is about the request, the task and the output that its salt opens', () => {
    const opening = { salt: SALT, request: REQUEST, input: INPUT, output: OUTPUT }
    expect(verifyOpening(receipt, opening)).toMatchObject({
      ok: true,
      checks: [{ name: 'request' }, { name: 'input' }, { name: 'output' }],
    })
    const { ok, checks } = verifyReceipt(receipt, { jwks, opening })
    expect([ok, checks.filter(({ name }) => name === 'input')]).toEqual([true, [expect.objectContaining({ ok: true })]])
  })

  test.each([
    ['the task alone', { salt: SALT, input: INPUT }],
    ['plain hashes in place of the texts', { salt: SALT, input_hash: plain(INPUT), request_hash: plain(REQUEST_TEXT) }],
  ])('may disclose %s', (_, opening) => {
    expect(verifyOpening(receipt, opening).ok).toBe(true)
  })

  test.each([
    ['another task', { salt: SALT, input: `${INPUT} ` }],
    ['another output beside the right task', { salt: SALT, input: INPUT, output: INPUT }],
    ['another request', { salt: SALT, request: { ...REQUEST, path: '/api/loop' } }],
    ['another salt', { salt: 'BAECAwQFBgcICQoLDA0ODw', input: INPUT }],
    ['no salt', { input: INPUT }],
    ['a salt that is too short to hide anything', { salt: 'AAEC', input: INPUT }],
    ['a salt that is no text', { salt: 7, input: INPUT }],
    ['the output as the task', { salt: SALT, input: OUTPUT }],
    ['the salted hash as the plain one', { salt: SALT, input_hash: committed.input_hash }],
    ['a task and a hash that differ', { salt: SALT, input: INPUT, input_hash: plain(OUTPUT) }],
    ['half of a surrogate pair', { salt: SALT, input: '\ud83d' }],
    ['a request without a canonical form', { salt: SALT, request: { body: Number.NaN } }],
    ['nothing', { salt: SALT }],
    ['null', null],
  ])('is refused with %s', (_, opening) => {
    expect(verifyOpening(receipt, opening as never).ok).toBe(false)
    expect(verifyReceipt(receipt, { jwks, opening: opening as never }).ok).toBe(false)
  })

  test('does not take the hash of one member for another', () => {
    const swapped = makeReceipt({ ...committed, commitment, input_hash: committed.output_hash })
    expect(verifyOpening(swapped, { salt: SALT, input: OUTPUT }).ok).toBe(false)
  })

  test('with a commitment of another kind is refused', () => {
    for (const other of [{ ...commitment, alg: 'sha512-salted' }, { alg: 'sha256-salted', salted: ['kind'] }, 'none'])
      expect(verifyOpening(makeReceipt({ ...committed, commitment: other }), { salt: SALT, input: INPUT }).ok).toBe(
        false,
      )
  })

  test('that commits to no output cannot be opened to one', () => {
    const failure = makeReceipt({ ...committed, commitment, output_hash: null })
    expect(verifyOpening(failure, { salt: SALT, output: OUTPUT }).ok).toBe(false)
    expect(verifyOpening(failure, { salt: SALT, input: INPUT }).ok).toBe(true)
  })

  test('without a commitment is an old one: its plain hashes still open', () => {
    expect(verifyOpening(plainReceipt, { request: REQUEST, input: INPUT, output: OUTPUT }).ok).toBe(true)
    expect(verifyOpening(plainReceipt, { input: OUTPUT }).ok).toBe(false)
    expect(verifyReceipt(plainReceipt, { jwks }).ok).toBe(true)
  })

  test('that is no receipt never throws', () => {
    for (const value of [undefined, null, 7, [], {}, { ...receipt, input_hash: 7 }])
      expect(verifyOpening(value, { salt: SALT, input: INPUT }).ok).toBe(false)
  })
})

describe('what the check of an opening says', () => {
  const reasonOf = (opening: unknown, opened: unknown = receipt) =>
    verifyOpening(opened, opening as never).checks[0]?.reason

  test.each<[string, unknown, string]>([
    ['the right task', { salt: SALT, input: INPUT }, 'The receipt is about this task.'],
    ['another task', { salt: SALT, input: OUTPUT }, 'The receipt is not about this task'],
    ['a task that is no text', { salt: SALT, input: 7 }, 'The task has no hash'],
    ['half of a surrogate pair', { salt: SALT, input: '\ud83d' }, 'The task has no hash'],
    ['a hash that is none', { salt: SALT, input_hash: 'sha256:0' }, 'The task has no hash'],
    ['no salt', { input: INPUT }, 'the opening has no salt'],
    ['a salt in a list', { salt: [SALT], input: INPUT }, 'the opening has no salt'],
    ['a short salt', { salt: 'AAEC', input: INPUT }, 'the opening has no salt'],
    ['nothing', { salt: SALT }, 'Nothing is disclosed'],
    ['null', null, 'An opening is an object'],
  ])('with %s', (_, opening, reason) => {
    expect(reasonOf(opening)).toContain(reason)
  })

  test('of a receipt that is malformed, commits to nothing or in another way', () => {
    const opening = { salt: SALT, input: INPUT }
    expect(verifyOpening(makeReceipt({ ...committed, commitment, kind: 7 }), opening).checks).toEqual([
      { name: 'opening', ok: 'skipped', reason: 'The receipt is malformed.' },
    ])
    expect(reasonOf(opening, makeReceipt({ ...committed, commitment, input_hash: null }))).toBe(
      'The receipt commits to no task.',
    )
    const other = { alg: 'sha256-salted', salted: ['input_hash', 'kind'] }
    expect(reasonOf(opening, makeReceipt({ ...committed, commitment: other }))).toContain('is not sha256-salted')
    expect(verifyOpening(receipt, opening).does_not_prove).toHaveLength(1)
  })
})
