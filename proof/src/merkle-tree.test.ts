import { describe, expect, test } from 'vitest'
import { toHex } from './encoding.ts'
import {
  emptyRoot,
  hashLeaf,
  nodesInMemory,
  nodesOfRange,
  readHash,
  rootOfLeafHashes,
  rootOfLeaves,
  splitPoint,
} from './merkle-tree.ts'

// The reference tree of the Certificate Transparency project: eight leaves, and the root of each prefix.
const leaves = ['', '00', '10', '2021', '3031', '40414243', '5051525354555657', '606162636465666768696a6b6c6d6e6f'].map(
  (hex) => new Uint8Array(Buffer.from(hex, 'hex')),
)
const roots = [
  'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
  '6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d',
  'fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125',
  'aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77',
  'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7',
  '4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4',
  '76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef',
  'ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c',
  '5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328',
]

describe('RFC 6962 roots', () => {
  test.each(roots.map((root, size) => [size, root] as const))('of %i leaves', (size, root) => {
    expect(toHex(rootOfLeaves(leaves.slice(0, size)))).toBe(root)
    expect(toHex(rootOfLeafHashes(leaves.slice(0, size).map(hashLeaf)))).toBe(root)
  })

  test('without leaves is the hash of the empty string', () => {
    expect(toHex(emptyRoot())).toBe(roots[0])
  })
})

test('a tree splits at the largest power of two below its size', () => {
  expect([2, 3, 4, 5, 8, 9, 2 ** 52, 2 ** 53 - 1].map(splitPoint)).toEqual([1, 2, 2, 4, 4, 8, 2 ** 51, 2 ** 52])
})

test('a range is covered by its largest finished nodes, from the left', () => {
  expect(nodesOfRange({ start: 0, end: 7 })).toEqual([
    { level: 2, index: 0 },
    { level: 1, index: 2 },
    { level: 0, index: 6 },
  ])
  expect(nodesOfRange({ start: 4, end: 6 })).toEqual([{ level: 1, index: 2 }])
  expect(nodesOfRange({ start: 0, end: 2 ** 53 - 1 })).toHaveLength(53)
  expect(nodesOfRange({ start: 3, end: 3 })).toEqual([])
})

test('reading an unfinished node throws', () => {
  const read = nodesInMemory(leaves.slice(0, 7).map(hashLeaf))
  expect(toHex(read({ level: 2, index: 0 }))).toBe(roots[4])
  expect(() => read({ level: 2, index: 1 })).toThrow('no finished node 2/1')
  expect(() => read({ level: 3, index: 0 })).toThrow('no finished node 3/0')
})

test('a hash is 32 bytes, or their base64', () => {
  expect(readHash(emptyRoot())).toEqual(emptyRoot())
  expect(readHash('47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=')).toEqual(emptyRoot())
  for (const value of [new Uint8Array(31), new Uint8Array(33), '', 'AAAA', toHex(emptyRoot()), null, undefined, 5]) {
    expect(readHash(value)).toBeUndefined()
  }
})
