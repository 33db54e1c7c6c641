import {
  ATTESTATION_SCHEMA,
  type Jwks,
  parseJson,
  RECEIPT_SCHEMA,
  type Verification,
  verifyAttestation,
  verifyReceipt,
  verifyStatement,
} from '@countersign/proof'

/** What was found in a piece of evidence, or the sentence that says why nothing could be looked for. */
export type Finding =
  | {
      kind: 'receipt' | 'attestation' | 'statement'
      verdict: 'holds' | 'expired' | 'fails'
      verification: Verification
    }
  | { refused: string }

/** Long enough for any receipt or attestation, short enough for a page to read at once. */
const MAX_LENGTH = 512 * 1024

/** Verifies a text with public keys alone. Nothing here asks the server for anything. */
export function examine(text: string, jwks: Jwks, now: Date): Finding {
  if (text.length > MAX_LENGTH) return { refused: 'This is longer than any receipt or attestation.' }
  const parsed = parse(text)
  return 'refused' in parsed ? parsed : examineValue(evidenceIn(parsed.value), jwks, now)
}

export function examineValue(value: unknown, jwks: Jwks, now: Date, previous?: unknown): Finding {
  const schema = isObject(value) ? value.schema : undefined
  if (schema === RECEIPT_SCHEMA) {
    const verification = verifyReceipt(value, { jwks, now, ...(previous !== undefined && { previous }) })
    return { kind: 'receipt', verdict: verification.ok ? 'holds' : 'fails', verification }
  }
  if (schema === ATTESTATION_SCHEMA) {
    // An attestation that ran out was still made: what no longer holds is its freshness alone.
    const genuine = verifyAttestation(value, { jwks })
    const verification = verifyAttestation(value, { jwks, now })
    return {
      kind: 'attestation',
      verdict: verification.ok ? 'holds' : genuine.ok ? 'expired' : 'fails',
      verification,
    }
  }
  if (isObject(value) && isObject(value.signature)) {
    const verification = verifyStatement(value, { jwks })
    return { kind: 'statement', verdict: verification.ok ? 'holds' : 'fails', verification }
  }
  return { refused: `This is neither a receipt (${RECEIPT_SCHEMA}) nor an attestation (${ATTESTATION_SCHEMA}).` }
}

/** Reads a key set that somebody pasted; a single key counts as a set of one. */
export function readKeySet(text: string): { jwks: Jwks } | { refused: string } {
  const parsed = parse(text)
  if ('refused' in parsed) return parsed
  const { value } = parsed
  if (isObject(value) && Array.isArray(value.keys)) return { jwks: value as unknown as Jwks }
  if (isObject(value) && typeof value.kty === 'string') return { jwks: { keys: [value as never] } }
  return { refused: 'This is no key set: it has no list of keys.' }
}

/** People paste the whole answer of a run; the receipt is in it. */
const evidenceIn = (value: unknown): unknown =>
  isObject(value) && value.schema === undefined && isObject(value.receipt) ? value.receipt : value

function parse(text: string): { value: unknown } | { refused: string } {
  try {
    return { value: parseJson(text) }
  } catch (error) {
    return { refused: `This is not JSON: ${(error as Error).message}` }
  }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
