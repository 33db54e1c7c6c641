import { concat } from './encoding.ts'
import { isTreeSize, rootOfLeafHashes } from './merkle-tree.ts'
import { ProofError } from './proof-error.ts'
import { hashesAtLevel, TILE_WIDTH, type Tile, tileHashes, tileInTree, tilePath } from './tile.ts'
import { rootFromTiles, type TileReader } from './tile-proof.ts'

/** A sequencer appends in batches of this many leaves at most; a larger backlog is several appends. */
export const MAX_APPEND = 65_536

export type AppendedTiles = {
  size: number
  root: Uint8Array
  /** The tiles to store, full ones and the new right edge. They never change a tile that a checkpoint covers. */
  tiles: { tile: Tile; bytes: Uint8Array }[]
}

/**
 * Adds leaves to a log kept in tiles. Needs only the tiles of the old right edge (`tilesForRoot(size)`),
 * so the work grows with the batch and the height of the tree, not with the length of the log.
 */
export function appendToTiles(size: number, read: TileReader, leafHashes: readonly Uint8Array[]): AppendedTiles {
  const newSize = size + leafHashes.length
  if (!isTreeSize(size) || !isTreeSize(newSize)) throw new ProofError(`${newSize} is not the size of a tree.`)
  if (leafHashes.length > MAX_APPEND) throw new ProofError(`An append is at most ${MAX_APPEND} leaves.`)

  const written = new Map<string, { tile: Tile; bytes: Uint8Array }>()
  let added: readonly Uint8Array[] = leafHashes
  for (let level = 0; added.length > 0; level += 1) {
    const before = hashesAtLevel(level, size)
    const firstIndex = Math.floor(before / TILE_WIDTH)
    const hashes = [...edgeHashes(level, firstIndex, size, read), ...added]
    const finished: Uint8Array[] = []
    for (let at = 0; at < hashes.length; at += TILE_WIDTH) {
      const chunk = hashes.slice(at, at + TILE_WIDTH)
      const tile = { level, index: firstIndex + at / TILE_WIDTH, width: chunk.length }
      written.set(tilePath(tile), { tile, bytes: concat(...chunk) })
      if (chunk.length === TILE_WIDTH) finished.push(rootOfLeafHashes(chunk))
    }
    added = finished
  }
  const root = rootFromTiles(newSize, (tile) => written.get(tilePath(tile))?.bytes ?? read(tile))
  return { size: newSize, root, tiles: [...written.values()] }
}

/** The hashes of the unfinished tile at the right edge of the old tree; none when its last tile is full. */
function edgeHashes(level: number, index: number, size: number, read: TileReader): Uint8Array[] {
  const tile = tileInTree(level, index, size)
  if (!tile) return []
  const bytes = read(tile)
  if (!bytes) throw new ProofError(`${tilePath(tile)} is missing.`)
  return tileHashes(tile, bytes)
}
