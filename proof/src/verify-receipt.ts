import { type CheckpointKey, verifyCheckpoint } from './checkpoint.ts'
import {
  allHold,
  type Check,
  canonicalBytes,
  checkSignature,
  failed,
  isJsonObject,
  isShortText,
  type JsonObject,
  passed,
  skipped,
  type Verification,
  without,
} from './checks.ts'
import { verifyCosignatures, type WitnessKey } from './cosignature.ts'
import { isHashText } from './hash-json.ts'
import { verifyInclusion } from './inclusion.ts'
import { allowsPurpose, type Jwks, readKeys } from './jwk.ts'
import { hashLeaf } from './merkle-tree.ts'
import { hashReceipt, receiptProblem } from './receipt.ts'

export type VerifyReceiptOptions = {
  /** The issuer's key set: the only keys that are trusted. */
  jwks: Jwks
  log?: {
    /** The log's name. Without it, the receipt may name any log whose checkpoint a trusted key signed. */
    origin?: string
    /** The keys that may sign checkpoints; by default those of `jwks` that are for the log or not marked. */
    keys?: readonly CheckpointKey[]
    /** Whether a receipt without a place in the log fails. */
    required?: boolean
    witnesses?: readonly WitnessKey[]
    /** How many witnesses must have cosigned; with `witnesses` given, one by default. */
    quorum?: number
  }
  /** The receipt before this one in the same run, when the caller has it; null when there must be none. */
  previous?: unknown
  /** Only to refuse cosignatures from the future. */
  now?: Date
}

/**
 * Verifies a run receipt with nothing but the issuer's public keys. Every check is listed with its reason,
 * also those that could not be made. Bad input is an answer, never an error.
 */
export function verifyReceipt(receipt: unknown, options: VerifyReceiptOptions): Verification {
  const problem = receiptProblem(receipt)
  if (problem !== undefined || !isJsonObject(receipt)) {
    const checks = [failed('shape', problem ?? 'A receipt is a JSON object.')]
    for (const name of ['key', 'key_purpose', 'signature', 'prev_hash', 'checkpoint', 'inclusion']) {
      checks.push(skipped(name, 'The receipt has not the form of one.'))
    }
    return { ok: false, checks, does_not_prove: doesNotProve(checks) }
  }
  const signed = without(receipt, 'signature', 'log')
  const checks = [
    passed('shape', `The receipt has the form of ${receipt.schema}.`),
    ...checkSignature(receipt.signature, signed, { jwks: options.jwks, purpose: 'receipt' }),
    checkPrevious(receipt, options.previous),
    ...checkLog(receipt, options),
  ]
  const mustHold = ['shape', 'key', 'signature', ...(options.log?.required ? ['checkpoint', 'inclusion'] : [])]
  return { ok: allHold(checks, mustHold), checks, does_not_prove: doesNotProve(checks) }
}

function checkPrevious(receipt: JsonObject, previous: unknown): Check {
  if (previous === undefined || previous === null) {
    if (receipt.prev_hash === null) return passed('prev_hash', 'The first receipt of its run.')
    return previous === null
      ? failed('prev_hash', 'It names a receipt before it, and there should be none.')
      : skipped('prev_hash', 'The receipt before this one was not given.')
  }
  const problem = receiptProblem(previous)
  if (problem !== undefined || !isJsonObject(previous)) return failed('prev_hash', `The receipt before: ${problem}`)
  if (previous.run_id !== receipt.run_id) return failed('prev_hash', 'The receipt before is of another run.')
  const canonical = canonicalBytes(previous)
  if ('problem' in canonical) return failed('prev_hash', canonical.problem)
  return isHashText(receipt.prev_hash) && hashReceipt(previous) === receipt.prev_hash
    ? passed('prev_hash', 'It continues the receipt before it.')
    : failed('prev_hash', 'It does not continue the receipt that was given as the one before it.')
}

function checkLog(receipt: JsonObject, { jwks, log: trust = {}, now }: VerifyReceiptOptions): Check[] {
  const { log } = receipt
  if (log === null || log === undefined) {
    const say = trust.required ? failed : skipped
    const reason = 'The receipt has no place in the log yet.'
    return [say('checkpoint', reason), say('inclusion', reason), ...(trust.witnesses ? [say('witnesses', reason)] : [])]
  }
  if (!isJsonObject(log) || !isShortText(log.origin) || !Array.isArray(log.inclusion_proof)) {
    const reason = 'The log entry must be {origin, index, inclusion_proof, checkpoint}.'
    return [failed('checkpoint', reason), skipped('inclusion', reason)]
  }
  if (trust.origin !== undefined && log.origin !== trust.origin) {
    const reason = `The receipt names the log '${log.origin}', not '${trust.origin}'.`
    return [failed('checkpoint', reason), skipped('inclusion', reason)]
  }
  const keys = trust.keys ?? readKeys(jwks).filter((key) => allowsPurpose(key, 'log') !== false)
  const head = verifyCheckpoint(log.checkpoint, { origin: log.origin, keys })
  if (!head.ok) {
    return [
      failed('checkpoint', head.reason),
      skipped('inclusion', 'There is no trusted checkpoint to prove it against.'),
    ]
  }
  const { size, root } = head.checkpoint
  const leaf = canonicalBytes(without(receipt, 'log'))
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
      : failed('inclusion', 'The proof does not lead from this receipt to the root of the checkpoint.'),
    ...(trust.witnesses ? [checkWitnesses(log.checkpoint, trust.witnesses, trust.quorum, now)] : []),
  ]
}

function checkWitnesses(note: unknown, witnesses: readonly WitnessKey[], quorum?: number, now?: Date): Check {
  const found = verifyCosignatures(note, { witnesses, quorum, now })
  return found.ok ? passed('witnesses', found.reason) : failed('witnesses', found.reason)
}

function doesNotProve(checks: readonly Check[]): string[] {
  const held = (name: string) => checks.some((check) => check.name === name && check.ok === true)
  return [
    'That the output is right or useful: the receipt binds its hash, not its quality.',
    'That the settlement it names happened on chain: look the transaction up on the network.',
    'That the issuer was honest about times, prices or decisions: the signature says who stated them.',
    'That the key set belongs to the issuer: get it from a place you trust.',
    ...(held('inclusion') ? [] : ['That the receipt is in the public log: its place was not proven.']),
    ...(held('witnesses') ? [] : ['That the log shows everyone the same entries: no witness was checked.']),
  ]
}
