import { type Checkpoint, type CheckpointKey, verifyCheckpoint } from './checkpoint.ts'
import {
  type Check,
  failed,
  isJsonObject,
  isShortText,
  isTime,
  type JsonObject,
  passed,
  skipped,
  type Verification,
} from './checks.ts'
import { verifyConsistency } from './consistency.ts'
import { readCosignatures } from './cosignature.ts'
import { equalBytes, fromBase64, toBase64, tryDecode } from './encoding.ts'
import { verifyInclusion } from './inclusion.ts'
import { keysOfOrigin, type LogPolicy } from './log-policy.ts'
import { type HashInput, hashLeaf, readHash } from './merkle-tree.ts'
import type { Note } from './note.ts'

export const LOG_EVIDENCE_SCHEMA = 'log-evidence/v1'

/**
 * What a monitor found wrong with a log, in a form that anybody can verify with the log's public key.
 * - `fork`: two signed checkpoints of which the larger does not extend the smaller.
 * - `rollback`: a signed checkpoint that was shown after a larger one.
 * - `withheld_entry`: an entry that the tree of a signed checkpoint has, and whose content the log does not show.
 */
export type LogEvidence = {
  schema: typeof LOG_EVIDENCE_SCHEMA
  kind: 'fork' | 'rollback' | 'withheld_entry'
  origin: string
  /** In the order in which the monitor saw them. */
  checkpoints: string[]
  /** When the monitor saw each. It is the monitor's word. */
  observed_at: string[]
  /** For a fork between trees of different sizes: what the larger tree has where the smaller one should be. */
  fork?: { root_at_smaller_size: string; consistency_proof: string[] }
  /** For a withheld entry: its place in the tree, and what was shown instead, in base64, or null for nothing. */
  entry?: { index: number; leaf_hash: string; inclusion_proof: string[]; shown: string | null }
}

export type VerifyLogEvidenceOptions = {
  /** Keys of the log; or a policy that lists it. */
  keys?: readonly CheckpointKey[]
  /** With it the evidence also says which witnesses stand on both sides. */
  policy?: LogPolicy
}

const kinds: Record<
  string,
  { checkpoints: number; check: (evidence: JsonObject, heads: Head[], options: VerifyLogEvidenceOptions) => Check[] }
> = {
  fork: { checkpoints: 2, check: checkFork },
  rollback: { checkpoints: 2, check: checkRollback },
  withheld_entry: { checkpoints: 1, check: checkWithheldEntry },
}

type Head = Checkpoint & { note: Note }

/**
 * Verifies evidence against a log offline. `ok` means that the evidence holds: the owner of the log's key did what it
 * says, as far as `does_not_prove` does not except it. Never throws, whatever the input.
 */
export function verifyLogEvidence(evidence: unknown, options: VerifyLogEvidenceOptions): Verification {
  const problem = shapeProblem(evidence)
  if (problem !== undefined || !isJsonObject(evidence)) {
    return { ok: false, checks: [failed('shape', problem ?? 'Evidence is a JSON object.')], does_not_prove: [] }
  }
  const { check } = kinds[evidence.kind as string]!
  const origin = evidence.origin as string
  const keys = options.keys ?? (options.policy ? keysOfOrigin({ policy: options.policy }, origin) : [])
  const verified = (evidence.checkpoints as unknown[]).map((note) => verifyCheckpoint(note, { origin, keys }))
  const checks = [
    passed('shape', `The file is evidence of the kind '${evidence.kind}' about the log '${origin}'.`),
    ...verified.map(({ ok, reason }) => (ok ? passed : failed)('checkpoint', reason)),
  ]
  const heads = verified.flatMap((head) => (head.ok ? [{ ...head.checkpoint, note: head.note }] : []))
  if (heads.length < verified.length) checks.push(skipped('contradiction', 'A checkpoint is not signed by the log.'))
  else checks.push(...check(evidence, heads, options))
  const isShown = checks.some(({ name, ok }) => name === 'contradiction' && ok === true)
  return {
    ok: isShown && checks.every(({ ok }) => ok !== false),
    checks,
    does_not_prove: doesNotProve(evidence.kind as string, checks),
  }
}

function checkFork(evidence: JsonObject, heads: Head[], { policy }: VerifyLogEvidenceOptions): Check[] {
  const [smaller, larger] = [...heads].sort((a, b) => a.size - b.size) as [Head, Head]
  const double = checkDoubleCosigners(smaller, larger, policy)
  if (smaller.size === larger.size) {
    return [
      equalBytes(smaller.root, larger.root)
        ? failed('contradiction', 'Both checkpoints have the same root.')
        : passed('contradiction', `The log signed two roots for ${smaller.size} entries.`),
      ...double,
    ]
  }
  const fork = isJsonObject(evidence.fork) ? evidence.fork : {}
  const rootAtSmallerSize = readHash(fork.root_at_smaller_size)
  const isOfLarger =
    rootAtSmallerSize &&
    Array.isArray(fork.consistency_proof) &&
    verifyConsistency({
      oldSize: smaller.size,
      oldRoot: rootAtSmallerSize,
      newSize: larger.size,
      newRoot: larger.root,
      proof: fork.consistency_proof as HashInput[],
    })
  if (!isOfLarger || smaller.size === 0)
    return [failed('contradiction', 'The proof does not show what the larger tree has at the smaller size.')]
  return [
    equalBytes(rootAtSmallerSize, smaller.root)
      ? failed('contradiction', 'The larger tree extends the smaller one.')
      : passed(
          'contradiction',
          `The tree of ${larger.size} entries does not extend the signed one of ${smaller.size}.`,
        ),
    ...double,
  ]
}

