/**
 * The x402 wire format of an `exact` payment, in both versions. The API and the facilitators read payments here and
 * nowhere else. Version 1 names networks (`base`), version 2 uses CAIP-2 ids (`eip155:8453`).
 */
export type Hex = `0x${string}`

/** An EIP-3009 `TransferWithAuthorization` with its signature, as both x402 versions carry it. */
export type Authorization = {
  from: Hex
  to: Hex
  value: bigint
  validAfter: bigint
  validBefore: bigint
  nonce: Hex
}

export type ExactPayment = {
  x402Version: 1 | 2
  authorization: Authorization
  signature: Hex
  /** The payload as the client sent it, for facilitators that speak the wire format. */
  payload: unknown
}

/** The terms that the client says it agreed to. Version 1 carries scheme and network only. */
export type AcceptedTerms = {
  scheme: unknown
  network: unknown
  asset?: unknown
  amount?: unknown
  payTo?: unknown
  extra?: unknown
}

export type JsonObject = Record<string, unknown>

const NETWORK_NAMES: Record<string, string> = { base: 'eip155:8453', 'base-sepolia': 'eip155:84532' }

export const networkFromWire = (network: string): string =>
  Object.hasOwn(NETWORK_NAMES, network) ? NETWORK_NAMES[network]! : network

export const networkForVersion = (network: string, x402Version: 1 | 2): string =>
  x402Version === 1 ? (Object.keys(NETWORK_NAMES).find((name) => NETWORK_NAMES[name] === network) ?? network) : network

export function parseChainId(network: string): number | undefined {
  const digits = /^eip155:(\d{1,15})$/.exec(network)?.[1]
  return digits === undefined ? undefined : Number(digits)
}

export const asObject = (value: unknown): JsonObject | undefined =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : undefined

/** `accepted` in version 2, the payload's own fields in version 1. */
export function readAcceptedTerms(payload: unknown): AcceptedTerms | undefined {
  const body = asObject(payload)
  if (body?.x402Version === 1) return { scheme: body.scheme, network: body.network }
  return asObject(body?.accepted) as AcceptedTerms | undefined
}

/** An `exact` payment with an EIP-3009 authorisation, or undefined when the payload is anything else. */
export function readExactPayment(payload: unknown): ExactPayment | undefined {
  const body = asObject(payload)
  const x402Version = body?.x402Version
  if (!body || (x402Version !== 1 && x402Version !== 2) || !readAcceptedTerms(body)) return undefined
  const exact = asObject(body.payload)
  const fields = asObject(exact?.authorization)
  const signature = readSignature(exact?.signature)
  if (!fields || !signature) return undefined
  const [from, to, nonce] = [readHex(fields.from, 20), readHex(fields.to, 20), readHex(fields.nonce, 32)]
  const [value, validAfter, validBefore] = [fields.value, fields.validAfter, fields.validBefore].map(readUint)
  if (!from || !to || !nonce || value === undefined || validAfter === undefined || validBefore === undefined)
    return undefined
  return { x402Version, authorization: { from, to, value, validAfter, validBefore, nonce }, signature, payload }
}

/** The payload with its amounts and times as decimal strings, which is how the specification writes them. */
export function normalisePayload({ payload, authorization }: ExactPayment): JsonObject {
  const body = payload as JsonObject & { payload: JsonObject & { authorization: JsonObject } }
  const { value, validAfter, validBefore } = authorization
  const decimals = { value: `${value}`, validAfter: `${validAfter}`, validBefore: `${validBefore}` }
  return { ...body, payload: { ...body.payload, authorization: { ...body.payload.authorization, ...decimals } } }
}

/** Whether the payload moves tokens by Permit2, the other form of the scheme `exact`. */
export const isPermit2Payment = (payload: unknown): boolean =>
  asObject(asObject(asObject(payload)?.payload)?.permit2Authorization) !== undefined

export const PERMIT2_REASON = 'unsupported_payload_type'
export const PERMIT2_MESSAGE =
  'Permit2 payments are not accepted: pay with an EIP-3009 authorisation (transferWithAuthorization).'

export const readHex = (value: unknown, bytes: number): Hex | undefined =>
  isHex(value) && value.length === 2 + bytes * 2 ? value : undefined

/** An unsigned integer of at most 78 decimal digits, which is room for a uint256. Some clients send times as numbers. */
export function readUint(value: unknown): bigint | undefined {
  if (typeof value === 'string') return /^[0-9]{1,78}$/.test(value) ? BigInt(value) : undefined
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? BigInt(value) : undefined
}

const isHex = (value: unknown): value is Hex => typeof value === 'string' && /^0x[0-9a-f]*$/i.test(value)

// A contract wallet's signature may be longer than the 65 bytes of a plain account's.
const MAX_SIGNATURE_LENGTH = 20_000

const readSignature = (value: unknown): Hex | undefined =>
  isHex(value) && value.length <= MAX_SIGNATURE_LENGTH ? value : undefined
