import { describe, expect, test } from 'vitest'
import { fillerHashes, LOG_ORIGIN, logKey, makeCheckpoint, testKey, untrustedKey } from '../test/fixtures.ts'
import { cosign, witnessVkey } from '../test/witnesses.ts'
import {
  consistencyProof,
  formatVerifierKey,
  hashLeaf,
  inclusionProof,
  LOG_EVIDENCE_SCHEMA,
  type LogPolicy,
  NOTE_ED25519,
  parseLogPolicy,
  rootOfLeafHashes,
  toBase64,
  utf8,
  verifyLogEvidence,
} from './proof.ts'

const keys = [formatVerifierKey({ name: LOG_ORIGIN, type: NOTE_ED25519, publicKey: logKey.publicKey })]
const witness = testKey(31)
const parsed = parseLogPolicy(`log ${keys[0]}\nwitness w ${witnessVkey('witness.example/w', witness)}\nquorum w\n`) as {
  policy: LogPolicy
}
const { policy } = parsed

const honest = fillerHashes(9)
const forked = [...honest.slice(0, 3), hashLeaf(utf8('another entry')), ...honest.slice(4)]
const observed_at = ['2026-11-16T10:00:00.000Z', '2026-11-16T10:01:00.000Z']
const base = { schema: LOG_EVIDENCE_SCHEMA, origin: LOG_ORIGIN, observed_at }
const head = (size: number, leaves = honest, key = logKey) => makeCheckpoint(leaves.slice(0, size), key)
const forkProof = (size: number, leaves: Uint8Array[]) => ({
  root_at_smaller_size: toBase64(rootOfLeafHashes(leaves.slice(0, size))),
  consistency_proof: consistencyProof(leaves, size).map(toBase64),
})
/** The check `contradiction` and all others, without their reasons. */
const contradictionOf = (evidence: unknown, options: Parameters<typeof verifyLogEvidence>[1] = { keys }) => {
  const { checks } = verifyLogEvidence(evidence, options)
  return [checks.find(({ name }) => name === 'contradiction')?.reason, checks.map(({ name, ok }) => `${name} ${ok}`)]
}
const holds = (evidence: object) => verifyLogEvidence(evidence, { keys }).ok

