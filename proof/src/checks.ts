import { canonicalize } from './canonicalize.ts'
import { SIGNATURE_BYTES, verifyEd25519 } from './ed25519.ts'
import { fromBase64, tryDecode, utf8 } from './encoding.ts'
import { allowsPurpose, findKey, type Jwk, type KeyPurpose } from './jwk.ts'

/** The result of one check, with a reason for people to read. A check that could not be made is `skipped`. */
export type Check = { name: string; ok: boolean | 'skipped'; reason: string }

/** The result of a verifier. `does_not_prove` lists what must not be concluded even when `ok` is true. */
export type Verification = { ok: boolean; checks: Check[]; does_not_prove: string[] }

export const passed = (name: string, reason: string): Check => ({ name, ok: true, reason })
export const failed = (name: string, reason: string): Check => ({ name, ok: false, reason })
export const skipped = (name: string, reason: string): Check => ({ name, ok: 'skipped', reason })

/** No check failed, and every required check passed: a skipped signature check does not count as passed. */
export const allChecksPass = (checks: readonly Check[], required: readonly string[]): boolean =>
  checks.every((check) => check.ok !== false) &&
  required.every((name) => checks.some((check) => check.name === name && check.ok === true))

export type JsonObject = Record<string, unknown>

export const isJsonObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Ids and names, short enough to be quoted in a reason. */
export const isShortText = (value: unknown): value is string =>
  typeof value === 'string' && value !== '' && value.length <= 256

/** The object without some of its members, for the bytes that a signature or a leaf covers. */
export const omit = (object: JsonObject, ...members: string[]): JsonObject =>
  Object.fromEntries(Object.entries(object).filter(([key]) => !members.includes(key)))

/** RFC 3339 in UTC, the format of every time in the API, with a day that exists. */
export const isTime = (value: unknown): value is string =>
  typeof value === 'string' &&
  /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z$/.test(value) &&
  !Number.isNaN(Date.parse(value)) &&
  new Date(value).toISOString().slice(0, 19) === value.slice(0, 19)

/** The canonical bytes, or why the value has none. */
export function canonicalBytes(value: unknown): { bytes: Uint8Array } | { problem: string } {
  try {
    return { bytes: utf8(canonicalize(value)) }
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) }
  }
}

/**
 * The checks shared by all signed objects: the signature block, the key it names, the purpose of that key, and the
 * signature over `content`.
 */
export function checkSignature(
  signature: unknown,
  content: unknown,
  { jwks, purpose }: { jwks: unknown; purpose: KeyPurpose | undefined },
): Check[] {
  const skipRemaining = (reason: string) => [skipped('key_purpose', reason), skipped('signature', reason)]
  const signatureBlock = readSignatureBlock(signature)
  if (!signatureBlock) {
    const reason = 'The signature must be {alg: "ed25519", key_id, value}, value being 64 bytes in base64.'
    return [failed('key', reason), ...skipRemaining('There is no readable signature.')]
  }
  const key = findKey(jwks, signatureBlock.keyId)
  if (!key) {
    return [
      failed('key', `No trusted key has the id '${signatureBlock.keyId}'.`),
      ...skipRemaining('The key is unknown.'),
    ]
  }
  return [
    passed('key', `It names key '${signatureBlock.keyId}' of the key set.`),
    checkPurpose(key, purpose),
    checkBytes(key, content, signatureBlock.bytes),
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
  if (!purpose) return skipped('key_purpose', 'No key purpose is required.')
  const allowed = allowsPurpose(key, purpose)
  if (allowed === undefined) return skipped('key_purpose', 'The key set does not state a purpose for this key.')
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
