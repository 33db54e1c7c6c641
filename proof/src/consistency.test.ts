import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { bitFlips, fillerHashes } from '../test/fixtures.ts'
import { consistencyProof, consistencyProofFromNodes, consistencyRanges, verifyConsistency } from './consistency.ts'
import { toBase64, toHex, utf8 } from './encoding.ts'
import { MAX_PROOF_HASHES } from './inclusion.ts'
import { emptyRoot, hashLeaf, nodesInMemory, rootOfLeafHashes, rootOfNodes } from './merkle-tree.ts'

const leafHashes = fillerHashes(256)
const read = nodesInMemory(leafHashes)
const roots = Array.from({ length: 257 }, (_, size) => rootOfNodes(size, read))
const claimOf = (oldSize: number, newSize: number) => ({
  oldSize,
  newSize,
  oldRoot: roots[oldSize]!,
  newRoot: roots[newSize]!,
  proof: consistencyProofFromNodes(oldSize, newSize, read),
})

describe('RFC 6962 section 2.1.3', () => {
  // The example: from 3 leaves to 7 is [c, d, g, l], from 4 is [l], from 6 is [i, j, k].
  const sevenLeaves = fillerHashes(7)
  const range = (start: number, end: number) => toHex(rootOfLeafHashes(sevenLeaves.slice(start, end)))
  test.each([
    [3, [range(2, 3), range(3, 4), range(0, 2), range(4, 7)]],
    [4, [range(4, 7)]],
    [6, [range(4, 6), range(6, 7), range(0, 4)]],
  ])('from %i leaves to 7', (oldSize, proof) => {
    expect(consistencyProof(sevenLeaves, oldSize).map(toHex)).toEqual(proof)
  })
})

test('every pair of sizes up to 256 leaves is consistent', () => {
  for (let newSize = 0; newSize <= 256; newSize += 1) {
    for (let oldSize = 0; oldSize <= newSize; oldSize += 1) {
      if (!verifyConsistency(claimOf(oldSize, newSize))) throw new Error(`from ${oldSize} to ${newSize}`)
    }
  }
})

test('a rolled-back log is detected: a smaller tree never passes as the newer one', () => {
  for (let newSize = 1; newSize <= 64; newSize += 1) {
    for (let oldSize = 0; oldSize < newSize; oldSize += 1) {
      const { oldRoot, newRoot, proof } = claimOf(oldSize, newSize)
      expect(verifyConsistency({ oldSize: newSize, oldRoot: newRoot, newSize: oldSize, newRoot: oldRoot, proof })).toBe(
        false,
      )
    }
  }
})

test('a forked log is detected: with one changed leaf below the old size, no proof matches the old root', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 200 }), fc.nat(56), fc.nat(199), (oldSize, appended, at) => {
      const newSize = oldSize + appended
      const forkAt = at % oldSize
      const fork = leafHashes.slice(0, newSize).with(forkAt, hashLeaf(utf8('rewritten')))
      const newRoot = rootOfLeafHashes(fork)
      const honestClaim = claimOf(oldSize, newSize)
      expect(verifyConsistency({ ...honestClaim, newRoot, proof: consistencyProof(fork, oldSize) })).toBe(false)
      expect(verifyConsistency({ ...honestClaim, newRoot })).toBe(false)
      // The fork is a consistent log in itself, so only the old root reveals it.
      const forkedOldRoot = rootOfLeafHashes(fork.slice(0, oldSize))
      expect(
        verifyConsistency({ ...honestClaim, oldRoot: forkedOldRoot, newRoot, proof: consistencyProof(fork, oldSize) }),
      ).toBe(true)
    }),
    { numRuns: 150 },
  )
})

test('a truncated log is detected: without its last leaf it does not match the checkpoint', () => {
  for (let newSize = 2; newSize <= 64; newSize += 1) {
    const whole = claimOf(newSize - 1, newSize)
    const truncatedClaim = { ...whole, newRoot: roots[newSize - 1]! }
    expect(verifyConsistency(truncatedClaim)).toBe(false)
    expect(
      verifyConsistency({ ...whole, oldSize: newSize, oldRoot: roots[newSize]!, newRoot: roots[newSize - 1]! }),
    ).toBe(false)
  }
})

test.each([
  [6, 13],
  [8, 13],
  [1, 2],
  [7, 7],
])('any flipped bit in either root or the proof fails, from %i to %i', (oldSize, newSize) => {
  const claim = claimOf(oldSize, newSize)
  for (const oldRoot of bitFlips(claim.oldRoot)) expect(verifyConsistency({ ...claim, oldRoot })).toBe(false)
  for (const newRoot of bitFlips(claim.newRoot)) expect(verifyConsistency({ ...claim, newRoot })).toBe(false)
  claim.proof.forEach((step, i) => {
    for (const alteredHash of bitFlips(step))
      expect(verifyConsistency({ ...claim, proof: claim.proof.with(i, alteredHash) })).toBe(false)
  })
})

