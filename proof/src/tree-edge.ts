import { emptyRoot, hashNode, isTreeSize, nodesOfRange } from './merkle-tree.ts'

/**
 * The roots of the complete subtrees of a tree, largest first: all that is needed to append leaves and to compute the
 * root, at most one hash for each bit of the size.
 */
export type TreeEdge = { size: number; hashes: readonly Uint8Array[] }

export const EMPTY_EDGE: TreeEdge = { size: 0, hashes: [] }

/** The edge after these leaves; the one that was passed stays as it is. */
export function appendToEdge({ size, hashes }: TreeEdge, leafHashes: readonly Uint8Array[]): TreeEdge {
  const nodes = [...hashes]
  let count = size
  for (const leafHash of leafHashes) {
    let node = leafHash
    // Each complete subtree of the same width on the right end is joined with the new one.
    for (let width = count; width % 2 === 1; width = Math.floor(width / 2)) node = hashNode(nodes.pop()!, node)
    nodes.push(node)
    count += 1
  }
  return { size: count, hashes: nodes }
}

export const rootOfEdge = ({ hashes }: TreeEdge): Uint8Array =>
  hashes.length === 0 ? emptyRoot() : hashes.reduceRight((right, left) => hashNode(left, right))

/** Whether an edge that was stored can be the edge of a tree. */
export const isTreeEdge = ({ size, hashes }: TreeEdge): boolean =>
  isTreeSize(size) &&
  hashes.length === nodesOfRange({ start: 0, end: size }).length &&
  hashes.every((hash) => hash.length === 32)
