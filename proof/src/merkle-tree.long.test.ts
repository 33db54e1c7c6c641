import fc from 'fast-check'
import { expect, test } from 'vitest'
import { fillerHashes } from '../test/fixtures.ts'
import { consistencyProofFromNodes, verifyConsistency } from './consistency.ts'
import { inclusionProofFromNodes, verifyInclusion } from './inclusion.ts'
import { hashLeaf, nodesInMemory, rootOfNodes } from './merkle-tree.ts'

const SIZE = 10_000
const leafHashes = fillerHashes(SIZE)
const read = nodesInMemory(leafHashes)
// The same history with another entry at 4,321: a fork that no proof may connect.
const forkAt = 4_321
const forked = nodesInMemory(leafHashes.with(forkAt, hashLeaf(new Uint8Array([1]))))

test('sampled pairs of sizes up to 10,000 leaves are consistent, and a fork between them is not', () => {
  fc.assert(
    fc.property(fc.nat(SIZE), fc.nat(SIZE), (a, b) => {
      const [oldSize, newSize] = [Math.min(a, b), Math.max(a, b)]
      const claim = { oldSize, newSize, oldRoot: rootOfNodes(oldSize, read) }
      const honestClaim = {
        newRoot: rootOfNodes(newSize, read),
        proof: consistencyProofFromNodes(oldSize, newSize, read),
      }
      const lie = { newRoot: rootOfNodes(newSize, forked), proof: consistencyProofFromNodes(oldSize, newSize, forked) }
      expect(verifyConsistency({ ...claim, ...honestClaim })).toBe(true)
      expect(verifyConsistency({ ...claim, ...lie })).toBe(oldSize <= forkAt)
    }),
    { numRuns: 20_000 },
  )
})

test('sampled leaves of trees up to 10,000 leaves are proven, and not in the fork', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: SIZE }), fc.nat(SIZE - 1), (size, at) => {
      const index = at % size
      const claim = { leafHash: leafHashes[index]!, index, size, proof: inclusionProofFromNodes(index, size, read) }
      expect(verifyInclusion({ ...claim, root: rootOfNodes(size, read) })).toBe(true)
      expect(verifyInclusion({ ...claim, root: rootOfNodes(size, forked) })).toBe(size <= forkAt)
    }),
    { numRuns: 20_000 },
  )
})
