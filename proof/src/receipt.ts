import { canonicalize } from './canonicalize.ts'
import { isJsonObject, isShortText, isTime, type JsonObject, without } from './checks.ts'
import { utf8 } from './encoding.ts'
import { hashJson, isHashText } from './hash-json.ts'

export const RECEIPT_SCHEMA = 'run-receipt/v1'

/** Where a receipt stands in the log. Null until the sequencer has given it its place. */
export type ReceiptLog = { origin: string; index: number; inclusion_proof: readonly string[]; checkpoint: string }

export type ReceiptSignature = { alg: 'ed25519'; key_id: string; value: string }

/** `run-receipt/v1`: hashes of what was asked and answered, never the task or the output. */
export type Receipt = {
  schema: typeof RECEIPT_SCHEMA
  receipt_id: string
  run_id: string
  loop_id: string | null
  issued_at: string
  kind: string
  agent_id: string | null
  route: JsonObject | null
  pricing: JsonObject | null
  governance: JsonObject | null
  request_hash: string | null
  input_hash: string | null
  output_hash: string | null
  verification: JsonObject | null
  settlement: JsonObject | null
  prev_hash: string | null
  signature: ReceiptSignature
  log: ReceiptLog | null
}

/** What the issuer signs: the canonical bytes of the receipt without `signature` and `log`. */
export const receiptSigningBytes = (receipt: object): Uint8Array =>
  utf8(canonicalize(without(receipt as JsonObject, 'signature', 'log')))

/** The log's entry for a receipt: the canonical bytes without `log`, so the signature is in the log too. */
export const receiptLeaf = (receipt: object): Uint8Array => utf8(canonicalize(without(receipt as JsonObject, 'log')))

/** What the next receipt of the same run carries as `prev_hash`: the hash of this one's leaf. */
export const hashReceipt = (receipt: object): string => hashJson(without(receipt as JsonObject, 'log'))

/** What is wrong with the form of a receipt, or undefined. Members beyond these are allowed: the signature covers them. */
export function receiptProblem(receipt: unknown): string | undefined {
  if (!isJsonObject(receipt)) return 'A receipt is a JSON object.'
  if (receipt.schema !== RECEIPT_SCHEMA) return `The schema is not '${RECEIPT_SCHEMA}'.`
  for (const [member, [fits, wanted]] of Object.entries(members)) {
    if (!Object.hasOwn(receipt, member)) return `'${member}' is missing.`
    if (!fits(receipt[member])) return `'${member}' must be ${wanted}.`
  }
  return undefined
}

const orNull = (fits: (value: unknown) => boolean) => (value: unknown) => value === null || fits(value)

const members: Record<string, [(value: unknown) => boolean, string]> = {
  receipt_id: [isShortText, 'a text'],
  run_id: [isShortText, 'a text'],
  loop_id: [orNull(isShortText), 'a text or null'],
  issued_at: [isTime, 'an ISO 8601 time in UTC'],
  kind: [isShortText, 'a text'],
  agent_id: [orNull(isShortText), 'a text or null'],
  route: [orNull(isJsonObject), 'an object or null'],
  pricing: [orNull(isJsonObject), 'an object or null'],
  governance: [orNull(isJsonObject), 'an object or null'],
  request_hash: [orNull(isHashText), 'sha256: and 64 hexadecimal digits, or null'],
  input_hash: [orNull(isHashText), 'sha256: and 64 hexadecimal digits, or null'],
  output_hash: [orNull(isHashText), 'sha256: and 64 hexadecimal digits, or null'],
  verification: [orNull(isJsonObject), 'an object or null'],
  settlement: [orNull(isJsonObject), 'an object or null'],
  prev_hash: [orNull(isHashText), 'sha256: and 64 hexadecimal digits, or null'],
  signature: [isJsonObject, 'an object'],
}
