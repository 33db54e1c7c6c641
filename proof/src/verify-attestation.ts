import { attestationContent, attestationId, attestationProblem } from './attestation.ts'
import {
  allChecksPass,
  type Check,
  canonicalBytes,
  checkSignature,
  failed,
  isJsonObject,
  isTime,
  type JsonObject,
  passed,
  skipped,
  type Verification,
} from './checks.ts'
import { toHex } from './encoding.ts'
import type { Jwks } from './jwk.ts'
import { sha256 } from './sha256.ts'
import { checkLog, type LogRequirements } from './verify-receipt.ts'

export type VerifyAttestationOptions = {
  jwks: Jwks
  /** When given, an attestation past its `valid_until`, or from the future, fails. */
  now?: Date
  /** Reject previews, for consumers that need live data. */
  requireLive?: boolean
  /** What its place in the log must fulfil, as for receipts. */
  log?: LogRequirements
}

/** How far the attesting clock may run ahead. */
const SKEW_MS = 60_000

/** Verifies a basis attestation offline. Never throws, whatever the input. */
export function verifyAttestation(attestation: unknown, options: VerifyAttestationOptions): Verification {
  const problem = attestationProblem(attestation)
  if (problem !== undefined || !isJsonObject(attestation)) {
    const checks = [failed('shape', problem ?? 'An attestation is a JSON object.')]
    for (const name of ['key', 'key_purpose', 'signature', 'evidence_hash', 'mode', 'freshness']) {
      checks.push(skipped(name, 'The attestation is malformed.'))
    }
    return { ok: false, checks, does_not_prove }
  }
  const evidence = (attestation.backing as JsonObject).evidence as JsonObject
  const checks = [
    passed('shape', `The attestation is a well-formed ${attestation.schema}.`),
    ...checkSignature(attestation.signature, attestationContent(attestation), {
      jwks: options.jwks,
      purpose: evidence.mode === 'preview' ? 'attestation-preview' : 'attestation',
    }),
    checkEvidence(evidence),
    checkMode(evidence.mode, attestation.preview, options.requireLive),
    checkFreshness(attestation.as_of, evidence.valid_until, options.now),
    ...checkId(attestation),
    ...checkPlace(attestation, options),
  ]
  const required = ['shape', 'key', 'signature', 'evidence_hash', 'mode']
  if (options.log?.required) required.push('checkpoint', 'inclusion')
  return { ok: allChecksPass(checks, required), checks, does_not_prove }
}

/** The id is not signed, so it must be that of the signed members. */
function checkId(attestation: JsonObject): Check[] {
  if (attestation.id === undefined) return []
  const canonical = canonicalBytes(attestationContent(attestation))
  return 'bytes' in canonical && attestation.id === attestationId(attestation)
    ? [passed('id', 'The id is a hash of the signed members.')]
    : [failed('id', 'The id belongs to another attestation.')]
}

/** Attestations are entries of the log since they have a `log` member; older ones have none. */
function checkPlace(attestation: JsonObject, options: VerifyAttestationOptions): Check[] {
  if (attestation.log === undefined && options.log === undefined) return []
  const content = { ...attestationContent(attestation), signature: attestation.signature }
  return checkLog(attestation.log, content, options, 'attestation')
}

function checkEvidence({ hash, sources }: JsonObject): Check {
  const canonical = canonicalBytes(sources)
  if ('problem' in canonical) return failed('evidence_hash', canonical.problem)
  return hash === `sha256:${toHex(sha256(canonical.bytes))}`
    ? passed('evidence_hash', 'The evidence hash matches the listed sources.')
    : failed('evidence_hash', 'The evidence hash does not match the listed sources.')
}

/** `preview` is not covered by the signature, so it must agree with the signed mode. */
function checkMode(mode: unknown, preview: unknown, requireLive = false): Check {
  if (preview !== (mode === 'preview')) {
    return failed('mode', `'preview' is ${preview}, but the signed mode is '${mode}'.`)
  }
  if (requireLive && mode !== 'live') return failed('mode', 'A live attestation is required, and this is a preview.')
  return passed('mode', `The signed mode is '${mode}', and 'preview' agrees with it.`)
}

function checkFreshness(asOf: unknown, validUntil: unknown, now: Date | undefined): Check {
  if (!isTime(validUntil)) return failed('freshness', "'backing.evidence.valid_until' must be an ISO 8601 time in UTC.")
  if (!now) return skipped('freshness', `Valid until ${validUntil}; no current time was given.`)
  if (Date.parse(asOf as string) > now.getTime() + SKEW_MS)
    return failed('freshness', `It is dated ${asOf}, in the future.`)
  return now.getTime() <= Date.parse(validUntil)
    ? passed('freshness', `Valid until ${validUntil}.`)
    : failed('freshness', `It expired at ${validUntil}.`)
}

const does_not_prove = [
  "That the issuer holds the reserves: the backing restates the issuer's own report, it is not an audit.",
  'That the sources are correct: fetch their bodies by hash and check them.',
  'Anything about members outside the six signed ones, such as the disclaimer.',
  'That the key set belongs to the attesting service: get it from a place you trust.',
]