describe('a fork', () => {
  test('holds for two roots at one size, and for a larger tree that does not extend the smaller', () => {
    expect(holds({ ...base, kind: 'fork', checkpoints: [head(9), head(9, forked)] })).toBe(true)
    for (let size = 4; size < 9; size += 1) {
      const fork = forkProof(size, forked)
      expect(holds({ ...base, kind: 'fork', checkpoints: [head(size), head(9, forked)], fork })).toBe(true)
      expect(holds({ ...base, kind: 'fork', checkpoints: [head(9, forked), head(size)], fork })).toBe(true)
    }
  })

  test('nothing holds against an honest log', () => {
    expect(holds({ ...base, kind: 'fork', checkpoints: [head(9), head(9)] })).toBe(false)
    for (let size = 0; size < 9; size += 1) {
      for (const leaves of [honest, forked])
        expect(
          holds({ ...base, kind: 'fork', checkpoints: [head(size), head(9)], fork: forkProof(size, leaves) }),
        ).toBe(false)
    }
    expect(holds({ ...base, kind: 'fork', checkpoints: [head(4), head(9)] })).toBe(false)
    const invented = { root_at_smaller_size: toBase64(new Uint8Array(32)), consistency_proof: [] }
    expect(holds({ ...base, kind: 'fork', checkpoints: [head(4), head(9)], fork: invented })).toBe(false)
  })

  test('says what the log signed', () => {
    const fork = (checkpoints: string[], proof?: object) => ({ ...base, kind: 'fork', checkpoints, fork: proof })
    const checks = (contradiction: boolean) => [
      'shape true',
      'checkpoint true',
      'checkpoint true',
      `contradiction ${contradiction}`,
    ]
    expect(contradictionOf(fork([head(9), head(9, forked)]))).toEqual([
      'The log signed two roots for 9 entries.',
      checks(true),
    ])
    expect(contradictionOf(fork([head(9), head(9)]))).toEqual(['Both checkpoints have the same root.', checks(false)])
    expect(contradictionOf(fork([head(5), head(9, forked)], forkProof(5, forked)))).toEqual([
      'The tree of 9 entries does not extend the signed one of 5.',
      checks(true),
    ])
    expect(contradictionOf(fork([head(5), head(9)], forkProof(5, honest)))).toEqual([
      'The larger tree extends the smaller one.',
      checks(false),
    ])
    expect(contradictionOf(fork([head(5), head(9)]))).toEqual([
      'The proof does not show what the larger tree has at the smaller size.',
      checks(false),
    ])
    expect(contradictionOf(fork([head(9), head(9, forked, untrustedKey)]))).toEqual([
      'A checkpoint is not signed by the log.',
      ['shape true', 'checkpoint true', 'checkpoint false', 'contradiction skipped'],
    ])
  })

  test('does not hold when the log did not sign one of the two', () => {
    expect(verifyLogEvidence({ ...base, kind: 'fork', checkpoints: [head(9), head(9, forked)] }, {}).ok).toBe(false)
    expect(holds({ ...base, kind: 'fork', checkpoints: [head(9), head(9, forked, untrustedKey)] })).toBe(false)
    expect(holds({ ...base, origin: 'other.example', kind: 'fork', checkpoints: [head(9), head(9, forked)] })).toBe(
      false,
    )
  })

  test('names the witnesses that cosigned both sides', () => {
    const checkpoints = [head(9), head(9, forked)].map(
      (note, i) => note + cosign(note, 'witness.example/w', witness, 1_794_000_000 + i),
    )
    const { ok, checks } = verifyLogEvidence({ ...base, kind: 'fork', checkpoints }, { policy })
    expect(ok).toBe(true)
    expect(checks.find(({ name }) => name === 'double_cosigners')?.reason).toBe(
      'Witnesses that cosigned both trees: w.',
    )
    const oneSide = { ...base, kind: 'fork', checkpoints: [checkpoints[0], head(9, forked)] }
    const names = verifyLogEvidence(oneSide, { policy }).checks.map(({ name }) => name)
    expect(names).toEqual(['shape', 'checkpoint', 'checkpoint', 'contradiction'])
  })
})

describe('a rollback', () => {
  test('holds for a smaller checkpoint after a larger one, and says that the order is the word of the monitor', () => {
    const { ok, does_not_prove } = verifyLogEvidence(
      { ...base, kind: 'rollback', checkpoints: [head(9), head(5)] },
      { keys },
    )
    expect([ok, does_not_prove.some((sentence) => sentence.includes('order'))]).toEqual([true, true])
    expect(holds({ ...base, kind: 'rollback', checkpoints: [head(5), head(9)] })).toBe(false)
    expect(holds({ ...base, kind: 'rollback', checkpoints: [head(9), head(9, forked)] })).toBe(false)
  })

  test('says what was shown, and needs the time at which it was', () => {
    const rollback = { ...base, kind: 'rollback', checkpoints: [head(9), head(5)] }
    expect(contradictionOf(rollback)).toEqual([
      'The log signed a tree of 9 entries, and a tree of 5 was shown later.',
      ['shape true', 'checkpoint true', 'checkpoint true', 'contradiction true', 'order skipped'],
    ])
    expect(contradictionOf({ ...rollback, checkpoints: [head(5), head(9)] })[0]).toBe(
      'The later checkpoint is not smaller.',
    )
    expect(holds({ ...rollback, observed_at: [observed_at[0], 'soon'] })).toBe(false)
  })

  test('the order is proven when a witness cosigned the smaller tree later', () => {
    const [large, small] = [head(9), head(5)]
    const at = (note: string, time: number) => note + cosign(note, 'witness.example/w', witness, time)
    const evidence = (times: [number, number]) => ({
      ...base,
      kind: 'rollback',
      checkpoints: [at(large, times[0]), at(small, times[1])],
    })
    const orderOf = (times: [number, number]) =>
      verifyLogEvidence(evidence(times), { policy }).checks.find(({ name }) => name === 'order')?.ok
    expect([orderOf([100, 101]), orderOf([101, 100])]).toEqual([true, 'skipped'])
    expect(orderOf([100, 100])).toBe('skipped')
    const { checks, does_not_prove } = verifyLogEvidence(evidence([100, 101]), { policy })
    expect(checks.at(-1)?.reason).toBe('The cosignatures show the order: w.')
    expect(does_not_prove.join()).not.toContain('order')
    // A witness that cosigned the larger tree once more after the smaller one shows no order.
    const again = {
      ...evidence([100, 101]),
      checkpoints: [at(large, 100) + cosign(large, 'witness.example/w', witness, 102), at(small, 101)],
    }
    expect(verifyLogEvidence(again, { policy }).checks.at(-1)).toMatchObject({ name: 'order', ok: 'skipped' })
  })
})