/** Two trees that contradict each other cannot both be cosigned by an honest witness. */
function checkDoubleCosigners(a: Head, b: Head, policy: LogPolicy | undefined): Check[] {
  const names = cosignersOfBoth(a, b, policy).map(({ name }) => name)
  if (names.length === 0) return []
  return [passed('double_cosigners', `Witnesses that cosigned both trees: ${names.join(', ')}.`)]
}

const cosignersOfBoth = (a: Head, b: Head, policy: LogPolicy | undefined) =>
  (policy?.witnesses ?? []).flatMap(({ name, key }) => {
    const times = [a, b].map(({ note }) => readCosignatures(note, key).times)
    return times.every((list) => list.length > 0) ? [{ name, times: times.map((list) => Math.max(...list)) }] : []
  })

function checkRollback(evidence: JsonObject, heads: Head[], { policy }: VerifyLogEvidenceOptions): Check[] {
  const [earlier, later] = heads as [Head, Head]
  if (later.size >= earlier.size) return [failed('contradiction', 'The later checkpoint is not smaller.')]
  // A cosignature says that the tree was the largest one its witness had seen at that time.
  const backward = cosignersOfBoth(earlier, later, policy).filter(({ times }) => times[1]! > times[0]!)
  return [
    passed(
      'contradiction',
      `The log signed a tree of ${earlier.size} entries, and a tree of ${later.size} was shown later.`,
    ),
    ...(backward.length === 0
      ? [skipped('order', 'That the smaller tree was shown later is the word of the monitor.')]
      : [passed('order', `The cosignatures show the order: ${backward.map(({ name }) => name).join(', ')}.`)]),
    ...(isTime((evidence.observed_at as unknown[])[1]) ? [] : [failed('shape', 'There is no time of observation.')]),
  ]
}

function checkWithheldEntry(evidence: JsonObject, [head]: Head[]): Check[] {
  const entry = isJsonObject(evidence.entry) ? evidence.entry : {}
  const { index, leaf_hash, inclusion_proof, shown } = entry
  const isCommitted = verifyInclusion({
    leafHash: leaf_hash as string,
    index: index as number,
    size: head!.size,
    proof: inclusion_proof as string[],
    root: head!.root,
  })
  if (!isCommitted) return [failed('contradiction', 'The proof does not show that the tree has this entry.')]
  const shownHash = typeof shown === 'string' ? readEntry(shown) : undefined
  if (shownHash !== undefined && toBase64(shownHash) === leaf_hash)
    return [failed('contradiction', 'The content that was shown is the content of the entry.')]
  return [
    passed('contradiction', `The signed tree has entry ${index}, and its content was not shown.`),
    skipped('shown', 'What the log showed, or that it showed nothing, is the word of the monitor.'),
  ]
}

function readEntry(base64: string): Uint8Array | undefined {
  const bytes = tryDecode(fromBase64, base64)
  return bytes && hashLeaf(bytes)
}

function shapeProblem(evidence: unknown): string | undefined {
  if (!isJsonObject(evidence)) return 'Evidence is a JSON object.'
  if (evidence.schema !== LOG_EVIDENCE_SCHEMA) return `The schema is not '${LOG_EVIDENCE_SCHEMA}'.`
  if (!isShortText(evidence.origin)) return "'origin' must be the name of a log."
  if (typeof evidence.kind !== 'string' || !Object.hasOwn(kinds, evidence.kind))
    return 'The kind of evidence is unknown.'
  const { checkpoints } = kinds[evidence.kind]!
  for (const member of ['checkpoints', 'observed_at']) {
    const value = evidence[member]
    if (!Array.isArray(value) || value.length !== checkpoints) return `'${member}' must have ${checkpoints} values.`
  }
  return undefined
}

function doesNotProve(kind: string, checks: readonly Check[]): string[] {
  const hasPassed = (name: string) => checks.some((check) => check.name === name && check.ok === true)
  return [
    'Why it happened: a stolen key or a restored backup leaves the same evidence.',
    'That the key belongs to whom you think: get it from a place you trust.',
    ...(kind === 'rollback' && !hasPassed('order') ? ['In which order the checkpoints were shown.'] : []),
    ...(kind === 'withheld_entry' ? ['That the log would not show the entry to somebody else, or later.'] : []),
  ]
}
