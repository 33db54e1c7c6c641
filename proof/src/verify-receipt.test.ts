import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  check,
  flipBit,
  issuerKey,
  jwks,
  LOG_ORIGIN,
  logKey,
  logReceipt,
  makeReceipt,
  parseBytes,
  testKey,
  untrustedKey,
} from '../test/fixtures.ts'
import { cosignatureLine, cosignatureMessage } from './cosignature.ts'
import { utf8 } from './encoding.ts'
import { parseNote } from './note.ts'
import { hashReceipt, receiptSigningBytes } from './receipt.ts'
import { verifyReceipt } from './verify-receipt.ts'

const fresh = makeReceipt()
const logged = logReceipt(fresh)
type Log = { origin: string; index: number; inclusion_proof: string[]; checkpoint: string }
const log = logged.log as Log
const withLog = (changes: Partial<Record<keyof Log, unknown>>) => ({ ...logged, log: { ...log, ...changes } })

test('a logged receipt verifies with the public keys alone', () => {
  const result = verifyReceipt(logged, { jwks, log: { origin: LOG_ORIGIN, required: true } })
  expect(result.checks.map(({ name, ok }) => [name, ok])).toEqual([
    ['shape', true],
    ['key', true],
    ['key_purpose', 'skipped'],
    ['signature', true],
    ['prev_hash', true],
    ['checkpoint', true],
    ['inclusion', true],
  ])
  expect(result.ok).toBe(true)
  expect(result.does_not_prove.join()).not.toContain('is in the public log')
})

test('no value in any place of a receipt makes the verifier throw, and none but the true one verifies', () => {
  const receipt = logReceipt(makeReceipt({ settlement: { status: 'settled', asserted_by: 'chain' } }))
  const verify = (value: unknown) => verifyReceipt(value, { jwks, log: { origin: LOG_ORIGIN, required: true } }).ok
  expect(verify(receipt)).toBe(true)
  const values = [Object.create(null), { toString: 1 }, 'constructor', '__proto__', [], [[]], 2 ** 60, -1, null]
  const replaceEach = (node: unknown): unknown[] => [
    ...values.filter((value) => value !== node),
    ...(node !== null && typeof node === 'object' ? replaceMembers(node) : []),
  ]
  const replaceMembers = (node: object) =>
    Object.entries(node).flatMap(([key, child]) =>
      replaceEach(child).map((value) => Object.assign(Array.isArray(node) ? [...node] : { ...node }, { [key]: value })),
    )
  expect(replaceEach(receipt).filter(verify)).toEqual([])
})

test('a receipt says who saw the payment: nobody but the chain says that there is none, and a report stays a report', () => {
  const verify = (status: string, asserted_by?: string) =>
    verifyReceipt(makeReceipt({ settlement: { status, ...(asserted_by && { asserted_by }) } }), { jwks })
  for (const witness of ['chain', 'facilitator', 'ledger']) expect(verify('settled', witness).ok).toBe(true)
  for (const [status, witness] of [
    ['reported', 'chain'],
    ['not_found', 'reported'],
    ['settled', 'nobody'],
    ['failed', 'somebody'],
  ] as const)
    expect([verify(status, witness).ok, check(verify(status, witness), 'asserted_by')], status).toEqual([false, false])
  expect(verify('reported', 'reported').does_not_prove.join()).toContain('only reported')
  // Receipts issued before: they do not say who saw it, or call a reported payment settled.
  expect(verify('settled').ok).toBe(true)
  expect(verify('settled', 'reported')).toMatchObject({ ok: true })
  expect(verify('settled', 'reported').does_not_prove.join()).toContain('only reported')
})

test('a receipt without a log entry verifies, unless the log is required', () => {
  const result = verifyReceipt(fresh, { jwks })
  expect(result.ok).toBe(true)
  expect(check(result, 'inclusion')).toBe('skipped')
  expect(result.does_not_prove.join()).toContain('is in the public log')
  const strict = verifyReceipt(fresh, { jwks, log: { required: true } })
  expect(strict.ok).toBe(false)
  expect(check(strict, 'inclusion')).toBe(false)
})

test('`log` may be absent, and inclusion verifies for any log size', () => {
  const { log: _, ...unsequenced } = fresh
  expect(verifyReceipt(unsequenced, { jwks }).ok).toBe(true)
  for (const [index, size] of [
    [0, 1],
    [0, 2],
    [7, 8],
    [8, 9],
    [300, 400],
  ] as const) {
    expect(verifyReceipt(logReceipt(fresh, { index, size }), { jwks, log: { required: true } }).ok).toBe(true)
  }
})

