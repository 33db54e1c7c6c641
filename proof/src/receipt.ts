import { canonicalize } from './canonicalize.ts'
import { isJsonObject, isShortText, isTime, type JsonObject, omit } from './checks.ts'
import type { CountersCommitment } from './counters.ts'
import { utf8 } from './encoding.ts'
import { hashJson, isHashText } from './hash-json.ts'

export const RECEIPT_SCHEMA = 'run-receipt/v1'

/** Position of a receipt in the log; a receipt has none until the sequencer has appended it. */
export type ReceiptLog = { origin: string; index: number; inclusion_proof: readonly string[]; checkpoint: string }

export type ReceiptSignature = { alg: 'ed25519'; key_id: string; value: string }

export const COMMITMENT_ALG = 'sha256-salted'

/** The members of a receipt that commit to something private. */
export type CommittedHash = 'request_hash' | 'input_hash' | 'output_hash'

/** How a receipt's hashes were made: those in `salted` with the salt that the payer and the tenant have, others plainly. */
export type Commitment = { alg: typeof COMMITMENT_ALG; salted: readonly CommittedHash[] }

/** `run-receipt/v1`. It contains hashes of the request and the output, never the task or the output itself. */
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
  /** Absent in older receipts, whose hashes are plain. */
  commitment?: Commitment
  /** The budgets and mandates that counted the payment. Absent in older receipts and in kinds that nothing counts. */
  counters?: CountersCommitment
  signature: ReceiptSignature
  log: ReceiptLog | null
}

/** The bytes the issuer signs: the canonical JSON of the receipt without `signature` and `log`. */
export const receiptSigningBytes = (receipt: object): Uint8Array =>
  utf8(canonicalize(omit(receipt as JsonObject, 'signature', 'log')))

/** The log entry of a receipt: its canonical JSON without `log`, so the log also covers the signature. */
export const receiptLeaf = (receipt: object): Uint8Array => utf8(canonicalize(omit(receipt as JsonObject, 'log')))

/** The hash of the receipt's log entry, which is the `prev_hash` of the next receipt of the same run. */
export const hashReceipt = (receipt: object): string => hashJson(omit(receipt as JsonObject, 'log'))

/** Why the value is not a well-formed receipt, or undefined when it is. Other members are allowed: the signature covers them. */
export function receiptProblem(receipt: unknown): string | undefined {
  if (!isJsonObject(receipt)) return 'A receipt is a JSON object.'
  if (receipt.schema !== RECEIPT_SCHEMA) return `The schema is not '${RECEIPT_SCHEMA}'.`
  for (const [member, [isValid, expected]] of Object.entries(members)) {
    if (!Object.hasOwn(receipt, member)) return `'${member}' is missing.`
    if (!isValid(receipt[member])) return `'${member}' must be ${expected}.`
  }
  return undefined
}

const orNull = (isValid: (value: unknown) => boolean) => (value: unknown) => value === null || isValid(value)

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
