import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { fillerHashes } from '../test/fixtures.ts'
import { consistencyProofFromNodes } from './consistency.ts'
import { equalBytes, toHex } from './encoding.ts'
import { inclusionProofFromNodes } from './inclusion.ts'
import { nodesInMemory, rootOfNodes } from './merkle-tree.ts'
import { type Tile, tileInTree, tilePath, tilesOfTree } from './tile.ts'
import { appendToTiles, MAX_APPEND } from './tile-append.ts'
import {
  consistencyProofFromTiles,
  inclusionProofFromTiles,
  nodesInTiles,
  rootFromTiles,
  type TileReader,
  tilesForConsistency,
  tilesForInclusion,
  tilesForRoot,
} from './tile-proof.ts'

const leafHashes = fillerHashes(70_000)
const nodes = nodesInMemory(leafHashes)

/** A log stored in tiles. It never deletes a tile, like a log that serves old checkpoints. */
function createLog() {
  const stored = new Map<string, Uint8Array>()
  let size = 0
  const read: TileReader = (tile) => stored.get(tilePath(tile))
  return {
    stored,
    read,
    append(count: number) {
      const edge = new Set(tilesForRoot(size).map(tilePath))
      const readEdge: TileReader = (tile) => (edge.has(tilePath(tile)) ? read(tile) : undefined)
      const appended = appendToTiles(size, readEdge, leafHashes.slice(size, size + count))
      for (const { tile, bytes } of appended.tiles) stored.set(tilePath(tile), bytes)
      size = appended.size
      return appended
    },
  }
}

const largeLog = createLog()
largeLog.append(65_536)
largeLog.append(70_000 - 65_536)
const readOnly = (tiles: Tile[]): TileReader => {
  const paths = new Set(tiles.map(tilePath))
  return (tile) => (paths.has(tilePath(tile)) ? largeLog.read(tile) : undefined)
}
const hex = (hashes: Uint8Array[]) => hashes.map(toHex)

test('appending in batches of any size gives the roots and the tiles of the whole tree', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(700), { minLength: 1, maxLength: 8 }), (batches) => {
      const log = createLog()
      let size = 0
      for (const count of batches) {
        const { root, ...appended } = log.append(count)
        size += count
        expect(appended.size).toBe(size)
        expect(equalBytes(root, rootOfNodes(size, nodes))).toBe(true)
        for (const tile of tilesOfTree(size)) expect(log.stored.has(tilePath(tile)), tilePath(tile)).toBe(true)
      }
    }),
    { numRuns: 25 },
  )
})

test('appending one by one, and in steps that just miss or just fill a tile', () => {
  for (const batches of [Array.from({ length: 520 }, () => 1), [255, 1, 255, 1, 257, 254, 1, 512, 256]]) {
    const log = createLog()
    let size = 0
    for (const count of batches) {
      size += count
      const { root, tiles } = log.append(count)
      expect(equalBytes(root, rootOfNodes(size, nodes)), `${size}`).toBe(true)
      // Each stored tile belongs to this tree: an extra one would contain hashes that were never added.
      for (const { tile } of tiles) expect(tileInTree(tile.level, tile.index, size)).toEqual(tile)
    }
    for (const tile of tilesOfTree(size)) expect(log.stored.has(tilePath(tile)), tilePath(tile)).toBe(true)
  }
})

test('70,000 leaves: the root is computed from the right edge alone', () => {
  const tiles = tilesForRoot(70_000)
  expect(tiles.map(tilePath)).toEqual(['tile/2/000.p/1', 'tile/1/001.p/17', 'tile/0/273.p/112'])
  expect(toHex(rootFromTiles(70_000, readOnly(tiles)))).toBe(toHex(rootOfNodes(70_000, nodes)))
})

describe('proofs of a log of 70,000 leaves', () => {
  test('inclusion: the listed tiles are few, sufficient, and give the proof of the whole tree', () => {
    fc.assert(
      fc.property(fc.nat(69_999), (index) => {
        const tiles = tilesForInclusion(index, 70_000)
        expect(tiles.length).toBeLessThanOrEqual(5)
        const proof = inclusionProofFromTiles(index, 70_000, readOnly(tiles))
        expect(hex(proof)).toEqual(hex(inclusionProofFromNodes(index, 70_000, nodes)))
      }),
      { numRuns: 60 },
    )
  })

  test('consistency: the listed tiles are few, sufficient, and give the proof of the whole tree', () => {
    fc.assert(
      fc.property(fc.nat(70_000), (oldSize) => {
        const tiles = tilesForConsistency(oldSize, 70_000)
        expect(tiles.length).toBeLessThanOrEqual(6)
        const proof = consistencyProofFromTiles(oldSize, 70_000, readOnly(tiles))
        expect(hex(proof)).toEqual(hex(consistencyProofFromNodes(oldSize, 70_000, nodes)))
      }),
      { numRuns: 60 },
    )
  })
})

test('the error for a missing or malformed tile names it', () => {
  expect(() => rootFromTiles(70_000, () => undefined)).toThrow('tile/2/000.p/1 is missing')
  expect(() => rootFromTiles(70_000, () => new Uint8Array(5))).toThrow('tile/2/000.p/1 has 5 bytes instead of 32')
  expect(() => appendToTiles(300, () => undefined, fillerHashes(1))).toThrow('tile/0/001.p/44 is missing')
})

test('an append beyond the limits throws', () => {
  expect(() =>
    appendToTiles(
      0,
      () => undefined,
      Array.from({ length: MAX_APPEND + 1 }, () => new Uint8Array(32)),
    ),
  ).toThrow('at most')
  expect(() => appendToTiles(2 ** 53 - 1, () => undefined, fillerHashes(1))).toThrow('not the size of a tree')
  expect(appendToTiles(0, () => undefined, []).tiles).toEqual([])
})

test('a node that is not finished and a size that no tree has are refused', () => {
  const read = () => new Uint8Array(5 * 32)
  expect(() => nodesInTiles(5, read)({ level: 2, index: 1 })).toThrow('no finished node 2/1')
  expect(() => nodesInTiles(5, read)({ level: 8, index: 0 })).toThrow('no finished node 8/0')
  expect(() => tilesForRoot(-1)).toThrow('-1 is not the size of a tree')
})