describe('any change is detected', () => {
  // ../test/bit-flips.long.test.ts tries every single bit.
  test('flipping a bit of the stored receipt', () => {
    const bytes = utf8(JSON.stringify(logged))
    fc.assert(
      fc.property(fc.nat(bytes.length * 8 - 1), (bit) => {
        const receipt = parseBytes(flipBit(bytes, bit))
        fc.pre(receipt !== undefined)
        expect(verifyReceipt(receipt, { jwks }).ok, `bit ${bit}`).toBe(false)
      }),
      { numRuns: 200 },
    )
  })

  test.each(Object.keys(fresh).filter((member) => member !== 'log'))("without its '%s'", (member) => {
    const { [member]: _, ...withoutMember } = logged
    expect(verifyReceipt(withoutMember, { jwks }).ok).toBe(false)
  })

  test('adding a member', () => {
    expect(check(verifyReceipt({ ...logged, note: 'added' }, { jwks }), 'signature')).toBe(false)
    const signature = { ...(logged.signature as object), note: 'added' }
    expect(check(verifyReceipt({ ...logged, signature }, { jwks }), 'key')).toBe(false)
  })

  test('replacing the signature with that of another receipt fails signature and inclusion', () => {
    const result = verifyReceipt({ ...logged, signature: makeReceipt({ run_id: 'run_02' }).signature }, { jwks })
    expect([check(result, 'signature'), check(result, 'inclusion')]).toEqual([false, false])
  })
})

describe('keys', () => {
  test('an unknown key fails, although the signature would match it', () => {
    const result = verifyReceipt(makeReceipt({}, untrustedKey), { jwks })
    expect(result.ok).toBe(false)
    expect([check(result, 'key'), check(result, 'signature')]).toEqual([false, 'skipped'])
  })

  test('an empty, missing or malformed key set trusts no key', () => {
    for (const keySet of [{ keys: [] }, undefined, null, 'keys', { keys: [null] }]) {
      expect(verifyReceipt(logged, { jwks: keySet as never }).ok).toBe(false)
    }
  })

  test('a key with another purpose is rejected for receipts', () => {
    const preview = testKey(1, 'attestation-preview')
    const result = verifyReceipt(fresh, { jwks: { keys: [preview.jwk] } })
    expect(result.ok).toBe(false)
    expect(check(result, 'key_purpose')).toBe(false)
    expect(check(verifyReceipt(fresh, { jwks: { keys: [testKey(1, 'receipt').jwk] } }), 'key_purpose')).toBe(true)
  })

  test('another algorithm name is rejected', () => {
    const signature = { ...(fresh.signature as object), alg: 'none' }
    expect(verifyReceipt({ ...fresh, signature }, { jwks }).ok).toBe(false)
  })
})

describe('the log', () => {
  const options = { jwks, log: { origin: LOG_ORIGIN } }

  test.each<[string, unknown, string]>([
    ['another index', withLog({ index: 4 }), 'inclusion'],
    ['an index as text', withLog({ index: '5' }), 'inclusion'],
    ['a truncated proof', withLog({ inclusion_proof: log.inclusion_proof.slice(1) }), 'inclusion'],
    ['a proof that is not a list', withLog({ inclusion_proof: 'AAAA' }), 'checkpoint'],
    ['another origin', withLog({ origin: 'other.test/log' }), 'checkpoint'],
    ['no checkpoint', withLog({ checkpoint: null }), 'checkpoint'],
    [
      'a checkpoint of another log',
      withLog({ checkpoint: (logReceipt(fresh, { origin: 'x.test' }).log as Log).checkpoint }),
      'checkpoint',
    ],
    [
      'a later checkpoint without its proof',
      withLog({ checkpoint: (logReceipt(fresh, { size: 12 }).log as Log).checkpoint }),
      'inclusion',
    ],
    ['a checkpoint signed by a stranger', logReceipt(fresh, { key: untrustedKey }), 'checkpoint'],
    ['a log that is a text', { ...logged, log: 'yes' }, 'checkpoint'],
    ['an empty log entry', { ...logged, log: {} }, 'checkpoint'],
  ])('%s fails', (_, receipt, name) => {
    const result = verifyReceipt(receipt, options)
    expect(result.ok).toBe(false)
    expect(check(result, name)).toBe(false)
    expect(check(result, 'signature')).toBe(true)
  })

  test('a valid entry of another log of the same issuer passes only when no origin is required', () => {
    const elsewhere = logReceipt(fresh, { origin: 'other.test/log' })
    expect(verifyReceipt(elsewhere, { jwks }).ok).toBe(true)
    const result = verifyReceipt(elsewhere, options)
    expect([result.ok, check(result, 'checkpoint')]).toEqual([false, false])
  })

  test('only keys with purpose log or without a purpose are accepted for checkpoints', () => {
    const trust = (purpose: string) => ({ jwks: { keys: [issuerKey.jwk, { ...logKey.jwk, purpose }] } })
    expect(verifyReceipt(logged, trust('log')).ok).toBe(true)
    expect(check(verifyReceipt(logged, trust('receipt')), 'checkpoint')).toBe(false)
  })

  test('the keys of the log can be given separately from the issuer keys', () => {
    const apart = { jwks: { keys: [issuerKey.jwk] }, log: { keys: [logKey.jwk] } }
    expect(verifyReceipt(logged, apart).ok).toBe(true)
    expect(verifyReceipt(logged, { ...apart, log: {} }).ok).toBe(false)
  })

  test('witnesses are checked when given', () => {
    const witness = testKey(21)
    const time = 1_763_305_200
    const message = cosignatureMessage(parseNote(log.checkpoint)!.text, time)
    const line = cosignatureLine({ name: 'w.test', publicKey: witness.publicKey }, time, witness.sign(message))
    const witnessed = withLog({ checkpoint: log.checkpoint + line })
    const trust = { jwks, log: { witnesses: [{ name: 'w.test', key: witness.jwk }] } }
    expect(check(verifyReceipt(witnessed, trust), 'witnesses')).toBe(true)
    expect(verifyReceipt(witnessed, trust).does_not_prove.join()).not.toContain('same entries')
    expect(verifyReceipt(logged, trust).ok).toBe(false)
    expect(verifyReceipt(fresh, trust).ok).toBe(true)
    expect(verifyReceipt(fresh, { jwks, log: { ...trust.log, required: true } }).ok).toBe(false)
  })
})

