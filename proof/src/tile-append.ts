import { concat } from './encoding.ts'
import { isTreeSize, rootOfLeafHashes } from './merkle-tree.ts'
import { ProofError } from './proof-error.ts'
import { hashesAtLevel, TILE_WIDTH, type Tile, tileHashes, tileInTree, tilePath } from './tile.ts'
import { rootFromTiles, type TileReader } from './tile-proof.ts'

/** Maximum number of leaves per append; a larger backlog takes several appends. */
export const MAX_APPEND = 65_536

export type AppendedTiles = {
  size: number
  root: Uint8Array
  /** The tiles to store: full ones and the new right edge. They never change a tile that a checkpoint covers. */
  tiles: { tile: Tile; bytes: Uint8Array }[]
}

/**
 * Appends leaves to a log stored in tiles. Reads only the tiles of the old right edge (`tilesForRoot(size)`), so the
 * work grows with the batch and the height of the tree, not with the length of the log.
 */
export function appendToTiles(size: number, read: TileReader, leafHashes: readonly Uint8Array[]): AppendedTiles {
  const newSize = size + leafHashes.length
  if (!isTreeSize(size) || !isTreeSize(newSize)) throw new ProofError(`${newSize} is not the size of a tree.`)
  if (leafHashes.length > MAX_APPEND) throw new ProofError(`An append is at most ${MAX_APPEND} leaves.`)

  const newTiles = new Map<string, { tile: Tile; bytes: Uint8Array }>()
  let addedHashes: readonly Uint8Array[] = leafHashes
  for (let level = 0; addedHashes.length > 0; level += 1) {
    const oldCount = hashesAtLevel(level, size)
    const firstIndex = Math.floor(oldCount / TILE_WIDTH)
    const hashes = [...readEdgeHashes(level, firstIndex, size, read), ...addedHashes]
    const fullTileRoots: Uint8Array[] = []
    for (let offset = 0; offset < hashes.length; offset += TILE_WIDTH) {
      const chunk = hashes.slice(offset, offset + TILE_WIDTH)
      const tile = { level, index: firstIndex + offset / TILE_WIDTH, width: chunk.length }
      newTiles.set(tilePath(tile), { tile, bytes: concat(...chunk) })
      if (chunk.length === TILE_WIDTH) fullTileRoots.push(rootOfLeafHashes(chunk))
    }
    addedHashes = fullTileRoots
  }
  const root = rootFromTiles(newSize, (tile) => newTiles.get(tilePath(tile))?.bytes ?? read(tile))
  return { size: newSize, root, tiles: [...newTiles.values()] }
}

/** The hashes of the unfinished tile at the right edge of the old tree; none when its last tile is full. */
function readEdgeHashes(level: number, index: number, size: number, read: TileReader): Uint8Array[] {
  const tile = tileInTree(level, index, size)
  if (!tile) return []
  const bytes = read(tile)
  if (!bytes) throw new ProofError(`${tilePath(tile)} is missing.`)
  return tileHashes(tile, bytes)
}
