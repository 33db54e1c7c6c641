import { createPrivateKey, createPublicKey, generateKeyPairSync, sign } from 'node:crypto'
import {
  checkpointSignatureLine,
  checkpointText,
  consistencyProof,
  formatNote,
  fromBase64Url,
  hashLeaf,
  jwkFromPublicKey,
  rootOfLeafHashes,
  toBase64,
  utf8,
} from '@countersign/proof'
import { expect, test } from 'vitest'
import { type Memory, readMemory, watchLog } from './watch-log.ts'

const ORIGIN = 'log.example.com'
const pair = generateKeyPairSync('ed25519')
const privateKey = createPrivateKey(pair.privateKey.export({ type: 'pkcs8', format: 'pem' }))
const publicKey = fromBase64Url(createPublicKey(privateKey).export({ format: 'jwk' }).x!)
const jwks = { keys: [{ ...jwkFromPublicKey(publicKey), purpose: 'log' }] }
const leaves = (count: number, salt = '') =>
  Array.from({ length: count }, (_, index) => hashLeaf(utf8(`${salt}${index}`)))

function note(tree: Uint8Array[]): string {
  const text = checkpointText({ origin: ORIGIN, size: tree.length, root: rootOfLeafHashes(tree) })
  const signature = sign(null, utf8(text), privateKey)
  return formatNote(text, [checkpointSignatureLine(ORIGIN, publicKey, signature)])
}

const look = (tree: Uint8Array[], memory?: Memory) =>
  watchLog(note(tree), {
    jwks,
    memory,
    now: new Date('2026-11-15T12:00:00Z'),
    askConsistency: async (from) => consistencyProof(tree, from).map((hash) => toBase64(hash)),
  })

test('a log that grew proves it, and the first sight is kept', async () => {
  const first = await look(leaves(3))
  expect(first).toMatchObject({ holds: true, head: { origin: ORIGIN, size: 3 } })
  const later = await look(leaves(11), first.memory)
  expect(later).toMatchObject({ holds: true, memory: { first: { size: 3 }, last: { size: 11 } } })
  expect(await look(leaves(11), later.memory)).toMatchObject({ holds: true, memory: later.memory })
})

test('a log that was rewritten, cut or split is caught, and what was seen stays remembered', async () => {
  const { memory } = await look(leaves(5))
  for (const tree of [leaves(9, 'other'), leaves(4), leaves(5, 'other')]) {
    expect(await look(tree, memory)).toMatchObject({ holds: false, memory, problem: expect.any(String) })
  }
})

test('a head that no key of the log signed is not believed', async () => {
  const stranger = { keys: [{ ...jwks.keys[0]!, purpose: 'receipt' }] }
  const view = await watchLog(note(leaves(2)), {
    jwks: stranger,
    memory: undefined,
    now: new Date(),
    askConsistency: async () => [],
  })
  expect(view).toMatchObject({ holds: false, head: undefined })
})

test('what is stored in another form is forgotten', async () => {
  const { memory } = await look(leaves(2))
  expect(readMemory(JSON.stringify(memory))).toEqual(memory)
  for (const text of [null, '', '{', '[]', '{"first":1}', '{"first":{},"last":{}}'])
    expect(readMemory(text)).toBeUndefined()
})