describe('prev_hash', () => {
  const next = makeReceipt({ receipt_id: 'rcpt_02', prev_hash: hashReceipt(logged) })

  test('matches the previous receipt, logged or not', () => {
    expect(hashReceipt(logged)).toBe(hashReceipt(fresh))
    expect(check(verifyReceipt(next, { jwks, previous: logged }), 'prev_hash')).toBe(true)
    expect(check(verifyReceipt(next, { jwks }), 'prev_hash')).toBe('skipped')
  })

  test.each<[string, unknown]>([
    ['another receipt', makeReceipt({ receipt_id: 'rcpt_09' })],
    ['a receipt of another run', makeReceipt({ run_id: 'run_02' })],
    ['no receipt', { schema: 'nonsense' }],
    ['nothing at all', null],
  ])('does not continue %s', (_, previous) => {
    const result = verifyReceipt(next, { jwks, previous })
    expect([result.ok, check(result, 'prev_hash')]).toEqual([false, false])
  })

  test('a first receipt has no previous receipt', () => {
    expect(verifyReceipt(fresh, { jwks, previous: null }).ok).toBe(true)
    expect(verifyReceipt(fresh, { jwks, previous: logged }).ok).toBe(false)
  })
})

test('it never throws, whatever the input', () => {
  fc.assert(
    fc.property(fc.anything({ withBigInt: true, withDate: true, withMap: true, withNullPrototype: true }), (value) => {
      expect(verifyReceipt(value, { jwks }).ok).toBe(false)
    }),
    { numRuns: 100 },
  )
  fc.assert(
    fc.property(fc.constantFrom(...Object.keys(logged)), fc.anything(), (member, value) => {
      // Replacing null with null is no change, and neither is a log that is undefined instead of null.
      fc.pre(value !== logged[member] && !(member === 'log' && (value ?? null) === null))
      expect(verifyReceipt({ ...logged, [member]: value }, { jwks }).ok).toBe(false)
    }),
    { numRuns: 200 },
  )
  fc.assert(
    fc.property(
      fc.constantFrom<keyof Log>('origin', 'index', 'inclusion_proof', 'checkpoint'),
      fc.anything(),
      (member, value) => {
        expect(verifyReceipt(withLog({ [member]: value }), { jwks }).ok).toBe(false)
      },
    ),
    { numRuns: 100 },
  )
})

test('what is signed does not change when the signature and the place in the log are added', () => {
  const { signature: _, log: __, ...content } = fresh
  expect(receiptSigningBytes(logged)).toEqual(receiptSigningBytes(content))
})

