import { Webhook } from 'standardwebhooks'
import { expect, test } from 'vitest'
import { generateSigningSecret, signMessage } from '../../server/src/modules/webhooks/sign.ts'
import { WebhookRefused } from './errors.ts'
import { verifyWebhook } from './webhook.ts'

const secret = generateSigningSecret()
const event = { type: 'run.completed', timestamp: '2026-11-16T00:00:00.000Z', seq: 1, data: { note: 'Grüße, 你好' } }
const body = JSON.stringify(event)
const now = new Date('2026-11-16T00:00:10Z')
const timestamp = Math.floor(now.getTime() / 1000)
const id = 'evt_1'

const headersOf = (signature: string, at: number | string = timestamp) => ({
  'webhook-id': id,
  'webhook-timestamp': String(at),
  'webhook-signature': signature,
})
const signed = headersOf(signMessage([secret], { id, timestamp, body }))

test('what the service signs and what the reference library signs is accepted, as text, bytes, Headers and object', async () => {
  expect(await verifyWebhook(body, signed, `${secret}\n`, { now })).toEqual(event)
  expect(await verifyWebhook(new TextEncoder().encode(body), new Headers(signed), secret, { now })).toEqual(event)
  const reference = headersOf(new Webhook(secret).sign(id, now, body))
  expect(await verifyWebhook(body, reference, secret, { now })).toEqual(event)
  const upperCase = Object.fromEntries(Object.entries(signed).map(([name, value]) => [name.toUpperCase(), value]))
  expect(await verifyWebhook(body, upperCase, secret, { now })).toEqual(event)
})

test('either secret is accepted while a secret is rotated', async () => {
  const earlier = generateSigningSecret()
  const both = headersOf(signMessage([secret, earlier], { id, timestamp, body }))
  expect(await verifyWebhook(body, both, secret, { now })).toEqual(event)
  expect(await verifyWebhook(body, both, earlier, { now })).toEqual(event)
})

const signature = signed['webhook-signature']
const refused: [string, string, Record<string, string>][] = [
  ['another body', `${body} `, signed],
  ['another id', body, { ...signed, 'webhook-id': 'evt_2' }],
  ['another time', body, { ...signed, 'webhook-timestamp': String(timestamp + 1) }],
  ['a signature by another secret', body, headersOf(signMessage([generateSigningSecret()], { id, timestamp, body }))],
  ['a signature of another version', body, headersOf(signature.replace('v1,', 'v2,'))],
  ['an empty signature', body, headersOf('v1,')],
  ['a signature that is not base64', body, headersOf('v1,*')],
  ['no signature', body, { ...signed, 'webhook-signature': '' }],
  ['a time that is not a number', body, headersOf(signature, 'soon')],
]
test.each(refused)('%s is refused', async (_, payload, headers) => {
  await expect(verifyWebhook(payload, headers, secret, { now })).rejects.toThrow(WebhookRefused)
})

test('a delivery that is more than five minutes old or ahead is refused, though its signature holds', async () => {
  for (const minutes of [-6, 6]) {
    const later = new Date(now.getTime() + minutes * 60_000)
    await expect(verifyWebhook(body, signed, secret, { now: later })).rejects.toThrow('too far from now')
  }
})

test('a secret that is none says so', async () => {
  await expect(verifyWebhook(body, signed, 'whsec_', { now })).rejects.toThrow('A webhook secret is')
})
