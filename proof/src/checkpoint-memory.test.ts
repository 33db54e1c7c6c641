import { beforeEach, describe, expect, test } from 'vitest'
import { fillerHashes, LOG_ORIGIN, logKey, makeCheckpoint, untrustedKey } from '../test/fixtures.ts'
import {
  type CheckpointStore,
  consistencyProof,
  hashLeaf,
  memoryCheckpoints,
  rememberCheckpoint,
  toBase64,
  utf8,
  verifyLogEvidence,
} from './proof.ts'

const honest = fillerHashes(9)
const forked = [...honest.slice(0, 3), hashLeaf(utf8('another entry')), ...honest.slice(4)]
const keys = [logKey.jwk]
const now = new Date('2026-11-16T10:00:00Z')
const head = (size: number, leaves = honest, key = logKey) => makeCheckpoint(leaves.slice(0, size), key)
/** The log as it answers when it serves these leaves. */
const proofs = (leaves: Uint8Array[]) => async (from: number, to: number) =>
  to > leaves.length ? [] : consistencyProof(leaves.slice(0, to), from).map(toBase64)

let store: CheckpointStore
beforeEach(() => {
  store = memoryCheckpoints()
})
const see = (note: unknown, more: object = {}) =>
  rememberCheckpoint(note, { store, origin: LOG_ORIGIN, keys, now, fetchConsistency: proofs(honest), ...more })

const says = (ok: boolean | 'skipped', reason: string) => ({
  name: 'log_memory',
  ok,
  reason: expect.stringContaining(reason),
})

describe('a reader that remembers', () => {
  test('says what it compared', async () => {
    expect((await see('nonsense')).check).toEqual(says('skipped', 'no trusted checkpoint'))
    expect((await see(head(3))).check).toEqual(says(true, 'first checkpoint'))
    expect((await see(head(3))).check).toEqual(says(true, 'The same tree of 3 entries'))
    expect((await see(head(5))).check).toEqual(says(true, 'agrees with the tree of 3 entries'))
    expect((await see(head(5, forked))).check).toEqual(says(false, 'another tree of 5 entries before: it has forked'))
    expect((await see(head(9, forked))).check).toEqual(says(false, 'tree of 9 entries extends that of 5'))
    expect((await see(head(9), { fetchConsistency: undefined })).check).toEqual(says('skipped', 'tree of 5 entries'))
    expect((await see(head(3), { before: head(5) })).check).toEqual(
      says(false, 'has 3 entries and had 5 before: it was rolled back'),
    )
  })

  test('needs no proof that a log grew from nothing', async () => {
    await see(head(0))
    expect((await see(head(3), { fetchConsistency: undefined })).check.ok).toBe(true)
  })

  test('trusts the first checkpoint, follows the log as it grows and keeps the largest', async () => {
    for (const size of [0, 3, 3, 5, 9]) expect((await see(head(size))).check.ok).toBe(true)
    expect(store.read(LOG_ORIGIN)).toBe(head(9))
    // An older receipt is not a rollback: its checkpoint was saved before.
    expect((await see(head(4))).check.ok).toBe(true)
    expect(store.read(LOG_ORIGIN)).toBe(head(9))
  })

  test('objects to a fork at one size with evidence that verifies', async () => {
    await see(head(9))
    const { check, evidence } = await see(head(9, forked))
    expect([check.ok, verifyLogEvidence(evidence, { keys }).ok]).toEqual([false, true])
    expect(store.read(LOG_ORIGIN)).toBe(head(9))
  })

  test('objects to a larger tree that does not extend the smaller, whatever proof the log gives', async () => {
    await see(head(5))
    for (const leaves of [honest, forked])
      expect((await see(head(9, forked), { fetchConsistency: proofs(leaves) })).check.ok).toBe(false)
    expect(store.read(LOG_ORIGIN)).toBe(head(5))
  })

  test('objects to a newest checkpoint that is smaller than before, with evidence that verifies', async () => {
    await see(head(9))
    const { check, evidence } = await see(head(5), { before: store.read(LOG_ORIGIN) })
    expect([check.ok, evidence?.kind, verifyLogEvidence(evidence, { keys }).ok]).toEqual([false, 'rollback', true])
  })

  test('two answers that overtake each other are no rollback', async () => {
    await see(head(3))
    const before = store.read(LOG_ORIGIN)
    expect((await see(head(9), { before })).check.ok).toBe(true)
    expect((await see(head(5), { before })).check.ok).toBe(true)
    expect((await see(head(3), { before })).check.ok).toBe(true)
  })

  test('a saved receipt from a branch that the log has left is objected to', async () => {
    await see(head(9))
    expect((await see(head(5, forked))).check.ok).toBe(false)
  })

  test('what cannot be compared is skipped and not remembered', async () => {
    await see(head(5))
    const offline = { fetchConsistency: undefined }
    const unreachable = {
      fetchConsistency: async () => {
        throw new Error('not reachable')
      },
    }
    expect((await see(head(9, forked), offline)).check.ok).toBe('skipped')
    expect((await see(head(9, forked), unreachable)).check.ok).toBe('skipped')
    expect(store.read(LOG_ORIGIN)).toBe(head(5))
  })

  test('a checkpoint under another key is neither remembered nor compared', async () => {
    expect((await see(head(9, honest, untrustedKey))).check.ok).toBe('skipped')
    expect(store.read(LOG_ORIGIN)).toBeUndefined()
    // A new log under an old name: the key of what is remembered is not trusted any more.
    store.write(LOG_ORIGIN, head(9, forked, untrustedKey))
    expect((await see(head(3))).check.ok).toBe(true)
    expect(store.read(LOG_ORIGIN)).toBe(head(3))
  })
})
