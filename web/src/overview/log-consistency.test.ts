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
import { checkLog, type LogHistory, parseLogHistory } from './log-consistency.ts'

const ORIGIN = 'log.example.com'
const pair = generateKeyPairSync('ed25519')
const privateKey = createPrivateKey(pair.privateKey.export({ type: 'pkcs8', format: 'pem' }))
const publicKey = fromBase64Url(createPublicKey(privateKey).export({ format: 'jwk' }).x!)
const jwks = { keys: [{ ...jwkFromPublicKey(publicKey), purpose: 'log' }] }
const leaves = (count: number, salt = '') =>
  Array.from({ length: count }, (_, index) => hashLeaf(utf8(`${salt}${index}`)))

function signCheckpoint(tree: Uint8Array[]): string {
  const text = checkpointText({ origin: ORIGIN, size: tree.length, root: rootOfLeafHashes(tree) })
  const signature = sign(null, utf8(text), privateKey)
  return formatNote(text, [checkpointSignatureLine(ORIGIN, publicKey, signature)])
}

const check = (tree: Uint8Array[], memory?: LogHistory) =>
  checkLog(signCheckpoint(tree), {
    jwks,
    history: memory,
    now: new Date('2026-11-15T12:00:00Z'),
    fetchConsistencyProof: async (from) => consistencyProof(tree, from).map((hash) => toBase64(hash)),
  })

test('a log that grew is consistent, and the first head seen is kept', async () => {
  const first = await check(leaves(3))
  expect(first).toMatchObject({ consistent: true, head: { origin: ORIGIN, size: 3 } })
  const later = await check(leaves(11), first.history)
  expect(later).toMatchObject({ consistent: true, history: { first: { size: 3 }, last: { size: 11 } } })
  expect(await check(leaves(11), later.history)).toMatchObject({ consistent: true, history: later.history })
})

test('a rewritten, truncated or split log is detected, and the stored heads do not change', async () => {
  const { history } = await check(leaves(5))
  for (const tree of [leaves(9, 'other'), leaves(4), leaves(5, 'other')]) {
    expect(await check(tree, history)).toMatchObject({ consistent: false, history, problem: expect.any(String) })
  }
})

test('a checkpoint that no log key signed is rejected', async () => {
  const otherPurpose = { keys: [{ ...jwks.keys[0]!, purpose: 'receipt' }] }
  const status = await checkLog(signCheckpoint(leaves(2)), {
    jwks: otherPurpose,
    history: undefined,
    now: new Date(),
    fetchConsistencyProof: async () => [],
  })
  expect(status).toMatchObject({ consistent: false, head: undefined })
})

test('stored text of another form is ignored', async () => {
  const { history } = await check(leaves(2))
  expect(parseLogHistory(JSON.stringify(history))).toEqual(history)
  for (const text of [null, '', '{', '[]', '{"first":1}', '{"first":{},"last":{}}'])
    expect(parseLogHistory(text)).toBeUndefined()
})
