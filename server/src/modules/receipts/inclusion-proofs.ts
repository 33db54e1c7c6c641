import { hash } from 'node:crypto'
import { type Tile, tilesForInclusion } from '@countersign/proof'

/**
 * Builds inclusion proofs from tiles. The nodes inside a tile are computed once and cached, so a proof takes a few
 * look-ups instead of five hundred hashes. `proof/` verifies these proofs and shares no code with this file.
 */
export type StoredTile = { level: number; index: number; bytes: Buffer }

type FetchTiles = (tiles: readonly Tile[]) => Promise<readonly StoredTile[]>

/** The hashes of a tile, then of its pairs, its groups of four and so on, one buffer for each level. */
type TileNodes = Buffer[]

const HASH_BYTES = 32
const TILE_HEIGHT = 8
// Sixteen kilobytes each, enough for the tiles of recent receipts.
const MAX_CACHED_TILES = 1_024

export function createInclusionProofs(fetch: FetchTiles) {
  const cache = new Map<string, TileNodes>()

  const addToCache = (key: string, nodes: TileNodes) => {
    cache.delete(key)
    cache.set(key, nodes)
    if (cache.size > MAX_CACHED_TILES) cache.delete(cache.keys().next().value!)
    return nodes
  }

  /** A tile that has grown is another cache entry, so the width is part of the key. */
  const keyOf = ({ level, index, width }: Tile) => `${level}/${index}/${width}`

  const loadTiles = async (tiles: readonly Tile[]): Promise<Map<string, TileNodes>> => {
    const tilesByKey = new Map(tiles.map((tile) => [keyOf(tile), tile]))
    const missing = [...tilesByKey].filter(([key]) => !cache.has(key)).map(([, tile]) => tile)
    const fetched = missing.length === 0 ? [] : await fetch(missing)
    const stored = new Map(fetched.map(({ level, index, bytes }) => [`${level}/${index}`, bytes]))
    const nodesByPlace = new Map<string, TileNodes>()
    for (const [key, tile] of tilesByKey) {
      const place = `${tile.level}/${tile.index}`
      nodesByPlace.set(place, addToCache(key, cache.get(key) ?? nodesOf(tile, stored.get(place))))
    }
    return nodesByPlace
  }

  return {
    /** The proofs, in base64, that these leaves are in the tree of `size`. */
    async prove(indexes: readonly number[], size: number): Promise<Map<number, string[]>> {
      const tiles = await loadTiles(indexes.flatMap((index) => tilesForInclusion(index, size)))
      const read = (level: number, index: number) => {
        const height = level % TILE_HEIGHT
        const perTile = 2 ** (TILE_HEIGHT - height)
        const tile = tiles.get(`${Math.floor(level / TILE_HEIGHT)}/${Math.floor(index / perTile)}`)!
        const offset = (index % perTile) * HASH_BYTES
        return tile[height]!.subarray(offset, offset + HASH_BYTES)
      }
      const proof = (index: number) =>
        siblingRanges(index, size).map(([start, end]) => hashRange(start, end, read).toString('base64'))
      return new Map(indexes.map((index) => [index, proof(index)]))
    },
  }
}

function nodesOf(tile: Tile, stored: Buffer | undefined): TileNodes {
  const bytes = stored?.subarray(0, tile.width * HASH_BYTES)
  if (bytes?.length !== tile.width * HASH_BYTES)
    throw new Error(`The tile ${tile.level}/${tile.index} is not stored with ${tile.width} hashes.`)
  const levels = [bytes]
  for (let below = bytes; below.length >= 2 * HASH_BYTES; below = levels.at(-1)!) {
    const pairs = Math.floor(below.length / (2 * HASH_BYTES))
    const above = Buffer.alloc(pairs * HASH_BYTES)
    for (let pair = 0; pair < pairs; pair += 1)
      hashPair(below.subarray(pair * 2 * HASH_BYTES, (pair + 1) * 2 * HASH_BYTES)).copy(above, pair * HASH_BYTES)
    levels.push(above)
  }
  return levels
}

const hashPair = (pair: Uint8Array): Buffer => hash('sha256', Buffer.concat([NODE_PREFIX, pair]), 'buffer')

const NODE_PREFIX = Buffer.from([1])

/** RFC 6962 section 2.1.1: the halves that the leaf is not in, from the leaf up. */
function siblingRanges(index: number, size: number): [number, number][] {
  const ranges: [number, number][] = []
  let [start, end] = [0, size]
  while (end - start > 1) {
    const middle = start + largestPower(end - start - 1)
    ranges.push(index < middle ? [middle, end] : [start, middle])
    if (index < middle) end = middle
    else start = middle
  }
  return ranges.reverse()
}

/** The hash of a range that starts at a multiple of its own width: whole subtrees, folded from the right. */
function hashRange(start: number, end: number, read: (level: number, index: number) => Buffer): Buffer {
  const nodes: Buffer[] = []
  for (let offset = start; offset < end; ) {
    const width = largestPower(end - offset)
    nodes.push(read(Math.log2(width), offset / width))
    offset += width
  }
  return nodes.reduceRight((right, left) => hashPair(Buffer.concat([left, right])))
}

/** The largest power of two that is not above `number`. */
function largestPower(number: number): number {
  let power = 1
  while (power * 2 <= number) power *= 2
  return power
}
