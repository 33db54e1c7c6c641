import type { Commitment, CountersCommitment } from '@countersign/proof'
import { canonicalJson, sha256, writeMembers } from '../../platform/canonical.ts'
import type { Signer } from '../../platform/keys.ts'
import { type CountersDraft, commitCounters } from './commit-counters.ts'
import type { ReceiptKind } from './receipt-kinds.ts'
import type { ReceiptRow } from './receipts.steps.ts'
import { commitmentOf, type Evidence, saltHashes } from './salt-hashes.ts'

type Members = Record<string, unknown>

/**
 * Everything a receipt states. The task and the output are never public; a receipt has their hashes.
 * `tenant_id` and `payer` are for our own table: the tenant is in no receipt, the payer only inside `settlement`.
 */
export type ReceiptDraft = {
  receipt_id: string
  run_id: string
  loop_id: string | null
  issued_at: string
  kind: ReceiptKind
  agent_id: string | null
  route: Members | null
  pricing: Members | null
  governance: Members | null
  /** Plain hashes; the receipt shows them salted. */
  request_hash: string | null
  input_hash: string | null
  output_hash: string | null
  /** Null when there is nothing to salt, and for runs admitted before receipts were salted: their hashes stay plain. */
  salt: string | null
  /** Absent in kinds that no budget or mandate counts, and for what was admitted before receipts named counters. */
  counters?: CountersDraft
  verification: Members | null
  settlement: Members | null
  /** The `row.hash` of the receipt before this one of the same run. */
  prev_hash: string | null
  /** Whether money moved; a failed run proves with it that none did. */
  charged?: boolean
  /** The head of an audit chain, in receipts of kind `audit_head`. */
  audit?: { chain: string; seq: number; hash: string }
  tenant_id: string | null
  payer: string | null
}

export type ReceiptSignature = { alg: 'ed25519'; key_id: string; value: string }

/** A receipt as the API returns it. `log` is null until the sequencer has placed the receipt in the log. */
export type PublicReceipt = Omit<ReceiptDraft, 'tenant_id' | 'payer' | 'salt' | 'counters'> & {
  schema: 'run-receipt/v1'
  commitment?: Commitment
  counters?: CountersCommitment
  signature: ReceiptSignature
  log: unknown
}

export type SignedReceipt = { receipt: PublicReceipt; row: ReceiptRow; evidence: Evidence }

/** A log entry has a 16-bit length; a larger receipt would block every receipt queued after it. */
export const MAX_RECEIPT_BYTES = 65_535

/** Ed25519 signatures are deterministic: the same draft gives the same bytes, whichever process finishes the run. */
export function signReceipt(signer: Signer, draft: ReceiptDraft): SignedReceipt {
  const counters = draft.counters && commitCounters(draft.counters)
  const evidence = { ...saltHashes(draft), ...(counters && { counters: counters.opening }) }
  const members = writeMembers(toPublicContent(draft, evidence, counters?.commitment))
  const signature: ReceiptSignature = {
    alg: 'ed25519',
    key_id: signer.keyId,
    value: signer.sign(`{${members.join(',')}}`).toString('base64'),
  }
  const body = `{${insertMember(members, `"signature":${canonicalJson(signature)}`).join(',')}}`
  if (Buffer.byteLength(body) > MAX_RECEIPT_BYTES)
    throw new Error(`The receipt ${draft.receipt_id} is larger than ${MAX_RECEIPT_BYTES} bytes.`)
  const { receipt_id, run_id, tenant_id, kind, agent_id, issued_at, prev_hash } = draft
  const payer = draft.payer === null ? null : payerKey(draft.payer)
  const row = {
    id: receipt_id,
    run_id,
    tenant_id,
    kind,
    agent_id,
    payer,
    issued_at,
    body,
    hash: sha256(body),
    prev_hash,
  }
  let receipt: PublicReceipt | undefined
  return {
    row,
    evidence,
    // Parsed from the signed bytes, so that the caller sees exactly what was signed, and only when a caller wants it.
    get receipt() {
      receipt ??= { ...JSON.parse(body), log: null } as PublicReceipt
      return receipt
    },
  }
}

/** Members are in order of their names, and no name contains a character that sorts before the quotation mark. */
function insertMember(members: readonly string[], member: string): string[] {
  const position = members.findIndex((candidate) => candidate > member)
  return members.toSpliced(position === -1 ? members.length : position, 0, member)
}

/** EVM addresses are case-insensitive; receipts store and find them in lower case. */
export const payerKey = (payer: string): string => (/^0x/i.test(payer) ? payer.toLowerCase() : payer)

/** Lists every public member, so that no other member of a draft can become public. */
function toPublicContent(draft: ReceiptDraft, hashes: Evidence, counters: CountersCommitment | undefined) {
  const commitment = commitmentOf(hashes)
  return {
    schema: 'run-receipt/v1',
    receipt_id: draft.receipt_id,
    run_id: draft.run_id,
    loop_id: draft.loop_id,
    issued_at: draft.issued_at,
    kind: draft.kind,
    agent_id: draft.agent_id,
    route: draft.route,
    pricing: draft.pricing,
    governance: draft.governance,
    request_hash: hashes.request_hash,
    input_hash: hashes.input_hash,
    output_hash: hashes.output_hash,
    verification: draft.verification,
    settlement: draft.settlement,
    prev_hash: draft.prev_hash,
    ...(commitment && { commitment }),
    ...(counters && { counters }),
    ...(draft.charged !== undefined && { charged: draft.charged }),
    ...(draft.audit && { audit: draft.audit }),
  }
}
