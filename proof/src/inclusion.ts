import { equalBytes } from './encoding.ts'
import {
  type HashInput,
  hashNode,
  hashRange,
  isTreeSize,
  type LeafRange,
  type NodeReader,
  nodesInMemory,
  readHash,
  splitPoint,
} from './merkle-tree.ts'
import { ProofError } from './proof-error.ts'

/** The ranges whose hashes prove that leaf `index` is in the tree of `size`, in the order of RFC 6962 section 2.1.1. */
export function inclusionRanges(index: number, size: number): LeafRange[] {
  if (!isTreeSize(index) || !isTreeSize(size) || index >= size) {
    throw new ProofError(`A tree of ${size} leaves has no leaf ${index}.`)
  }
  const ranges: LeafRange[] = []
  let start = 0
  let end = size
  while (end - start > 1) {
    const middle = start + splitPoint(end - start)
    if (index < middle) {
      ranges.push({ start: middle, end })
      end = middle
    } else {
      ranges.push({ start, end: middle })
      start = middle
    }
  }
  return ranges.reverse()
}

export const inclusionProofFromNodes = (index: number, size: number, read: NodeReader): Uint8Array[] =>
  inclusionRanges(index, size).map((range) => hashRange(range, read))

export const inclusionProof = (leafHashes: readonly Uint8Array[], index: number): Uint8Array[] =>
  inclusionProofFromNodes(index, leafHashes.length, nodesInMemory(leafHashes))

export type InclusionClaim = {
  leafHash: HashInput
  index: number
  size: number
  proof: readonly HashInput[]
  root: HashInput
}

/**
 * RFC 9162 section 2.1.3.2. The proof must have exactly the length that index and size require.
 * Returns false for malformed input; never throws.
 */
export function verifyInclusion(claim: InclusionClaim): boolean {
  const { index, size } = claim
  const root = readHash(claim.root)
  let hash = readHash(claim.leafHash)
  if (!root || !hash || !isTreeSize(index) || !isTreeSize(size) || index >= size) return false
  if (!Array.isArray(claim.proof) || claim.proof.length > MAX_PROOF_HASHES) return false

  let node = index
  let last = size - 1
  for (const step of claim.proof) {
    const sibling = readHash(step)
    if (!sibling || last === 0) return false
    if (node % 2 === 1 || node === last) {
      hash = hashNode(sibling, hash)
      while (node % 2 === 0 && node !== 0) {
        node /= 2
        last = Math.floor(last / 2)
      }
    } else {
      hash = hashNode(hash, sibling)
    }
    node = Math.floor(node / 2)
    last = Math.floor(last / 2)
  }
  return last === 0 && equalBytes(hash, root)
}

/** No tree with a safe-integer size is higher than this. */
export const MAX_PROOF_HASHES = 64
