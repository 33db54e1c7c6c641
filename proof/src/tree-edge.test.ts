import { expect, test } from 'vitest'
import { fillerHashes } from '../test/fixtures.ts'
import { appendToEdge, EMPTY_EDGE, isTreeEdge, rootOfEdge, rootOfLeafHashes } from './proof.ts'

test('the edge gives the root of every tree, in whatever steps it grew', () => {
  const leaves = fillerHashes(70)
  for (const step of [1, 2, 3, 7, 64]) {
    let edge = EMPTY_EDGE
    for (let at = 0; at < leaves.length; at += step) {
      edge = appendToEdge(edge, leaves.slice(at, at + step))
      expect(rootOfEdge(edge)).toEqual(rootOfLeafHashes(leaves.slice(0, edge.size)))
      expect(isTreeEdge(edge)).toBe(true)
    }
  }
  expect(rootOfEdge(EMPTY_EDGE)).toEqual(rootOfLeafHashes([]))
})

test('an edge with a hash too few, too many or too short is none', () => {
  const edge = appendToEdge(EMPTY_EDGE, fillerHashes(7))
  expect(isTreeEdge({ ...edge, size: 6 })).toBe(false)
  expect(isTreeEdge({ ...edge, hashes: edge.hashes.slice(1) })).toBe(false)
  expect(isTreeEdge({ ...edge, hashes: edge.hashes.map((hash) => hash.slice(1)) })).toBe(false)
  expect(isTreeEdge({ ...edge, hashes: edge.hashes.with(1, new Uint8Array(31)) })).toBe(false)
})
