import { parseCheckpoint } from './checkpoint.ts'
import {
  type Check,
  canonicalBytes,
  checkSignature,
  failed,
  isJsonObject,
  type JsonObject,
  omit,
  passed,
  skipped,
  type Verification,
} from './checks.ts'
import { equalBytes, fromBase64, fromUtf8, toBase64, tryDecode } from './encoding.ts'
import { MAX_PROOF_HASHES, verifyInclusion } from './inclusion.ts'
import type { Jwks } from './jwk.ts'
import { type PolicyOptions, verifyLogPolicy } from './log-policy.ts'
import { type HashInput, hashLeaf, isTreeSize, readHash } from './merkle-tree.ts'
import { parseJson } from './parse-json.ts'
import { ProofError } from './proof-error.ts'
import { receiptLeaf, receiptProblem } from './receipt.ts'
import { HASH_BYTES } from './sha256.ts'

const HEADER = 'c2sp.org/tlog-proof@v1'
/** An entry of 65,535 bytes in base64, 64 hashes and a checkpoint with its signatures fit well. */
export const MAX_TLOG_PROOF_LENGTH = 524_288

/** C2SP tlog-proof: that an entry is in a log whose checkpoint witnesses have cosigned. */
export type TlogProof = {
  /** Not authenticated by itself. In the files of this service it is the entry, so that the file needs nothing beside it. */
  extra?: Uint8Array
  index: number
  /** Hashes in base64, from the sibling of the leaf upwards. */
  proof: string[]
  checkpoint: string
}

export function formatTlogProof({
  extra,
  index,
  proof,
  checkpoint,
}: Omit<TlogProof, 'proof'> & { proof: readonly HashInput[] }): string {
  const lines = [
    HEADER,
    ...(extra === undefined ? [] : [`extra ${toBase64(extra)}`]),
    `index ${index}`,
    ...proof.map((hash) => toBase64(readHash(hash) ?? new Uint8Array())),
  ]
  const text = `${lines.join('\n')}\n\n${checkpoint}`
  if (!parseTlogProof(text)) throw new ProofError('These values do not form a tlog-proof.')
  return text
}

/** The parsed file, or undefined when it is malformed. Nothing in it is verified. */
export function parseTlogProof(text: unknown): TlogProof | undefined {
  if (typeof text !== 'string' || text.length > MAX_TLOG_PROOF_LENGTH) return undefined
  const blank = text.indexOf('\n\n')
  if (blank < 0) return undefined
  const [header, ...lines] = text.slice(0, blank).split('\n')
  const extraText = lines[0]?.startsWith('extra ') ? lines.shift()!.slice('extra '.length) : undefined
  const extra = tryDecode(fromBase64, extraText)
  const indexText = /^index (0|[1-9]\d{0,15})$/.exec(lines.shift() ?? '')?.[1]
  const index = Number(indexText)
  if (header !== HEADER || indexText === undefined || !isTreeSize(index)) return undefined
  if (extraText !== undefined && !extra) return undefined
  if (lines.length > MAX_PROOF_HASHES) return undefined
  if (!lines.every((hash) => tryDecode(fromBase64, hash)?.length === HASH_BYTES)) return undefined
  const checkpoint = text.slice(blank + 2)
  if (!parseCheckpoint(checkpoint)) return undefined
  return { ...(extra && { extra }), index, proof: lines, checkpoint }
}

/** Verifies with a policy alone that `entry` is in the log. Never throws, whatever the input. */
export function verifyTlogProof(
  text: unknown,
  { entry, ...options }: PolicyOptions & { entry: Uint8Array },
): Verification {
  const proof = parseTlogProof(text)
  const checks = proof ? checkTlogProof(proof, entry, options) : [failed('shape', 'This is not a tlog-proof.')]
  return { ok: checks.every(({ ok }) => ok === true), checks, does_not_prove: DOES_NOT_PROVE }
}

export type VerifyReceiptProofOptions = PolicyOptions & {
  /** The issuer's key set. The log has signed the receipt's entry in any case; with it the receipt's own signature is checked too. */
  jwks?: Jwks
  /** The receipt that the file must be about; without it the file may be about any. */
  receipt?: unknown
}

/** The receipt in a verified file, as it was issued. */
export type ReceiptProofVerification = Verification & { receipt?: JsonObject }

