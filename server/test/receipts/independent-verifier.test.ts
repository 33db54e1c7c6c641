import { createHash, createPublicKey, verify } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { readJson, startService, type TestService } from '../harness.ts'

/** Follows "Write a verifier of your own" in docs/proof.md, without our own library. */
let service: TestService
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service.close())

const sha256 = (...parts: (Buffer | string)[]) => {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(part)
  return hash.digest()
}

const canonical = (value: unknown): string => {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${canonical(member)}`).join(',')}}`
}

type Jwk = { kid: string; x: string; crv: string; kty: string }
const isSignedBy = ({ x }: Jwk, text: string, signature: Buffer) =>
  verify(null, Buffer.from(text), createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' }), signature)

test('the page alone is enough to verify a receipt, its place in the log and the checkpoint', async () => {
  const payer = await service.payer(1)
  const paid = async (task: string) => {
    const response = await payer.fetch(`${service.url}/api/run`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ task, agent_id: 'comedian-v1' }),
    })
    return readJson(response)
  }
  const answers = [await paid('A joke about clocks.'), await paid('A joke about cats.'), await paid('About fish.')]
  const { receipt_url: path } = answers[1]
  await expect.poll(async () => (await service.get(path)).body.log).not.toBeNull()
  const { body: receipt } = await service.get(path)
  const { body: jwks } = await service.get('/.well-known/jwks.json')
  const keys = jwks.keys as Jwk[]

  const { log, ...entry } = receipt
  const { signature, ...signed } = entry
  const key = keys.find(({ kid }) => kid === signature.key_id)!
  const thumbprint = sha256(`{"crv":"Ed25519","kty":"OKP","x":"${key.x}"}`).toString('base64url')
  expect(thumbprint).toBe(signature.key_id)
  expect(signature.value).toMatch(/^[A-Za-z0-9+/]+=*$/)
  expect(isSignedBy(key, canonical(signed), Buffer.from(signature.value, 'base64'))).toBe(true)
  expect(isSignedBy(key, canonical({ ...signed, charged: false }), Buffer.from(signature.value, 'base64'))).toBe(false)

  // What the next receipt of the run names as prev_hash.
  const stored = await service.db
    .selectFrom('receipts')
    .select('hash')
    .where('id', '=', receipt.receipt_id)
    .executeTakeFirstOrThrow()
  expect(`sha256:${sha256(canonical(entry)).toString('hex')}`).toBe(stored.hash)

  const [text, signatures] = log.checkpoint.split('\n\n') as [string, string]
  const [origin, size, root] = text.split('\n') as [string, string, string]
  let [index, last] = [log.index as number, Number(size) - 1]
  let node = sha256(Buffer.from([0]), canonical(entry))
  for (const step of log.inclusion_proof as string[]) {
    const sibling = Buffer.from(step, 'base64')
    if (index % 2 === 1 || index === last) {
      node = sha256(Buffer.from([1]), sibling, node)
      while (index % 2 === 0 && index !== 0) [index, last] = [index >> 1, last >> 1]
    } else node = sha256(Buffer.from([1]), node, sibling)
    ;[index, last] = [index >> 1, last >> 1]
  }
  expect(last).toBe(0)
  expect(node.toString('base64')).toBe(root)

  const [, name, encoded] = /^— (\S+) (\S+)$/m.exec(signatures)!
  const line = Buffer.from(encoded!, 'base64')
  expect(name).toBe(origin)
  const keyIdOf = ({ x }: Jwk) => sha256(`${origin}\n`, Buffer.from([1]), Buffer.from(x, 'base64url')).subarray(0, 4)
  const logKey = keys.find((candidate) => keyIdOf(candidate).equals(line.subarray(0, 4)))!
  expect(isSignedBy(logKey, `${text}\n`, line.subarray(4))).toBe(true)
})
