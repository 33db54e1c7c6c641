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

  test('does not hold when the log did not sign one of the two', () => {
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
    expect(checks.find(({ name }) => name === 'double_cosigners')?.reason).toContain('w')
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
})

test.each([
  ['text', 'evidence'],
  ['null', null],
  ['another schema', { ...base, schema: 'log-evidence/v2', kind: 'fork', checkpoints: [] }],
  ['an unknown kind', { ...base, kind: 'toString', checkpoints: [head(9), head(9, forked)] }],
  ['one checkpoint', { ...base, kind: 'fork', checkpoints: [head(9)] }],
  ['checkpoints that are no text', { ...base, kind: 'fork', checkpoints: [{}, 7] }],
  ['a long origin', { ...base, origin: 'x'.repeat(300), kind: 'fork', checkpoints: [head(9), head(9, forked)] }],
])('evidence with %s does not hold and does not throw', (_, evidence) => {
  expect(verifyLogEvidence(evidence, { keys }).ok).toBe(false)
})
