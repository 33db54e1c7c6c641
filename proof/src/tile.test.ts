import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { locateNode, parseTilePath, tileHashes, tileInTree, tilePath, tilesOfTree } from './tile.ts'

describe('paths', () => {
  test.each([
    [{ level: 0, index: 0, width: 256 }, 'tile/0/000'],
    [{ level: 0, index: 67, width: 8 }, 'tile/0/067.p/8'],
    [{ level: 1, index: 1067, width: 256 }, 'tile/1/x001/067'],
    [{ level: 2, index: 1_234_067, width: 255 }, 'tile/2/x001/x234/067.p/255'],
    [{ level: 63, index: 999, width: 1 }, 'tile/63/999.p/1'],
    [{ level: 'entries' as const, index: 1000, width: 256 }, 'tile/entries/x001/000'],
    [{ level: 'entries' as const, index: 3, width: 17 }, 'tile/entries/003.p/17'],
  ])('%j is %s', (tile, path) => {
    expect(tilePath(tile)).toBe(path)
    expect(parseTilePath(path)).toEqual(tile)
  })

  test('every tile has a path, and parsing the path returns the tile', () => {
    const tile = fc.record({
      level: fc.oneof(fc.nat(63), fc.constant('entries' as const)),
      index: fc.nat(2 ** 45),
      width: fc.integer({ min: 1, max: 256 }),
    })
    fc.assert(
      fc.property(tile, (value) => {
        expect(parseTilePath(tilePath(value))).toEqual(value)
      }),
    )
  })

  test.each([
    'tile/0/0',
    'tile/0/0000',
    'tile/00/000',
    'tile/64/000',
    'tile/-1/000',
    'tile/0/x000/001',
    'tile/0/001/002',
    'tile/0/x001',
    'tile/0/x01/002',
    'tile/0/000.p/0',
    'tile/0/000.p/256',
    'tile/0/000.p/01',
    'tile/0/000.p/',
    'tile/0/000/',
    'tile/0/000\n',
    '/tile/0/000',
    'tile/data/000',
    'tile/0/../000',
    'tile/0/x009/x999/x999/x999/x999/999',
    '',
  ])('%j is not a path', (path) => {
    expect(parseTilePath(path)).toBeUndefined()
  })

  test('an impossible tile has no path', () => {
    for (const change of [{ level: 64 }, { level: -1 }, { index: -1 }, { index: 1.5 }, { width: 0 }, { width: 257 }]) {
      expect(() => tilePath({ level: 0, index: 0, width: 256, ...change })).toThrow()
    }
  })
})

test('the tree of 70,000 leaves has the tiles listed in the specification', () => {
  const tiles = [...tilesOfTree(70_000)]
  const full = (level: number) => tiles.filter((tile) => tile.level === level && tile.width === 256).length
  const partial = tiles.filter((tile) => tile.width < 256).map(({ level, width }) => [level, width])
  expect([full(0), full(1), full(2)]).toEqual([273, 1, 0])
  expect(partial).toEqual([
    [0, 112],
    [1, 17],
    [2, 1],
  ])
  expect([...tilesOfTree(256)]).toEqual([
    { level: 0, index: 0, width: 256 },
    { level: 1, index: 0, width: 1 },
  ])
  expect([...tilesOfTree(0)]).toEqual([])
})

test('a tile is empty, partial or full as the tree grows', () => {
  expect(tileInTree(0, 1, 256)).toBeUndefined()
  expect(tileInTree(0, 1, 257)).toEqual({ level: 0, index: 1, width: 1 })
  expect(tileInTree(0, 1, 100_000)).toEqual({ level: 0, index: 1, width: 256 })
  expect(tileInTree(1, 0, 255)).toBeUndefined()
})

test('a finished node is in one tile', () => {
  expect(locateNode({ level: 0, index: 300 })).toEqual({ level: 0, index: 1, from: 44, to: 45 })
  expect(locateNode({ level: 7, index: 1 })).toEqual({ level: 0, index: 0, from: 128, to: 256 })
  expect(locateNode({ level: 8, index: 256 })).toEqual({ level: 1, index: 1, from: 0, to: 1 })
})

test('a tile of another length than its hashes is rejected', () => {
  expect(tileHashes({ level: 0, index: 0, width: 2 }, new Uint8Array(64))).toHaveLength(2)
  expect(() => tileHashes({ level: 0, index: 0, width: 2 }, new Uint8Array(63))).toThrow('63 bytes instead of 64')
})
