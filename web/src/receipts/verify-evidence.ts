import {
  ATTESTATION_SCHEMA,
  type Check,
  type Jwks,
  LOG_EVIDENCE_SCHEMA,
  type LogPolicy,
  NO_QUORUM,
  parseJson,
  RECEIPT_SCHEMA,
  type Verification,
  verifyAttestation,
  verifyLogEvidence,
  verifyReceipt,
  verifyReceiptProof,
  verifyStatement,
} from '@countersign/proof'

/** The outcome of verifying a receipt, attestation or statement, or why it could not be verified. */
export type VerificationResult =
  | {
      kind: 'receipt' | 'attestation' | 'statement' | 'proof' | 'evidence'
      verdict: 'valid' | 'expired' | 'invalid'
      verification: Verification
    }
  | { error: string }

/** Longer than any receipt or attestation, and still fast to parse in a page. */
const MAX_LENGTH = 512 * 1024

/** Verifies pasted JSON with public keys alone, without any request to the server. */
export function verifyEvidenceText(text: string, jwks: Jwks, now: Date): VerificationResult {
  if (text.length > MAX_LENGTH) return { error: 'The text is too long for a receipt or attestation.' }
  if (text.startsWith('c2sp.org/tlog-proof@')) return verifyProofFile(text, jwks, now)
  const parsed = parse(text)
  return 'error' in parsed ? parsed : verifyEvidence(unwrapEvidence(parsed.value), jwks, now)
}

export function verifyEvidence(value: unknown, jwks: Jwks, now: Date, previous?: unknown): VerificationResult {
  const schema = isObject(value) ? value.schema : undefined
  if (schema === RECEIPT_SCHEMA) {
    const verification = verifyReceipt(value, { jwks, now, ...(previous !== undefined && { previous }) })
    return { kind: 'receipt', verdict: verification.ok ? 'valid' : 'invalid', verification }
  }
  if (schema === ATTESTATION_SCHEMA) {
    // An expired attestation is still genuine: it is reported as expired, not as invalid.
    const withoutExpiry = verifyAttestation(value, { jwks })
    const verification = verifyAttestation(value, { jwks, now })
    return {
      kind: 'attestation',
      verdict: verification.ok ? 'valid' : withoutExpiry.ok ? 'expired' : 'invalid',
      verification,
    }
  }
  if (schema === LOG_EVIDENCE_SCHEMA) {
    const verification = verifyLogEvidence(value, { keys: logKeys(jwks) })
    return { kind: 'evidence', verdict: verification.ok ? 'valid' : 'invalid', verification }
  }
  if (isObject(value) && isObject(value.signature)) {
    const verification = verifyStatement(value, { jwks })
    return { kind: 'statement', verdict: verification.ok ? 'valid' : 'invalid', verification }
  }
  return { error: `Neither a receipt (${RECEIPT_SCHEMA}) nor an attestation (${ATTESTATION_SCHEMA}).` }
}

/** The keys of the page are those of the log; without a policy of the reader's own no witness is asked for. */
const WITHOUT_WITNESSES: LogPolicy = { logs: [], witnesses: [], groups: [], quorum: NO_QUORUM }

function verifyProofFile(text: string, jwks: Jwks, now: Date): VerificationResult {
  const options = { policy: WITHOUT_WITNESSES, keys: logKeys(jwks), jwks, now }
  const { receipt: _, ...verification } = verifyReceiptProof(text, options)
  const unproven = 'That witnesses saw the same log: verify the file with your policy, by countersign verify --policy.'
  const does_not_prove = [...verification.does_not_prove, unproven]
  return {
    kind: 'proof',
    verdict: verification.ok ? 'valid' : 'invalid',
    verification: { ...verification, does_not_prove },
  }
}

const logKeys = ({ keys }: Jwks) => keys.filter(({ purpose }) => purpose === undefined || purpose === 'log')

/** The result with a check more, which may make it invalid. */
export function withCheck(result: VerificationResult, check: Check | undefined): VerificationResult {
  if ('error' in result || !check) return result
  const { verification } = result
  const ok = verification.ok && check.ok !== false
  return {
    ...result,
    verdict: check.ok === false ? 'invalid' : result.verdict,
    verification: { ...verification, ok, checks: [...verification.checks, check] },
  }
}

/** Parses a pasted JWKS; a single JWK counts as a set of one. */
export function parseKeySet(text: string): { jwks: Jwks } | { error: string } {
  const parsed = parse(text)
  if ('error' in parsed) return parsed
  const { value } = parsed
  if (isObject(value) && Array.isArray(value.keys)) return { jwks: value as unknown as Jwks }
  if (isObject(value) && typeof value.kty === 'string') return { jwks: { keys: [value as never] } }
  return { error: "Not a key set: it has no 'keys' list." }
}

/** The whole response of a run may be pasted; its `receipt` is the evidence. */
const unwrapEvidence = (value: unknown): unknown =>
  isObject(value) && value.schema === undefined && isObject(value.receipt) ? value.receipt : value

function parse(text: string): { value: unknown } | { error: string } {
  try {
    return { value: parseJson(text) }
  } catch (error) {
    return { error: `Not valid JSON: ${(error as Error).message}` }
  }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
