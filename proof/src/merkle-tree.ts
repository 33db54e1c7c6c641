import { concat, fromBase64, tryDecode } from './encoding.ts'
import { ProofError } from './proof-error.ts'
import { HASH_BYTES, sha256 } from './sha256.ts'

/** A 32-byte hash, as bytes or as the standard base64 that proofs and checkpoints carry. */
export type HashInput = Uint8Array | string

/**
 * A finished node, which no later leaf can change: the root of the 2^level leaves from index · 2^level on.
 * Proofs are computed from such nodes, whether they are stored in memory or in tiles.
 */
export type TreeNode = { level: number; index: number }
export type NodeReader = (node: TreeNode) => Uint8Array

/** Leaves start..end-1. */
export type LeafRange = { start: number; end: number }

const LEAF_PREFIX = new Uint8Array([0])
const NODE_PREFIX = new Uint8Array([1])

/** RFC 6962: the prefixes prevent a leaf from passing as a node. */
export const hashLeaf = (entry: Uint8Array): Uint8Array => sha256(concat(LEAF_PREFIX, entry))

export const hashNode = (left: Uint8Array, right: Uint8Array): Uint8Array => sha256(concat(NODE_PREFIX, left, right))

export const emptyRoot = (): Uint8Array => sha256(new Uint8Array())

/** The hash as bytes, or undefined when it is not 32 of them. */
export function readHash(hash: unknown): Uint8Array | undefined {
  const bytes = hash instanceof Uint8Array ? hash : tryDecode(fromBase64, hash)
  return bytes?.length === HASH_BYTES ? bytes : undefined
}

export const isTreeSize = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0

/** The largest power of two below `size`, where RFC 6962 splits a tree of two or more leaves. */
export function splitPoint(size: number): number {
  let split = 1
  while (split * 2 < size) split *= 2
  return split
}

/** The smallest set of finished nodes that covers a range as it occurs in a proof: largest first, at most one per level. */
export function nodesOfRange({ start, end }: LeafRange): TreeNode[] {
  const nodes: TreeNode[] = []
  let at = start
  while (at < end) {
    let level = 0
    let width = 1
    while (at + width * 2 <= end && at % (width * 2) === 0) {
      width *= 2
      level += 1
    }
    nodes.push({ level, index: at / width })
    at += width
  }
  return nodes
}

/** The RFC 6962 hash of a range; an unfinished right edge is folded from the right. */
export function hashRange(range: LeafRange, read: NodeReader): Uint8Array {
  const hashes = nodesOfRange(range).map(read)
  return hashes.length === 0 ? emptyRoot() : hashes.reduceRight((right, left) => hashNode(left, right))
}

export const rootOfNodes = (size: number, read: NodeReader): Uint8Array => hashRange({ start: 0, end: size }, read)

/** Computes every finished node over these leaf hashes in memory: for tests, small logs and offline checks. */
export function nodesInMemory(leafHashes: readonly Uint8Array[]): NodeReader {
  const levels: Uint8Array[][] = [[...leafHashes]]
  for (let below = levels[0]!; below.length > 1; below = levels.at(-1)!) {
    const above: Uint8Array[] = []
    for (let i = 0; i + 1 < below.length; i += 2) above.push(hashNode(below[i]!, below[i + 1]!))
    levels.push(above)
  }
  return ({ level, index }) => {
    const hash = levels[level]?.[index]
    if (!hash) throw new ProofError(`The tree of ${leafHashes.length} leaves has no finished node ${level}/${index}.`)
    return hash
  }
}

export const rootOfLeafHashes = (leafHashes: readonly Uint8Array[]): Uint8Array =>
  rootOfNodes(leafHashes.length, nodesInMemory(leafHashes))

export const rootOfLeaves = (entries: readonly Uint8Array[]): Uint8Array => rootOfLeafHashes(entries.map(hashLeaf))