describe('a withheld entry', () => {
  const entry = (changes: object = {}) => ({
    ...base,
    kind: 'withheld_entry',
    checkpoints: [head(9)],
    observed_at: [observed_at[0]],
    entry: {
      index: 4,
      leaf_hash: toBase64(honest[4]!),
      inclusion_proof: inclusionProof(honest, 4).map(toBase64),
      shown: null,
      ...changes,
    },
  })

  test('holds for an entry of the tree whose content was not shown, or another content', () => {
    expect(holds(entry())).toBe(true)
    expect(holds(entry({ shown: toBase64(utf8('entry 5')) }))).toBe(true)
  })

  test('does not hold for the right content, another place, or a hash that is not in the tree', () => {
    expect(holds(entry({ shown: toBase64(utf8('entry 4')) }))).toBe(false)
    expect(holds(entry({ index: 5 }))).toBe(false)
    expect(holds(entry({ leaf_hash: toBase64(new Uint8Array(32)) }))).toBe(false)
  })

  test('says which entry it is, and that what was shown is the word of the monitor', () => {
    expect(contradictionOf(entry())).toEqual([
      'The signed tree has entry 4, and its content was not shown.',
      ['shape true', 'checkpoint true', 'contradiction true', 'shown skipped'],
    ])
    expect(verifyLogEvidence(entry(), { keys }).does_not_prove.join()).toContain('to somebody else, or later')
    expect(contradictionOf(entry({ shown: toBase64(utf8('entry 4')) }))[0]).toBe(
      'The content that was shown is the content of the entry.',
    )
    expect(contradictionOf(entry({ index: 5 }))[0]).toBe('The proof does not show that the tree has this entry.')
  })
})

const bothHeads = [head(9), head(9, forked)]
test.each<[string, unknown, string]>([
  ['text', 'evidence', 'Evidence is a JSON object.'],
  ['null', null, 'Evidence is a JSON object.'],
  ['another schema', { ...base, schema: 'log-evidence/v2', kind: 'fork', checkpoints: bothHeads }, 'The schema is not'],
  ['an unknown kind', { ...base, kind: 'toString', checkpoints: bothHeads }, 'The kind of evidence is unknown.'],
  ['no kind', { ...base, checkpoints: bothHeads }, 'The kind of evidence is unknown.'],
  ['one checkpoint', { ...base, kind: 'fork', checkpoints: [head(9)] }, "'checkpoints' must have 2 values."],
  [
    'no times',
    { ...base, kind: 'fork', checkpoints: bothHeads, observed_at: 'now' },
    "'observed_at' must have 2 values.",
  ],
  ['a long origin', { ...base, origin: 'x'.repeat(300), kind: 'fork', checkpoints: bothHeads }, "'origin' must be"],
])('evidence with %s is none', (_, evidence, reason) => {
  expect(verifyLogEvidence(evidence, { keys })).toEqual({
    ok: false,
    checks: [{ name: 'shape', ok: false, reason: expect.stringContaining(reason) }],
    does_not_prove: [],
  })
})

test('evidence with checkpoints that are no text does not hold and does not throw', () => {
  expect(holds({ ...base, kind: 'fork', checkpoints: [{}, 7] })).toBe(false)
})
