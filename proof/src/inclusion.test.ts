import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { bitFlips, fillerHashes } from '../test/fixtures.ts'
import { toBase64, toHex, utf8 } from './encoding.ts'
import {
  inclusionProof,
  inclusionProofFromNodes,
  inclusionRanges,
  MAX_PROOF_HASHES,
  verifyInclusion,
} from './inclusion.ts'
import { hashLeaf, nodesInMemory, rootOfLeafHashes, rootOfNodes } from './merkle-tree.ts'

const leafHashes = fillerHashes(256)
const read = nodesInMemory(leafHashes)
const roots = Array.from({ length: 257 }, (_, size) => rootOfNodes(size, read))

describe('RFC 6962 section 2.1.3', () => {
  // The example tree of seven leaves: d0 needs [b, h, l], d3 [c, g, l], d4 [f, j, k], d6 [i, k].
  const sevenLeaves = fillerHashes(7)
  const range = (start: number, end: number) => toHex(rootOfLeafHashes(sevenLeaves.slice(start, end)))
  test.each([
    [0, [range(1, 2), range(2, 4), range(4, 7)]],
    [3, [range(2, 3), range(0, 2), range(4, 7)]],
    [4, [range(5, 6), range(6, 7), range(0, 4)]],
    [6, [range(4, 6), range(0, 4)]],
  ])('the proof of d%i', (index, proof) => {
    expect(inclusionProof(sevenLeaves, index).map(toHex)).toEqual(proof)
  })
})

test('every leaf of every tree up to 256 leaves is proven by a short proof', () => {
  for (let size = 1; size <= 256; size += 1) {
    for (let index = 0; index < size; index += 1) {
      const proof = inclusionProofFromNodes(index, size, read)
      const proven = verifyInclusion({ leafHash: leafHashes[index]!, index, size, proof, root: roots[size]! })
      if (!proven || proof.length > Math.ceil(Math.log2(size))) throw new Error(`leaf ${index} of ${size}`)
    }
  }
})

test('the proof of a leaf does not verify for another leaf', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 256 }), fc.nat(255), fc.nat(255), (size, at, otherIndex) => {
      const index = at % size
      fc.pre(otherIndex !== index)
      const proof = inclusionProofFromNodes(index, size, read)
      expect(verifyInclusion({ leafHash: leafHashes[otherIndex]!, index, size, proof, root: roots[size]! })).toBe(false)
    }),
    { numRuns: 500 },
  )
})

test('a proof is valid for its own index and size only', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 256 }),
      fc.nat(255),
      fc.nat(300),
      fc.nat(300),
      (size, at, index, otherSize) => {
        const leafIndex = at % size
        const claim = {
          leafHash: leafHashes[leafIndex]!,
          proof: inclusionProofFromNodes(leafIndex, size, read),
          root: roots[size]!,
        }
        expect(verifyInclusion({ ...claim, index, size })).toBe(index === leafIndex)
        // Other sizes may need the very same path, but then never the same root.
        if (otherSize !== size && otherSize <= 256) {
          expect(verifyInclusion({ ...claim, index: leafIndex, size: otherSize, root: roots[otherSize]! })).toBe(false)
        }
      },
    ),
    { numRuns: 500 },
  )
})

test('flipping any bit of the leaf, the proof or the root makes it invalid', () => {
  const entry = utf8('a receipt')
  const tree = [...leafHashes.slice(0, 12), hashLeaf(entry)]
  const claim = {
    leafHash: hashLeaf(entry),
    index: 12,
    size: 13,
    proof: inclusionProof(tree, 12),
    root: rootOfLeafHashes(tree),
  }
  expect(verifyInclusion(claim)).toBe(true)
  for (const altered of bitFlips(entry)) expect(verifyInclusion({ ...claim, leafHash: hashLeaf(altered) })).toBe(false)
  for (const root of bitFlips(claim.root)) expect(verifyInclusion({ ...claim, root })).toBe(false)
  claim.proof.forEach((step, i) => {
    for (const altered of bitFlips(step))
      expect(verifyInclusion({ ...claim, proof: claim.proof.with(i, altered) })).toBe(false)
  })
})

