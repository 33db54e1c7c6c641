import { consistencyProofFromNodes, consistencyRanges } from './consistency.ts'
import { inclusionProofFromNodes, inclusionRanges } from './inclusion.ts'
import {
  isTreeSize,
  type LeafRange,
  type NodeReader,
  nodesOfRange,
  rootOfLeafHashes,
  rootOfNodes,
} from './merkle-tree.ts'
import { ProofError } from './proof-error.ts'
import { locateNode, type Tile, tileHashes, tileInTree, tilePath } from './tile.ts'

/** Returns the stored bytes of a tile. The caller fetches the needed tiles first, so that building a proof stays pure. */
export type TileReader = (tile: Tile) => Uint8Array | undefined

/** The distinct tiles needed to prove leaf `index` in the tree of `size`. */
export const tilesForInclusion = (index: number, size: number): Tile[] =>
  tilesOfRanges(inclusionRanges(index, size), size)

/** The tiles needed to prove that the tree of `newSize` extends the tree of `oldSize`. */
export const tilesForConsistency = (oldSize: number, newSize: number): Tile[] =>
  tilesOfRanges(consistencyRanges(oldSize, newSize), newSize)

/** The tiles along the right edge, from which the root is computed and to which an append adds. */
export const tilesForRoot = (size: number): Tile[] => tilesOfRanges([{ start: 0, end: size }], size)

export const inclusionProofFromTiles = (index: number, size: number, read: TileReader): Uint8Array[] =>
  inclusionProofFromNodes(index, size, nodesInTiles(size, read))

export const consistencyProofFromTiles = (oldSize: number, newSize: number, read: TileReader): Uint8Array[] =>
  consistencyProofFromNodes(oldSize, newSize, nodesInTiles(newSize, read))

export const rootFromTiles = (size: number, read: TileReader): Uint8Array => rootOfNodes(size, nodesInTiles(size, read))

/**
 * The finished nodes of a tree, computed from its tiles. Tiles are not verified: compare the computed root with a signed
 * checkpoint before relying on it.
 */
export function nodesInTiles(size: number, read: TileReader): NodeReader {
  const hashesByPath = new Map<string, Uint8Array[]>()
  return (node) => {
    const location = locateNode(node)
    const tile = tileInTree(location.level, location.index, size)
    if (!tile || location.to > tile.width) {
      throw new ProofError(`The tree of ${size} leaves has no finished node ${node.level}/${node.index}.`)
    }
    const path = tilePath(tile)
    const hashes = hashesByPath.get(path) ?? readTileHashes(tile, read)
    hashesByPath.set(path, hashes)
    // A tile is itself a small tree whose leaves are its hashes.
    return rootOfLeafHashes(hashes.slice(location.from, location.to))
  }
}

function readTileHashes(tile: Tile, read: TileReader): Uint8Array[] {
  const bytes = read(tile)
  if (!bytes) throw new ProofError(`${tilePath(tile)} is missing.`)
  return tileHashes(tile, bytes)
}

function tilesOfRanges(ranges: readonly LeafRange[], size: number): Tile[] {
  if (!isTreeSize(size)) throw new ProofError(`${size} is not the size of a tree.`)
  const tiles = new Map<string, Tile>()
  for (const node of ranges.flatMap(nodesOfRange)) {
    const location = locateNode(node)
    const tile = tileInTree(location.level, location.index, size)!
    tiles.set(tilePath(tile), tile)
  }
  return [...tiles.values()]
}
