import { equalBytes } from './encoding.ts'
import { MAX_PROOF_HASHES } from './inclusion.ts'
import {
  emptyRoot,
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

/** The ranges whose hashes prove that the tree of `newSize` extends the tree of `oldSize` (RFC 6962 section 2.1.2). */
export function consistencyRanges(oldSize: number, newSize: number): LeafRange[] {
  if (!isTreeSize(oldSize) || !isTreeSize(newSize) || oldSize > newSize) {
    throw new ProofError(`A tree of ${newSize} leaves cannot extend one of ${oldSize}.`)
  }
  if (oldSize === 0 || oldSize === newSize) return []
  const ranges: LeafRange[] = []
  let start = 0
  let end = newSize
  while (end !== oldSize) {
    const middle = start + splitPoint(end - start)
    if (oldSize <= middle) {
      ranges.push({ start: middle, end })
      end = middle
    } else {
      ranges.push({ start, end: middle })
      start = middle
    }
  }
  // The verifier already has the old root, so it is omitted when the old tree is a complete subtree of the new one.
  if (start !== 0) ranges.push({ start, end })
  return ranges.reverse()
}

export const consistencyProofFromNodes = (oldSize: number, newSize: number, read: NodeReader): Uint8Array[] =>
  consistencyRanges(oldSize, newSize).map((range) => hashRange(range, read))

export const consistencyProof = (leafHashes: readonly Uint8Array[], oldSize: number): Uint8Array[] =>
  consistencyProofFromNodes(oldSize, leafHashes.length, nodesInMemory(leafHashes))

export type ConsistencyClaim = {
  oldSize: number
  oldRoot: HashInput
  newSize: number
  newRoot: HashInput
  proof: readonly HashInput[]
}

/**
 * RFC 9162 section 2.1.4.2: whether the new tree only appended to the old one. Every tree extends the empty tree.
 * Returns false for a smaller "new" tree (a roll-back) and for malformed input; never throws.
 */
export function verifyConsistency(claim: ConsistencyClaim): boolean {
  const { oldSize, newSize } = claim
  const oldRoot = readHash(claim.oldRoot)
  const newRoot = readHash(claim.newRoot)
  if (!oldRoot || !newRoot || !isTreeSize(oldSize) || !isTreeSize(newSize) || oldSize > newSize) return false
  if (!Array.isArray(claim.proof) || claim.proof.length > MAX_PROOF_HASHES) return false
  const proof = claim.proof.map(readHash)
  if (newSize === 0 && !equalBytes(newRoot, emptyRoot())) return false
  if (oldSize === newSize) return proof.length === 0 && equalBytes(oldRoot, newRoot)
  if (oldSize === 0) return proof.length === 0 && equalBytes(oldRoot, emptyRoot())

  let node = oldSize - 1
  let last = newSize - 1
  while (node % 2 === 1) {
    node = Math.floor(node / 2)
    last = Math.floor(last / 2)
  }
  // When the old tree is a complete subtree of the new one, the proof starts at its root.
  const [first, ...siblings] = node === 0 ? [oldRoot, ...proof] : proof
  if (!first) return false
  let oldHash = first
  let newHash = first
  for (const sibling of siblings) {
    if (!sibling || last === 0) return false
    if (node % 2 === 1 || node === last) {
      oldHash = hashNode(sibling, oldHash)
      newHash = hashNode(sibling, newHash)
      while (node % 2 === 0 && node !== 0) {
        node /= 2
        last = Math.floor(last / 2)
      }
    } else {
      newHash = hashNode(newHash, sibling)
    }
    node = Math.floor(node / 2)
    last = Math.floor(last / 2)
  }
  return last === 0 && equalBytes(oldHash, oldRoot) && equalBytes(newHash, newRoot)
}