describe('a malformed receipt', () => {
  const notes = ['key', 'key_purpose', 'signature', 'prev_hash', 'checkpoint', 'inclusion']
  const malformed = (reason: string) => [
    { name: 'shape', ok: false, reason },
    ...notes.map((name) => ({ name, ok: 'skipped', reason: 'The receipt is malformed.' })),
  ]
  const textOrNull = 'a text or null'
  const objectOrNull = 'an object or null'
  const hashOrNull = 'sha256: and 64 hexadecimal digits, or null'
  test.each<[string, unknown, string]>([
    ['receipt_id', '', 'a text'],
    ['run_id', null, 'a text'],
    ['loop_id', 7, textOrNull],
    ['issued_at', '2026-02-30T15:00:00Z', 'an ISO 8601 time in UTC'],
    ['kind', 7, 'a text'],
    ['agent_id', '', textOrNull],
    ['route', [], objectOrNull],
    ['pricing', 'free', objectOrNull],
    ['governance', 7, objectOrNull],
    ['request_hash', 'sha256:0', hashOrNull],
    ['input_hash', 7, hashOrNull],
    ['output_hash', '', hashOrNull],
    ['verification', true, objectOrNull],
    ['settlement', [], objectOrNull],
    ['prev_hash', 'none', hashOrNull],
  ])("is refused for its '%s', although a trusted key signed it", (member, value, expected) => {
    const result = verifyReceipt(makeReceipt({ [member]: value }), { jwks })
    expect([result.ok, result.checks]).toEqual([false, malformed(`'${member}' must be ${expected}.`)])
  })

  test('says what is wrong with it', () => {
    const { kind: _, ...withoutKind } = fresh
    expect(verifyReceipt(withoutKind, { jwks }).checks).toEqual(malformed("'kind' is missing."))
    expect(verifyReceipt(makeReceipt({ schema: 'run-receipt/v2' }), { jwks }).checks).toEqual(
      malformed("The schema is not 'run-receipt/v1'."),
    )
    expect(verifyReceipt([], { jwks }).checks).toEqual(malformed('A receipt is a JSON object.'))
    expect(verifyReceipt({ ...fresh, signature: 'x' }, { jwks }).checks).toEqual(
      malformed("'signature' must be an object."),
    )
  })

  test('is refused when the status of its settlement, or who says it, is no text', () => {
    for (const settlement of [
      { status: 7, asserted_by: 'chain' },
      { status: 'settled', asserted_by: ['chain'] },
      { status: ['settled'], asserted_by: 'chain' },
    ])
      expect(verifyReceipt(makeReceipt({ settlement }), { jwks }).checks[4]).toEqual({
        name: 'asserted_by',
        ok: false,
        reason: 'The status of the settlement, and who says it, must be text.',
      })
  })

  test('is no previous receipt, although the hash is its own', () => {
    const after = (previous: object) => {
      const receipt = makeReceipt({ receipt_id: 'rcpt_02', prev_hash: hashReceipt(previous) })
      return verifyReceipt(receipt, { jwks, previous }).checks.find(({ name }) => name === 'prev_hash')
    }
    expect(after(fresh)).toMatchObject({ ok: true, reason: 'It has the hash of the previous receipt.' })
    expect(after(makeReceipt({ kind: 7 }))).toMatchObject({
      ok: false,
      reason: expect.stringContaining("'kind' must be"),
    })
    expect(after(makeReceipt({ run_id: 'run_02' }))).toMatchObject({
      ok: false,
      reason: 'The previous receipt belongs to another run.',
    })
    const next = makeReceipt({ prev_hash: hashReceipt(fresh) })
    expect(check(verifyReceipt(next, { jwks, previous: { ...fresh, extra: Number.NaN } }), 'prev_hash')).toBe(false)
  })
})

describe('what a receipt does not prove', () => {
  test('is said for its log, its witnesses and its settlement', () => {
    const sentences = (receipt: unknown) =>
      verifyReceipt(receipt, { jwks }).does_not_prove.map((text) => text.split(':')[0])
    const always = [
      'That the output is correct or useful',
      'That the settlement it names happened on chain',
      'That the times, prices and decisions are true',
      'That the key set belongs to the issuer',
    ]
    const everyone = 'That the log shows everyone the same entries'
    expect(sentences(logged)).toEqual([...always, everyone])
    expect(sentences(fresh)).toEqual([...always, 'That the receipt is in the public log', everyone])
    expect(sentences(makeReceipt({ settlement: { asserted_by: 'chain', status: 'settled' } }))[1]).toBe(always[1])
  })

  test('witnesses that were asked for are a check of their own, skipped while there is no log entry', () => {
    const trust = { jwks, log: { witnesses: [{ name: 'w.test', key: testKey(21).jwk }] } }
    expect(verifyReceipt(fresh, trust).checks.slice(-3)).toEqual(
      ['checkpoint', 'inclusion', 'witnesses'].map((name) => ({
        name,
        ok: 'skipped',
        reason: 'The receipt is not in the log yet.',
      })),
    )
    expect(verifyReceipt(fresh, { jwks }).checks.at(-1)?.name).toBe('inclusion')
  })

  test('a log entry without a name of the log is malformed', () => {
    for (const origin of ['', 7, undefined])
      expect(verifyReceipt(withLog({ origin }), { jwks }).checks.slice(-2)).toMatchObject([
        { name: 'checkpoint', ok: false, reason: expect.stringContaining('must be {origin, index') },
        { name: 'inclusion', ok: 'skipped' },
      ])
  })
})
