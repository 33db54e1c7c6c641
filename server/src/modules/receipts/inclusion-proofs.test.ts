import {
  appendToTiles,
  emptyRoot,
  hashLeaf,
  inclusionProof,
  type Tile,
  toBase64,
  utf8,
  verifyInclusion,
} from '@countersign/proof'
import { expect, test } from 'vitest'
import { createInclusionProofs } from './inclusion-proofs.ts'

const leaves = Array.from({ length: 66_000 }, (_, i) => hashLeaf(utf8(`leaf ${i}`)))

/** A log of this size in memory that counts how often its tiles are fetched. */
function createLog(size: number) {
  const stored = new Map<string, Buffer>()
  const read = ({ level, index }: Tile) => stored.get(`${level}/${index}`)
  let root = emptyRoot()
  for (let offset = 0; offset < size; offset += 50_000) {
    const appended = appendToTiles(offset, read, leaves.slice(offset, Math.min(size, offset + 50_000)))
    for (const { tile, bytes } of appended.tiles) stored.set(`${tile.level}/${tile.index}`, Buffer.from(bytes))
    root = appended.root
  }
  let fetchCount = 0
  const proofs = createInclusionProofs(async (tiles: readonly Tile[]) => {
    fetchCount += 1
    return tiles.map((tile) => ({ ...tile, bytes: read(tile)! }))
  })
  return { root, proofs, fetchCount: () => fetchCount }
}

test.each([1, 2, 3, 7, 8, 255, 256, 257, 511, 513, 1000])(
  'every proof in a log of %i leaves is the one the independent implementation makes',
  async (size) => {
    const { proofs } = createLog(size)
    const indexes = Array.from({ length: size }, (_, i) => i).filter((i) => i % 37 === 0 || i > size - 4)
    const proofsByIndex = await proofs.prove(indexes, size)
    for (const index of indexes)
      expect(proofsByIndex.get(index)).toEqual(inclusionProof(leaves.slice(0, size), index).map(toBase64))
  },
)

test('proofs over three levels of tiles verify, also against earlier, smaller trees', async () => {
  const large = createLog(66_000)
  for (const size of [65_536, 66_000]) {
    const { root } = createLog(size)
    const proofsByIndex = await large.proofs.prove([0, 255, 256, 65_534, size - 1], size)
    for (const [index, proof] of proofsByIndex)
      expect(verifyInclusion({ leafHash: leaves[index]!, index, size, proof, root })).toBe(true)
  }
})

test('proofs of neighbouring receipts do not fetch the same tiles again', async () => {
  const { proofs, fetchCount } = createLog(1000)
  await proofs.prove([300], 1000)
  await proofs.prove([301], 1000)
  await proofs.prove([300, 302, 303], 1000)
  expect(fetchCount()).toBe(1)
})
