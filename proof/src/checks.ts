import { canonicalize } from './canonicalize.ts'
import { SIGNATURE_BYTES, verifyEd25519 } from './ed25519.ts'
import { fromBase64, tryDecode, utf8 } from './encoding.ts'
import { allowsPurpose, findKey, type Jwk, type KeyPurpose } from './jwk.ts'

/** One thing that was looked at: whether it holds, or why it was not looked at, in a sentence for a person. */
export type Check = { name: string; ok: boolean | 'skipped'; reason: string }

/** Everything a verifier found. `does_not_prove` says what a reader must not conclude even when `ok` is true. */
export type Verification = { ok: boolean; checks: Check[]; does_not_prove: string[] }

export const passed = (name: string, reason: string): Check => ({ name, ok: true, reason })
export const failed = (name: string, reason: string): Check => ({ name, ok: false, reason })
export const skipped = (name: string, reason: string): Check => ({ name, ok: 'skipped', reason })

/** Nothing failed, and what must hold was really looked at: a skipped signature is no signature. */
export const allHold = (checks: readonly Check[], mustHold: readonly string[]): boolean =>
  checks.every((check) => check.ok !== false) &&
  mustHold.every((name) => checks.some((check) => check.name === name && check.ok === true))

export type JsonObject = Record<string, unknown>

export const isJsonObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Ids and names: long enough for every honest one, short enough to be repeated in a sentence. */
export const isShortText = (value: unknown): value is string =>
  typeof value === 'string' && value !== '' && value.length <= 256

/** The object without some of its members: what remains is what a signature or a leaf covers. */
export const without = (object: JsonObject, ...members: string[]): JsonObject =>
  Object.fromEntries(Object.entries(object).filter(([key]) => !members.includes(key)))

/** RFC 3339 in UTC, as every time of the API is written, and a day that exists. */
export const isTime = (value: unknown): value is string =>
  typeof value === 'string' &&
  /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z$/.test(value) &&
  !Number.isNaN(Date.parse(value)) &&
  new Date(value).toISOString().slice(0, 19) === value.slice(0, 19)

/** The canonical bytes, or the sentence that says why there are none. */
export function canonicalBytes(value: unknown): { bytes: Uint8Array } | { problem: string } {
  try {
    return { bytes: utf8(canonicalize(value)) }
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) }
  }
}

/**
 * The checks every signed object shares: its signature block, the key it names, what that key is for, and the
 * signature over `content`.
 */
export function checkSignature(
  signature: unknown,
  content: unknown,
  { jwks, purpose }: { jwks: unknown; purpose: KeyPurpose | undefined },
): Check[] {
  const notReached = (reason: string) => [skipped('key_purpose', reason), skipped('signature', reason)]
  const value = readSignatureBlock(signature)
  if (!value) {
    const reason = 'The signature must be {alg: "ed25519", key_id, value}, value being 64 bytes in base64.'
    return [failed('key', reason), ...notReached('There is no readable signature.')]
  }
  const key = findKey(jwks, value.keyId)
  if (!key) {
    return [failed('key', `No trusted key has the id '${value.keyId}'.`), ...notReached('The key is not known.')]
  }
  return [
    passed('key', `It names key '${value.keyId}' of the key set.`),
    checkPurpose(key, purpose),
    checkBytes(key, content, value.bytes),
  ]
}

function checkBytes(key: Jwk, content: unknown, signature: Uint8Array): Check {
  const canonical = canonicalBytes(content)
  if ('problem' in canonical) return failed('signature', canonical.problem)
  return verifyEd25519(key, canonical.bytes, signature)
    ? passed('signature', 'The ed25519 signature covers exactly these contents.')
    : failed('signature', 'The signature does not match: the contents or the signature were changed.')
}

export function checkPurpose(key: Jwk, purpose: KeyPurpose | undefined): Check {
  if (!purpose) return skipped('key_purpose', 'No purpose was asked for.')
  const allowed = allowsPurpose(key, purpose)
  if (allowed === undefined) return skipped('key_purpose', 'The key set does not say what this key is for.')
  return allowed
    ? passed('key_purpose', `The key is marked for '${purpose}'.`)
    : failed('key_purpose', `The key is marked for '${key.purpose}', not for '${purpose}'.`)
}

function readSignatureBlock(signature: unknown): { keyId: string; bytes: Uint8Array } | undefined {
  if (!isJsonObject(signature) || Object.keys(signature).sort().join() !== 'alg,key_id,value') return undefined
  const bytes = tryDecode(fromBase64, signature.value)
  if (signature.alg !== 'ed25519' || !isShortText(signature.key_id) || bytes?.length !== SIGNATURE_BYTES)
    return undefined
  return { keyId: signature.key_id, bytes }
}