/**
 * Verifies a tlog-proof file with a receipt in it: that the receipt is an entry of a log of the policy, under a checkpoint
 * that the witnesses of the policy cosigned. Needs no network. Never throws, whatever the input.
 */
export function verifyReceiptProof(text: unknown, options: VerifyReceiptProofOptions): ReceiptProofVerification {
  const proof = parseTlogProof(text)
  if (!proof) return refuse(failed('shape', 'This is not a tlog-proof.'))
  if (!proof.extra) return refuse(failed('shape', 'The file does not have the receipt in its extra line.'))
  const receipt = readReceipt(proof.extra)
  if ('problem' in receipt) return refuse(failed('shape', receipt.problem))
  const checks = [
    ...checkTlogProof(proof, proof.extra, options),
    ...(options.jwks
      ? checkSignature(receipt.value.signature, omit(receipt.value, 'signature', 'log'), {
          jwks: options.jwks,
          purpose: 'receipt',
        })
      : [skipped('signature', "No key set was given; the log's signature covers the receipt.")]),
    ...(options.receipt === undefined ? [] : [checkSameReceipt(options.receipt, proof.extra)]),
  ]
  const ok = checks.every((check) => check.ok !== false)
  return { ok, checks, does_not_prove: DOES_NOT_PROVE, ...(ok && { receipt: { ...receipt.value, log: null } }) }
}

function checkTlogProof(proof: TlogProof, entry: Uint8Array, options: PolicyOptions): Check[] {
  const { checkpoint, cosignatures, ok, reason } = verifyLogPolicy(proof.checkpoint, options)
  if (!checkpoint)
    return [passedShape, failed('checkpoint', reason), skipped('inclusion', 'There is no trusted checkpoint.')]
  const { size, root, origin } = checkpoint
  const isIncluded = verifyInclusion({ leafHash: hashLeaf(entry), index: proof.index, size, proof: proof.proof, root })
  return [
    passedShape,
    passed('checkpoint', `Signed by ${origin}, which had ${size} entries.`),
    ok
      ? passed('quorum', cosignatures.length === 0 ? 'The policy asks for no witness.' : reason)
      : failed('quorum', reason),
    isIncluded
      ? passed('inclusion', `It is entry ${proof.index} of the log.`)
      : failed('inclusion', 'The proof does not lead from this entry to the root of the checkpoint.'),
  ]
}

const passedShape = passed('shape', 'The file is a well-formed tlog-proof.')

const refuse = (check: Check): ReceiptProofVerification => ({
  ok: false,
  checks: [check],
  does_not_prove: DOES_NOT_PROVE,
})

/** The entry must be the receipt's canonical form, or two texts would pass as one receipt. */
function readReceipt(entry: Uint8Array): { value: JsonObject } | { problem: string } {
  const text = fromUtf8(entry)
  let value: unknown
  try {
    value = parseJson(text ?? '')
  } catch {
    return { problem: 'The extra line does not hold JSON.' }
  }
  const problem = receiptProblem(value)
  if (problem !== undefined || !isJsonObject(value)) return { problem: `The extra line holds no receipt: ${problem}` }
  const canonical = canonicalBytes(omit(value, 'log'))
  if ('problem' in canonical || !equalBytes(canonical.bytes, entry))
    return { problem: 'The receipt in the extra line is not in its canonical form.' }
  return { value }
}

function checkSameReceipt(receipt: unknown, entry: Uint8Array): Check {
  const leaf = isJsonObject(receipt) ? canonicalBytes(omit(receipt, 'log')) : undefined
  return leaf && 'bytes' in leaf && equalBytes(leaf.bytes, entry)
    ? passed('receipt', 'The file is about this receipt.')
    : failed('receipt', 'The file is about another receipt.')
}

/** The file of a receipt at `index` of a log: its entry travels in the extra line. */
export const formatReceiptProof = (
  receipt: object,
  place: { index: number; inclusion_proof: readonly string[]; checkpoint: string },
): string =>
  formatTlogProof({
    extra: receiptLeaf(receipt),
    index: place.index,
    proof: place.inclusion_proof,
    checkpoint: place.checkpoint,
  })

const DOES_NOT_PROVE = [
  'That the entry is true: the log and the witnesses vouch that it was logged, not for what it says.',
  'That the log has not forked since: a newer checkpoint may contradict this one.',
  'That the keys of the policy belong to whom you think: get the policy from a place you trust.',
]
