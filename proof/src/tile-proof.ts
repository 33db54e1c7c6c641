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
import { placeOfNode, type Tile, tileHashes, tileInTree, tilePath } from './tile.ts'

/** The stored bytes of a tile. The caller fetches the tiles a proof needs first, so that proving itself stays pure. */
export type TileReader = (tile: Tile) => Uint8Array | undefined

/** The tiles, few and each once, that prove leaf `index` in the tree of `size`. */
export const tilesForInclusion = (index: number, size: number): Tile[] =>
  tilesOfRanges(inclusionRanges(index, size), size)

/** The tiles that prove the tree of `newSize` extends the tree of `oldSize`. */
export const tilesForConsistency = (oldSize: number, newSize: number): Tile[] =>
  tilesOfRanges(consistencyRanges(oldSize, newSize), newSize)

/** The tiles along the right edge: what the root of a tree is computed from, and what an append starts with. */
export const tilesForRoot = (size: number): Tile[] => tilesOfRanges([{ start: 0, end: size }], size)

export const inclusionProofFromTiles = (index: number, size: number, read: TileReader): Uint8Array[] =>
  inclusionProofFromNodes(index, size, nodesInTiles(size, read))

export const consistencyProofFromTiles = (oldSize: number, newSize: number, read: TileReader): Uint8Array[] =>
  consistencyProofFromNodes(oldSize, newSize, nodesInTiles(newSize, read))

export const rootFromTiles = (size: number, read: TileReader): Uint8Array => rootOfNodes(size, nodesInTiles(size, read))

/**
 * The finished nodes of a tree, computed from its tiles. Tiles are trusted as far as the root they lead to is:
 * compare a root computed here with a signed checkpoint before relying on it.
 */
export function nodesInTiles(size: number, read: TileReader): NodeReader {
  const opened = new Map<string, Uint8Array[]>()
  return (node) => {
    const place = placeOfNode(node)
    const tile = tileInTree(place.level, place.index, size)
    if (!tile || place.to > tile.width) {
      throw new ProofError(`The tree of ${size} leaves has no finished node ${node.level}/${node.index}.`)
    }
    const path = tilePath(tile)
    const hashes = opened.get(path) ?? openTile(tile, read)
    opened.set(path, hashes)
    // A tile is itself a small tree with its hashes as leaves.
    return rootOfLeafHashes(hashes.slice(place.from, place.to))
  }
}

function openTile(tile: Tile, read: TileReader): Uint8Array[] {
  const bytes = read(tile)
  if (!bytes) throw new ProofError(`${tilePath(tile)} is missing.`)
  return tileHashes(tile, bytes)
}

function tilesOfRanges(ranges: readonly LeafRange[], size: number): Tile[] {
  if (!isTreeSize(size)) throw new ProofError(`${size} is not the size of a tree.`)
  const tiles = new Map<string, Tile>()
  for (const node of ranges.flatMap(nodesOfRange)) {
    const place = placeOfNode(node)
    const tile = tileInTree(place.level, place.index, size)!
    tiles.set(tilePath(tile), tile)
  }
  return [...tiles.values()]
}
