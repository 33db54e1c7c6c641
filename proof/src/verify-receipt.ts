import { type CheckpointKey, verifyCheckpoint } from './checkpoint.ts'
import {
  allChecksPass,
  type Check,
  canonicalBytes,
  checkSignature,
  failed,
  isJsonObject,
  isShortText,
  type JsonObject,
  omit,
  passed,
  skipped,
  type Verification,
} from './checks.ts'
import { verifyCosignatures, type WitnessKey } from './cosignature.ts'
import { isHashText } from './hash-json.ts'
import { verifyInclusion } from './inclusion.ts'
import { allowsPurpose, type Jwks, readKeys } from './jwk.ts'
import { hashLeaf } from './merkle-tree.ts'
import { hashReceipt, receiptProblem } from './receipt.ts'
import { checkOpening, type Opening } from './verify-opening.ts'

/** What an entry's place in the log must fulfil. */
export type LogRequirements = {
  /** Name of the log. Without it, any log whose checkpoint a trusted key signed is accepted. */
  origin?: string
  /** Keys that may sign checkpoints; by default those of `jwks` with purpose `log` or without a purpose. */
  keys?: readonly CheckpointKey[]
  /** Whether a receipt or an attestation without an inclusion proof fails. */
  required?: boolean
  witnesses?: readonly WitnessKey[]
  /** How many witnesses must have cosigned; with `witnesses` given, one by default. */
  quorum?: number
}

export type VerifyReceiptOptions = {
  /** The issuer's key set; no other keys are trusted. */
  jwks: Jwks
  log?: LogRequirements
  /** The previous receipt of the same run, if available; null when there must be none. */
  previous?: unknown
  /** What a holder discloses of the request, the task or the output: checked against the receipt's hashes. */
  opening?: Opening
  /** The current time, used only to reject cosignatures from the future. */
  now?: Date
}

/**
 * Verifies a run receipt with the issuer's public keys alone. Every check is listed with its reason, including skipped
 * ones. Never throws, whatever the input.
 */
export function verifyReceipt(receipt: unknown, options: VerifyReceiptOptions): Verification {
  const problem = receiptProblem(receipt)
  if (problem !== undefined || !isJsonObject(receipt)) {
    const checks = [failed('shape', problem ?? 'A receipt is a JSON object.')]
    for (const name of ['key', 'key_purpose', 'signature', 'prev_hash', 'checkpoint', 'inclusion']) {
      checks.push(skipped(name, 'The receipt is malformed.'))
    }
    return { ok: false, checks, does_not_prove: doesNotProve(checks, undefined) }
  }
  const signedContent = omit(receipt, 'signature', 'log')
  const checks = [
    passed('shape', `The receipt is a well-formed ${receipt.schema}.`),
    ...checkSignature(receipt.signature, signedContent, { jwks: options.jwks, purpose: 'receipt' }),
    ...checkAssertion(receipt.settlement),
    checkPrevious(receipt, options.previous),
    ...checkLog(receipt.log, omit(receipt, 'log'), options),
    ...(options.opening === undefined ? [] : checkOpening(receipt, options.opening)),
  ]
  const required = ['shape', 'key', 'signature', ...(options.log?.required ? ['checkpoint', 'inclusion'] : [])]
  return { ok: allChecksPass(checks, required), checks, does_not_prove: doesNotProve(checks, receipt.settlement) }
}

/** Who can say each status of a settlement. Receipts issued before `reported` was a status call such a payment settled. */
const ALL_WITNESSES = ['chain', 'facilitator', 'ledger', 'reported']
const WITNESSES: Record<string, readonly string[]> = {
  settled: ALL_WITNESSES,
  reported: ['reported'],
  not_found: ['chain'],
}

/** Whether the one who is said to have seen the payment could. Earlier receipts do not say who did. */
function checkAssertion(settlement: unknown): Check[] {
  if (!isJsonObject(settlement) || settlement.asserted_by === undefined) return []
  const { status, asserted_by } = settlement
  if (typeof status !== 'string' || typeof asserted_by !== 'string')
    return [failed('asserted_by', 'The status of the settlement, and who says it, must be text.')]
  const witnesses = Object.hasOwn(WITNESSES, status) ? WITNESSES[status]! : ALL_WITNESSES
  return [
    witnesses.includes(asserted_by)
      ? passed('asserted_by', `The settlement is '${status}' by the word of: ${asserted_by}.`)
      : failed('asserted_by', `'${asserted_by}' cannot say that a settlement is '${status}'.`),
  ]
}