test('hashes may be base64, as in receipts', () => {
  const proof = inclusionProofFromNodes(3, 10, read).map(toBase64)
  expect(
    verifyInclusion({ leafHash: toBase64(leafHashes[3]!), index: 3, size: 10, proof, root: toBase64(roots[10]!) }),
  ).toBe(true)
})

test('a node cannot pass as a leaf', () => {
  const proof = inclusionProofFromNodes(0, 4, read).slice(1)
  expect(verifyInclusion({ leafHash: roots[2]!, index: 0, size: 4, proof, root: roots[4]! })).toBe(false)
  expect(verifyInclusion({ leafHash: roots[2]!, index: 0, size: 2, proof, root: roots[4]! })).toBe(true)
})

test('a root does not verify with a smaller or larger size than its own', () => {
  // Each of these leads to the right root, but not in a tree of the claimed size.
  const second = { leafHash: leafHashes[1]!, proof: [leafHashes[0]!], root: roots[2]! }
  expect(verifyInclusion({ ...second, index: 1, size: 2 })).toBe(true)
  expect(verifyInclusion({ ...second, index: 0, size: 1 })).toBe(false)
  expect(verifyInclusion({ ...second, index: 1, size: 3 })).toBe(false)
  expect(verifyInclusion({ ...second, index: 1, size: 4 })).toBe(false)
})

describe('malformed claims are false', () => {
  const validClaim = {
    leafHash: leafHashes[2]!,
    index: 2,
    size: 5,
    proof: inclusionProofFromNodes(2, 5, read),
    root: roots[5]!,
  }
  const first = validClaim.proof[0]!
  test.each<[string, Record<string, unknown>]>([
    ['an index at the size', { index: 5 }],
    ['a negative index', { index: -1 }],
    ['a fraction of an index', { index: 2.5 }],
    ['an index as text', { index: '2' }],
    ['a size of zero', { size: 0, index: 0 }],
    ['a size beyond 2^53', { size: 2 ** 53 }],
    ['no size', { size: Number.NaN }],
    ['a truncated proof', { proof: validClaim.proof.slice(1) }],
    ['a proof with one hash more', { proof: [...validClaim.proof, first] }],
    ['a proof in another order', { proof: validClaim.proof.toReversed() }],
    ['too long a proof', { proof: Array.from({ length: MAX_PROOF_HASHES + 1 }, () => first) }],
    ['a short hash in the proof', { proof: validClaim.proof.with(0, first.slice(1)) }],
    ['a proof that is not a list', { proof: 'AAAA' }],
    ['a short root', { root: roots[5]!.slice(1) }],
    ['no leaf hash', { leafHash: undefined }],
  ])('%s', (_, change) => {
    expect(verifyInclusion(validClaim)).toBe(true)
    expect(verifyInclusion({ ...validClaim, ...change } as typeof validClaim)).toBe(false)
  })

  test('building a proof of a missing leaf throws', () => {
    expect(() => inclusionRanges(5, 5)).toThrow('no leaf 5')
    expect(() => inclusionRanges(-1, 5)).toThrow('no leaf -1')
    expect(() => inclusionRanges(0, 2 ** 53)).toThrow()
  })
})

test('the only leaf of a tree is not also behind its end, and a proof that is no list proves nothing', () => {
  const [leafHash] = leafHashes
  const claim = { leafHash: leafHash!, index: 0, size: 1, proof: [], root: leafHash! }
  expect(verifyInclusion(claim)).toBe(true)
  expect(verifyInclusion({ ...claim, index: 1 })).toBe(false)
  for (const proof of [undefined, null, 7, {}]) expect(verifyInclusion({ ...claim, proof: proof as never })).toBe(false)
})
