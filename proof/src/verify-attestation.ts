import { attestationContent, attestationProblem } from './attestation.ts'
import {
  allHold,
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

export type VerifyAttestationOptions = {
  jwks: Jwks
  /** When given, an attestation past its `valid_until`, or from the future, fails. */
  now?: Date
  /** Refuse previews altogether: what a consumer of live data wants. */
  requireLive?: boolean
}

/** The attesting clock may run ahead of ours by this much. */
const SKEW_MS = 60_000

/** Verifies a basis attestation offline. Bad input is an answer, never an error. */
export function verifyAttestation(attestation: unknown, options: VerifyAttestationOptions): Verification {
  const problem = attestationProblem(attestation)
  if (problem !== undefined || !isJsonObject(attestation)) {
    const checks = [failed('shape', problem ?? 'An attestation is a JSON object.')]
    for (const name of ['key', 'key_purpose', 'signature', 'evidence_hash', 'mode', 'freshness']) {
      checks.push(skipped(name, 'The attestation has not the form of one.'))
    }
    return { ok: false, checks, does_not_prove }
  }
  const evidence = (attestation.backing as JsonObject).evidence as JsonObject
  const checks = [
    passed('shape', `The attestation has the form of ${attestation.schema}.`),
    ...checkSignature(attestation.signature, attestationContent(attestation), {
      jwks: options.jwks,
      purpose: evidence.mode === 'preview' ? 'attestation-preview' : 'attestation',
    }),
    checkEvidence(evidence),
    checkMode(evidence.mode, attestation.preview, options.requireLive),
    checkFreshness(attestation.as_of, evidence.valid_until, options.now),
  ]
  return { ok: allHold(checks, ['shape', 'key', 'signature', 'evidence_hash', 'mode']), checks, does_not_prove }
}

function checkEvidence({ hash, sources }: JsonObject): Check {
  const canonical = canonicalBytes(sources)
  if ('problem' in canonical) return failed('evidence_hash', canonical.problem)
  return hash === `sha256:${toHex(sha256(canonical.bytes))}`
    ? passed('evidence_hash', 'The evidence hash is that of the listed sources.')
    : failed('evidence_hash', 'The evidence hash is not that of the listed sources.')
}

/** `preview` stands outside the signature, so it only counts when it agrees with the signed mode. */
function checkMode(mode: unknown, preview: unknown, requireLive = false): Check {
  if (preview !== (mode === 'preview')) {
    return failed('mode', `'preview' is ${preview}, but the signed mode is '${mode}'.`)
  }
  if (requireLive && mode !== 'live') return failed('mode', 'A live attestation was asked for, and this is a preview.')
  return passed('mode', `The signed mode is '${mode}', and 'preview' agrees with it.`)
}

function checkFreshness(asOf: unknown, validUntil: unknown, now: Date | undefined): Check {
  if (!isTime(validUntil)) return failed('freshness', "'backing.evidence.valid_until' must be an ISO 8601 time in UTC.")
  if (!now) return skipped('freshness', `Valid until ${validUntil}; no time was given to compare with.`)
  if (Date.parse(asOf as string) > now.getTime() + SKEW_MS)
    return failed('freshness', `It is dated ${asOf}, in the future.`)
  return now.getTime() <= Date.parse(validUntil)
    ? passed('freshness', `Valid until ${validUntil}.`)
    : failed('freshness', `It expired at ${validUntil}.`)
}

const does_not_prove = [
  "That the issuer holds the reserves: the backing restates the issuer's own report, it is not an audit.",
  'That the sources told the truth: fetch their bodies by hash and judge them.',
  'Anything about members outside the six signed ones, such as the disclaimer.',
  'That the key set belongs to the attesting service: get it from a place you trust.',
]