function checkPrevious(receipt: JsonObject, previous: unknown): Check {
  if (previous === undefined || previous === null) {
    if (receipt.prev_hash === null) return passed('prev_hash', 'The first receipt of its run.')
    return previous === null
      ? failed('prev_hash', 'It names a previous receipt, and there should be none.')
      : skipped('prev_hash', 'The previous receipt was not given.')
  }
  const problem = receiptProblem(previous)
  if (problem !== undefined || !isJsonObject(previous)) return failed('prev_hash', `The previous receipt: ${problem}`)
  if (previous.run_id !== receipt.run_id) return failed('prev_hash', 'The previous receipt belongs to another run.')
  const canonical = canonicalBytes(previous)
  if ('problem' in canonical) return failed('prev_hash', canonical.problem)
  return isHashText(receipt.prev_hash) && hashReceipt(previous) === receipt.prev_hash
    ? passed('prev_hash', 'It has the hash of the previous receipt.')
    : failed('prev_hash', 'It does not have the hash of the given previous receipt.')
}

/** The checks of an entry's place in the log; `content` is what its leaf is the canonical JSON of. */
export function checkLog(
  log: unknown,
  content: JsonObject,
  { jwks, log: trust = {}, now }: Pick<VerifyReceiptOptions, 'jwks' | 'log' | 'now'>,
  label = 'receipt',
): Check[] {
  if (log === null || log === undefined) {
    const createCheck = trust.required ? failed : skipped
    const reason = `The ${label} is not in the log yet.`
    return [
      createCheck('checkpoint', reason),
      createCheck('inclusion', reason),
      ...(trust.witnesses ? [createCheck('witnesses', reason)] : []),
    ]
  }
  if (!isJsonObject(log) || !isShortText(log.origin) || !Array.isArray(log.inclusion_proof)) {
    const reason = 'The log entry must be {origin, index, inclusion_proof, checkpoint}.'
    return [failed('checkpoint', reason), skipped('inclusion', reason)]
  }
  if (trust.origin !== undefined && log.origin !== trust.origin) {
    const reason = `The ${label} names the log '${log.origin}', not '${trust.origin}'.`
    return [failed('checkpoint', reason), skipped('inclusion', reason)]
  }
  const keys = trust.keys ?? readKeys(jwks).filter((key) => allowsPurpose(key, 'log') !== false)
  const head = verifyCheckpoint(log.checkpoint, { origin: log.origin, keys })
  if (!head.ok) {
    return [failed('checkpoint', head.reason), skipped('inclusion', 'There is no trusted checkpoint.')]
  }
  const { size, root } = head.checkpoint
  const leaf = canonicalBytes(content)
  const included =
    'bytes' in leaf &&
    verifyInclusion({
      leafHash: hashLeaf(leaf.bytes),
      index: log.index as number,
      size,
      proof: log.inclusion_proof,
      root,
    })
  return [
    passed('checkpoint', `${head.reason} The log '${log.origin}' had ${size} entries.`),
    included
      ? passed('inclusion', `It is entry ${log.index} of the log.`)
      : failed('inclusion', `The proof does not lead from this ${label} to the root of the checkpoint.`),
    ...(trust.witnesses ? [checkWitnesses(log.checkpoint, trust.witnesses, trust.quorum, now)] : []),
  ]
}

function checkWitnesses(note: unknown, witnesses: readonly WitnessKey[], quorum?: number, now?: Date): Check {
  const cosignatures = verifyCosignatures(note, { witnesses, quorum, now })
  return cosignatures.ok ? passed('witnesses', cosignatures.reason) : failed('witnesses', cosignatures.reason)
}

function doesNotProve(checks: readonly Check[], settlement: unknown): string[] {
  const isReported = isJsonObject(settlement) && settlement.asserted_by === 'reported'
  const hasPassed = (name: string) => checks.some((check) => check.name === name && check.ok === true)
  return [
    'That the output is correct or useful: the receipt contains its hash, not its quality.',
    isReported
      ? 'That the settlement it names happened: the payment was only reported, and the issuer did not see it.'
      : 'That the settlement it names happened on chain: look up the transaction on the network.',
    'That the times, prices and decisions are true: the signature proves only who stated them.',
    'That the key set belongs to the issuer: get it from a place you trust.',
    ...(hasPassed('inclusion') ? [] : ['That the receipt is in the public log: its inclusion was not proven.']),
    ...(hasPassed('witnesses') ? [] : ['That the log shows everyone the same entries: no witness was checked.']),
  ]
}
