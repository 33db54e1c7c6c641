import { isTreeSize, type TreeNode } from './merkle-tree.ts'
import { ProofError } from './proof-error.ts'
import { HASH_BYTES } from './sha256.ts'

/** C2SP tlog-tiles: a tile has up to 256 adjacent hashes, so one tile spans eight levels of the tree. */
export const TILE_WIDTH = 256
export const TILE_HEIGHT = 8
const MAX_TILE_LEVEL = 63

/** Tile `index` of `level` with `width` hashes: 256 when full, fewer at the right edge of a tree. */
export type Tile = { level: number; index: number; width: number }

/** A bundle of the entries themselves, divided like the tiles of level 0. */
export type EntryTile = { level: 'entries'; index: number; width: number }

/** `tile/<L>/<N>[.p/<W>]`, N in groups of three digits: index 1234067 is `x001/x234/067`. */
export function tilePath(tile: Tile | EntryTile): string {
  if (tile.level !== 'entries' && !(isTreeSize(tile.level) && tile.level <= MAX_TILE_LEVEL)) {
    throw new ProofError(`There is no tile level ${tile.level}.`)
  }
  if (!isTreeSize(tile.index)) throw new ProofError(`There is no tile number ${tile.index}.`)
  if (!isTreeSize(tile.width) || tile.width < 1 || tile.width > TILE_WIDTH) {
    throw new ProofError(`A tile is 1 to ${TILE_WIDTH} hashes wide, not ${tile.width}.`)
  }
  const partial = tile.width === TILE_WIDTH ? '' : `.p/${tile.width}`
  return `tile/${tile.level}/${tileNumber(tile.index)}${partial}`
}

/** The tile of a path, or undefined when the path is not exactly what `tilePath` returns for it. */
export function parseTilePath(path: string): Tile | EntryTile | undefined {
  const match = /^tile\/(entries|\d{1,2})\/((?:x\d{3}\/){0,5}\d{3})(?:\.p\/(\d{1,3}))?$/.exec(path)
  if (!match) return undefined
  const index = Number(match[2]!.replace(/[x/]/g, ''))
  const width = match[3] === undefined ? TILE_WIDTH : Number(match[3])
  const tile =
    match[1] === 'entries' ? { level: 'entries' as const, index, width } : { level: Number(match[1]), index, width }
  try {
    return tilePath(tile) === path ? tile : undefined
  } catch {
    return undefined
  }
}

/** How many hashes of a tile level a tree of this size has: one for each full tile of the level below. */
export const hashesAtLevel = (level: number, size: number): number => Math.floor(size / TILE_WIDTH ** level)

/** The tile in a tree of this size: full, partial, or undefined when it would be empty. */
export function tileInTree(level: number, index: number, size: number): Tile | undefined {
  const width = Math.min(TILE_WIDTH, hashesAtLevel(level, size) - index * TILE_WIDTH)
  return width > 0 ? { level, index, width } : undefined
}

/** Every tile of a tree of this size, for mirrors and small logs. */
export function* tilesOfTree(size: number): Generator<Tile> {
  for (let level = 0; hashesAtLevel(level, size) > 0; level += 1) {
    for (let index = 0; index * TILE_WIDTH < hashesAtLevel(level, size); index += 1) {
      yield tileInTree(level, index, size)!
    }
  }
}

/** The tile that contains a finished node, and the range of hashes in that tile it is computed from. */
export function locateNode({ level, index }: TreeNode): { level: number; index: number; from: number; to: number } {
  const tileLevel = Math.floor(level / TILE_HEIGHT)
  const width = 2 ** (level % TILE_HEIGHT)
  const first = index * width
  const from = first % TILE_WIDTH
  return { level: tileLevel, index: Math.floor(first / TILE_WIDTH), from, to: from + width }
}

/** The hashes of a tile's bytes. */
export function tileHashes(tile: Tile, bytes: Uint8Array): Uint8Array[] {
  if (bytes.length !== tile.width * HASH_BYTES) {
    throw new ProofError(`${tilePath(tile)} has ${bytes.length} bytes instead of ${tile.width * HASH_BYTES}.`)
  }
  return Array.from({ length: tile.width }, (_, i) => bytes.subarray(i * HASH_BYTES, (i + 1) * HASH_BYTES))
}

function tileNumber(index: number): string {
  const digits = String(index)
  const groups = digits.padStart(Math.ceil(digits.length / 3) * 3, '0').match(/\d{3}/g)!
  return groups.map((group, i) => (i === groups.length - 1 ? group : `x${group}`)).join('/')
}
