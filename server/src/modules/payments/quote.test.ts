import { deflateRawSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { createIds } from '../../platform/ids.ts'
import { createKeys } from '../../platform/keys.ts'
import { createQuotes } from './quote.ts'

const keys = createKeys({ signing: 'a signing secret of a test, long enough', encryption: 'e'.repeat(32) })
const clock = { now: () => new Date('2026-11-16T00:00:00Z') }
const signer = keys.signer('quotes')
const create = () => createQuotes({ signer, clock, ids: createIds(clock) })
const draft = {
  bound_to: { request_hash: `sha256:${'ab'.repeat(32)}` },
  kind: 'run',
  agent_id: 'analyst-v1',
  amount: '25000',
  pricing_version: '2026-11-01',
  route: { agent_id: 'analyst-v1', confidence: 0.97, reason: 'Clearly analysis work (97 %): “revenue”.' },
}

test('a token that was changed, cut or signed for another quote is no quote', () => {
  const { token } = create().issue(draft)
  const { token: other } = create().issue({ ...draft, amount: '1' })
  const [format, body, signature] = token.split('.')
  const [, otherBody, otherSignature] = other.split('.')
  for (const forged of [
    `${format}.${otherBody}.${signature}`,
    `${format}.${body}.${otherSignature}`,
    `${format}.${body}`,
    `${body}.${signature}`,
    `q0.${body}.${signature}`,
    `${token}.x`,
    token.slice(0, -4),
    '..',
    'x',
  ])
    expect(create().read(forged), forged).toBeUndefined()
})

test('a token that unpacks to more than a quote may have is no quote', () => {
  const bomb = deflateRawSync(Buffer.alloc(4_000_000, ' ')).toString('base64url')
  expect(bomb.length).toBeLessThan(8_192)
  const signature = signer.sign(' '.repeat(4_000_000)).toString('base64url')
  expect(create().read(`q1.${bomb}.${signature}`)).toBeUndefined()
})

test('another process with the same key reads the quote, and the token is shorter than its text', () => {
  const { quote, token } = create().issue(draft)
  expect(create().read(token)).toEqual(quote)
  expect(token.length).toBeLessThan(JSON.stringify(quote).length)
})

test('a quote of a cell names it in the open and is a quote in that cell only', () => {
  const inCell = (cell?: string) => createQuotes({ signer, clock, ids: createIds(clock), cell })
  const { quote, token } = inCell('eu1').issue(draft)
  expect(token).toMatch(/^q1-eu1\./)
  expect(quote.cell).toBe('eu1')
  expect(inCell('eu1').read(token)).toEqual(quote)
  const renamed = (name: string) => token.replace(/^[^.]+/, name)
  expect(inCell('eu2').read(token)).toBeUndefined()
  expect(inCell('eu2').read(renamed('q1-eu2'))).toBeUndefined()
  expect(inCell().read(token)).toBeUndefined()
  expect(inCell().read(renamed('q1'))).toBeUndefined()
  expect(inCell('eu1').read(inCell().issue(draft).token)).toBeUndefined()
})