test('a proof is valid for its own two sizes only', () => {
  fc.assert(
    fc.property(fc.nat(100), fc.nat(100), fc.nat(100), fc.nat(100), (a, b, otherOldSize, otherNewSize) => {
      const [oldSize, newSize] = [Math.min(a, b), Math.max(a, b)] as [number, number]
      const { proof } = claimOf(oldSize, newSize)
      fc.pre(
        oldSize > 0 &&
          oldSize < newSize &&
          (otherOldSize !== oldSize || otherNewSize !== newSize) &&
          otherOldSize > 0 &&
          otherOldSize < otherNewSize,
      )
      expect(
        verifyConsistency({
          oldSize: otherOldSize,
          oldRoot: roots[otherOldSize]!,
          newSize: otherNewSize,
          newRoot: roots[otherNewSize]!,
          proof,
        }),
      ).toBe(false)
    }),
    { numRuns: 300 },
  )
})

test('a root does not verify with a smaller or larger size than its own', () => {
  // The hashes lead to both roots, but not for trees of the claimed sizes.
  const toTwo = claimOf(1, 2)
  expect(verifyConsistency({ ...toTwo, newSize: 3 })).toBe(false)
  expect(verifyConsistency({ ...toTwo, newSize: 4 })).toBe(false)
  const toFour = claimOf(1, 4)
  expect(verifyConsistency({ ...toFour, newSize: 2 })).toBe(false)
  expect(verifyConsistency({ ...claimOf(7, 8), oldSize: 3, newSize: 4 })).toBe(false)
})

describe('malformed claims are false', () => {
  const validClaim = claimOf(6, 13)
  const first = validClaim.proof[0]!
  test.each<[string, Record<string, unknown>]>([
    ['a fraction of a size', { oldSize: 6.5 }],
    ['a negative size', { oldSize: -6 }],
    ['a size as text', { newSize: '13' }],
    ['a size beyond 2^53', { newSize: 2 ** 53 }],
    ['an old size of zero with a proof', { oldSize: 0, oldRoot: emptyRoot() }],
    ['an empty proof', { proof: [] }],
    ['a truncated proof', { proof: validClaim.proof.slice(0, -1) }],
    ['a proof with one hash more', { proof: [...validClaim.proof, first] }],
    ['too long a proof', { proof: Array.from({ length: MAX_PROOF_HASHES + 1 }, () => first) }],
    ['a short hash in the proof', { proof: validClaim.proof.with(1, first.slice(1)) }],
    ['a proof that is not a list', { proof: { length: 0 } }],
    ['a short root', { newRoot: first.slice(1) }],
  ])('%s', (_, change) => {
    expect(verifyConsistency(validClaim)).toBe(true)
    expect(verifyConsistency({ ...validClaim, ...change } as typeof validClaim)).toBe(false)
  })

  test('an empty tree has the empty root, old or new', () => {
    expect(verifyConsistency({ oldSize: 0, oldRoot: emptyRoot(), newSize: 5, newRoot: roots[5]!, proof: [] })).toBe(
      true,
    )
    expect(verifyConsistency({ oldSize: 0, oldRoot: roots[1]!, newSize: 5, newRoot: roots[5]!, proof: [] })).toBe(false)
    expect(verifyConsistency({ oldSize: 0, oldRoot: roots[1]!, newSize: 0, newRoot: roots[1]!, proof: [] })).toBe(false)
  })

  test('building a proof of a roll-back throws', () => {
    expect(() => consistencyRanges(7, 6)).toThrow('cannot extend')
    expect(consistencyRanges(0, 6)).toEqual([])
    expect(consistencyRanges(6, 6)).toEqual([])
  })

  test('hashes may be base64', () => {
    const { proof, oldRoot, newRoot, ...sizes } = validClaim
    const texts = { ...sizes, oldRoot: toBase64(oldRoot), newRoot: toBase64(newRoot), proof: proof.map(toBase64) }
    expect(verifyConsistency(texts)).toBe(true)
  })
})

test('sampled pairs of sizes up to 10,000 leaves are consistent', () => {
  const many = nodesInMemory(fillerHashes(10_000))
  fc.assert(
    fc.property(fc.nat(10_000), fc.nat(10_000), (a, b) => {
      const [oldSize, newSize] = [Math.min(a, b), Math.max(a, b)]
      const proof = consistencyProofFromNodes(oldSize, newSize, many)
      const [oldRoot, newRoot] = [rootOfNodes(oldSize, many), rootOfNodes(newSize, many)]
      expect(verifyConsistency({ oldSize, oldRoot, newSize, newRoot, proof })).toBe(true)
    }),
    { numRuns: 300 },
  )
})

test('a smaller tree is a roll-back, although it has the same root, and one of the same size needs no proof', () => {
  const root = rootOfLeafHashes(leafHashes.slice(0, 2))
  const claim = { oldSize: 2, oldRoot: root, newSize: 2, newRoot: root, proof: [] }
  expect(verifyConsistency(claim)).toBe(true)
  expect(verifyConsistency({ ...claim, newSize: 1 })).toBe(false)
  expect(verifyConsistency({ ...claim, proof: [root] })).toBe(false)
})

test('there is no proof between sizes that no tree has', () => {
  expect(() => consistencyRanges(1, 2 ** 53)).toThrow('cannot extend')
  expect(() => consistencyRanges(0.5, 0.5)).toThrow('cannot extend')
})
