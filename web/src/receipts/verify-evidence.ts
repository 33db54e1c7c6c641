import {
  ATTESTATION_SCHEMA,
  type Check,
  type CountersOpening,
  hashReceipt,
  type Jwks,
  LOG_EVIDENCE_SCHEMA,
  type LogPolicy,
  NO_QUORUM,
  type Opening,
  parseJson,
  RECEIPT_SCHEMA,
  type Verification,
  verifyAttestation,
  verifyAuditExport,
  verifyLogEvidence,
  verifyReceipt,
  verifyReceiptProof,
  verifyStatement,
} from '@countersign/proof'

/** The outcome of verifying a receipt, attestation or statement, or why it could not be verified. */
export type VerificationResult =
  | {
      kind: 'receipt' | 'attestation' | 'statement' | 'proof' | 'evidence' | 'audit export'
      verdict: 'valid' | 'expired' | 'invalid'
      verification: Verification
    }
  | { error: string }

/** Longer than any receipt or attestation, and still fast to parse in a page. */
export const MAX_LENGTH = 512 * 1024
const MAX_RECEIPTS = 1_000
const MAX_AUDIT_LENGTH = 64 * 1024 * 1024

/** One piece of evidence that a text contains, with its outcome. */
export type VerifiedItem = { name: string; result: VerificationResult }

/** Verifies all evidence in a text with public keys alone, without any request to the server. */
export function verifyItems(name: string, text: string, jwks: Jwks, now: Date): VerifiedItem[] {
  if (isAuditExport(text)) return [{ name, result: verifyAuditText(text) }]
  if (text.length > MAX_LENGTH)
    return [{ name, result: { error: 'The text is too long for a receipt or attestation.' } }]
  if (text.startsWith('c2sp.org/tlog-proof@')) return [{ name, result: verifyProofFile(text, jwks, now) }]
  const parsed = parse(text)
  if ('error' in parsed) return [{ name, result: parsed }]
  const receipts = findReceipts(parsed.value)
  if (!receipts) return [{ name, result: verifyAnswer(parsed.value, jwks, now) }]
  return receipts.map((receipt) => ({
    name: `${name}: ${String(receipt.receipt_id)}`,
    result: verifyEvidence(receipt, jwks, now, findPrevious(receipt, receipts)),
  }))
}

/** Verifies a text with one piece of evidence. */
export const verifyEvidenceText = (text: string, jwks: Jwks, now: Date): VerificationResult =>
  verifyItems('', text, jwks, now)[0]!.result

/** Several receipts, as a list or in the answer of the service. */
function findReceipts(value: unknown): Record<string, unknown>[] | undefined {
  const list = isObject(value) && value.schema === undefined ? value.receipts : value
  return Array.isArray(list) && list.length > 0 && list.length <= MAX_RECEIPTS && list.every(isObject)
    ? list
    : undefined
}

/** The receipt before this one, if it is in the same list. */
const findPrevious = (receipt: Record<string, unknown>, others: readonly Record<string, unknown>[]) =>
  receipt.prev_hash === null ? undefined : others.find((other) => tryHash(other) === receipt.prev_hash)

/** Undefined when the value has no canonical form to hash. */
function tryHash(receipt: object): string | undefined {
  try {
    return hashReceipt(receipt as never)
  } catch {
    return undefined
  }
}

/** The answer of a run may be given as a whole: it opens the hashes of its receipt. */
function verifyAnswer(value: unknown, jwks: Jwks, now: Date): VerificationResult {
  if (!isObject(value) || value.schema !== undefined || !isObject(value.receipt))
    return verifyEvidence(value, jwks, now)
  return verifyEvidence(value.receipt, jwks, now, undefined, readOpening(value))
}

/** The salt and what it opens, from the answer of a run or from a receipt that somebody disclosed with an `opening`. */
function readOpening({ evidence, output, opening }: Record<string, unknown>): Opening | undefined {
  if (isObject(opening)) return opening as Opening
  if (!isObject(evidence) || typeof evidence.salt !== 'string' || typeof output !== 'string') return undefined
  const { salt, counters } = evidence
  return { salt, output, ...(counters !== undefined && { counters: counters as CountersOpening }) }
}

const isAuditExport = (text: string) => /^\s*\{"actor":/.test(text) && text.length <= MAX_AUDIT_LENGTH

function verifyAuditText(text: string): VerificationResult {
  const { ok, checks, does_not_prove } = verifyAuditExport(text)
  return { kind: 'audit export', verdict: ok ? 'valid' : 'invalid', verification: { ok, checks, does_not_prove } }
}

export function verifyEvidence(
  value: unknown,
  jwks: Jwks,
  now: Date,
  previous?: unknown,
  opening?: Opening,
): VerificationResult {
  const schema = isObject(value) ? value.schema : undefined
  if (schema === RECEIPT_SCHEMA) {
    const verification = verifyReceipt(value, {
      jwks,
      now,
      ...(previous !== undefined && { previous }),
      ...(opening !== undefined && { opening }),
    })
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

function parse(text: string): { value: unknown } | { error: string } {
  try {
    return { value: parseJson(text) }
  } catch (error) {
    return { error: `Not valid JSON: ${(error as Error).message}` }
  }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
