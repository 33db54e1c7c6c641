import { WebhookRefused } from './errors.ts'
import { isObject } from './http.ts'

export type WebhookEvent = { type: string; timestamp: string; seq?: number; data: Record<string, unknown> }

/** Headers of a request, as `Headers` or as Node's object. */
export type WebhookHeaders = Headers | Record<string, string | readonly string[] | undefined>

const TOLERANCE_SECONDS = 300
const MAX_SIGNATURES = 16

/**
 * Verifies a webhook delivery (Standard Webhooks) and returns its event. `payload` is the body exactly as it was received:
 * parsed and written again it may differ. Throws `WebhookRefused`. The same `webhook-id` can arrive more than once.
 */
export async function verifyWebhook(
  payload: string | Uint8Array,
  headers: WebhookHeaders,
  secret: string,
  options: { now?: Date; toleranceSeconds?: number } = {},
): Promise<WebhookEvent> {
  const id = readHeader(headers, 'webhook-id')
  const timestamp = readHeader(headers, 'webhook-timestamp')
  const signatures = readHeader(headers, 'webhook-signature').split(' ').slice(0, MAX_SIGNATURES)
  const seconds = /^\d{1,12}$/.test(timestamp) ? Number(timestamp) : Number.NaN
  const now = (options.now ?? new Date()).getTime() / 1000
  if (!(Math.abs(now - seconds) <= (options.toleranceSeconds ?? TOLERANCE_SECONDS)))
    throw new WebhookRefused('The time of the delivery is too far from now.')
  const body = typeof payload === 'string' ? new TextEncoder().encode(payload) : payload
  const signedBytes = concat(new TextEncoder().encode(`${id}.${timestamp}.`), body)
  const key = await importSecret(secret)
  for (const signature of signatures) {
    const [version, value] = signature.split(',')
    const bytes = version === 'v1' ? decodeBase64(value) : undefined
    // WebCrypto compares in constant time.
    if (bytes && (await crypto.subtle.verify('HMAC', key, bytes, signedBytes))) return parseEvent(body)
  }
  throw new WebhookRefused('No signature of the delivery is by this secret.')
}

function readHeader(headers: WebhookHeaders, name: string): string {
  const value = isHeaders(headers)
    ? headers.get(name)
    : Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1]
  if (typeof value !== 'string' || value === '') throw new WebhookRefused(`The delivery has no header ${name}.`)
  return value
}

const isHeaders = (headers: WebhookHeaders): headers is Headers => typeof headers.get === 'function'

async function importSecret(secret: string) {
  const bytes = decodeBase64(secret.trim().replace(/^whsec_/, ''))
  if (!bytes || bytes.length === 0) throw new TypeError('A webhook secret is whsec_ and base64.')
  return crypto.subtle.importKey('raw', bytes, { name: 'HMAC', hash: 'SHA-256' }, false, ['verify'])
}

function decodeBase64(text: string | undefined): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(text ?? ''), (character) => character.charCodeAt(0))
  } catch {
    return undefined
  }
}

function concat(a: Uint8Array, b: Uint8Array): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(a.length + b.length)
  bytes.set(a)
  bytes.set(b, a.length)
  return bytes
}

function parseEvent(body: Uint8Array): WebhookEvent {
  const event: unknown = JSON.parse(new TextDecoder().decode(body))
  if (!isObject(event) || typeof event.type !== 'string' || !isObject(event.data))
    throw new WebhookRefused('The delivery is no event.')
  return event as WebhookEvent
}
