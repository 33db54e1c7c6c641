import { type Checkpoint, type CheckpointKey, parseCheckpoint, verifyCheckpoint } from './checkpoint.ts'
import { verifyConsistency } from './consistency.ts'
import { equalBytes, fromBase64, toBase64, tryDecode } from './encoding.ts'
import { type HashInput, isTreeSize, readHash } from './merkle-tree.ts'
import { parseVerifierKey } from './note.ts'
import { ProofError } from './proof-error.ts'
import { HASH_BYTES } from './sha256.ts'

/** The limit of C2SP tlog-witness. */
export const MAX_CONSISTENCY_LINES = 63
/** Longer than any request of a log that has a handful of signatures. */
export const MAX_ADD_CHECKPOINT_LENGTH = 65_536
/** The media type of the body of a 409: the size that the witness has, and a newline. */
export const TLOG_SIZE_TYPE = 'text/x.tlog.size'

/** What a log sends to a witness. */
export type AddCheckpoint = { oldSize: number; proof: string[]; checkpoint: string }

/** The body of `add-checkpoint` (C2SP tlog-witness). */
export function formatAddCheckpoint({
  oldSize,
  proof,
  checkpoint,
}: {
  oldSize: number
  proof: readonly HashInput[]
  checkpoint: string
}): string {
  const hashes = proof.map(readHash)
  if (!isTreeSize(oldSize) || hashes.length > MAX_CONSISTENCY_LINES || hashes.includes(undefined))
    throw new ProofError('An add-checkpoint request needs a tree size and at most 63 hashes.')
  return `old ${oldSize}\n${hashes.map((hash) => `${toBase64(hash!)}\n`).join('')}\n${checkpoint}`
}

/** The parsed body, or undefined when it is malformed. The checkpoint in it is not verified. */
export function parseAddCheckpoint(body: unknown): AddCheckpoint | undefined {
  if (typeof body !== 'string' || body.length > MAX_ADD_CHECKPOINT_LENGTH) return undefined
  const blank = body.indexOf('\n\n')
  if (blank < 0) return undefined
  const [oldLine = '', ...proof] = body.slice(0, blank).split('\n')
  const oldSize = parseTreeSize(/^old (\S+)$/.exec(oldLine)?.[1])
  if (oldSize === undefined || proof.length > MAX_CONSISTENCY_LINES) return undefined
  if (!proof.every((hash) => tryDecode(fromBase64, hash)?.length === HASH_BYTES)) return undefined
  return { oldSize, proof, checkpoint: body.slice(blank + 2) }
}

/** A decimal without leading zeroes. */
export function parseTreeSize(text: string | undefined): number | undefined {
  const size = text !== undefined && /^(?:0|[1-9]\d{0,15})$/.test(text) ? Number(text) : undefined
  return isTreeSize(size) ? size : undefined
}

/** What a witness has cosigned last of a log. */
export type WitnessedTree = { size: number; root: Uint8Array }

export type WitnessDecision =
  | { status: 200; checkpoint: Checkpoint; text: string }
  | { status: 409; size: number; reason: string; isFork: boolean; checkpoint: Checkpoint }
  | { status: 422; reason: string; checkpoint: Checkpoint }
  | { status: 400 | 403 | 404; reason: string }

/**
 * What a witness answers to a request, given the logs that it knows by their verifier keys and what it has cosigned of
 * them. After 200 the caller stores the checkpoint, atomically with this decision, and only then cosigns.
 */
export function decideAddCheckpoint(
  body: unknown,
  { logs, latest }: { logs: readonly string[]; latest: (origin: string) => WitnessedTree | undefined },
): WitnessDecision {
  const request = parseAddCheckpoint(body)
  const parsed = request && parseCheckpoint(request.checkpoint)
  if (!request || !parsed) return { status: 400, reason: 'This is not an add-checkpoint request.' }
  const keys: CheckpointKey[] = logs.filter((verifierKey) => parseVerifierKey(verifierKey)?.name === parsed.origin)
  if (keys.length === 0) return { status: 404, reason: `This witness does not know the log '${parsed.origin}'.` }
  const head = verifyCheckpoint(request.checkpoint, { origin: parsed.origin, keys })
  if (!head.ok) return { status: 403, reason: head.reason }
  const { checkpoint } = head
  if (request.oldSize > checkpoint.size)
    return { status: 400, reason: 'The old size is larger than the size of the checkpoint.' }

  const stored = latest(parsed.origin)
  const storedSize = stored?.size ?? 0
  if (request.oldSize !== storedSize) {
    const reason = `The latest tree that this witness cosigned has ${storedSize} entries.`
    return { status: 409, size: storedSize, reason, isFork: false, checkpoint }
  }
  if (stored && checkpoint.size === storedSize && !equalBytes(checkpoint.root, stored.root)) {
    const reason = 'This witness has cosigned another root at this size.'
    return { status: 409, size: storedSize, reason, isFork: true, checkpoint }
  }
  const isConsistent =
    storedSize === 0
      ? request.proof.length === 0
      : verifyConsistency({
          oldSize: storedSize,
          oldRoot: stored!.root,
          newSize: checkpoint.size,
          newRoot: checkpoint.root,
          proof: request.proof,
        })
  if (!isConsistent)
    return { status: 422, reason: 'The consistency proof does not lead to this checkpoint.', checkpoint }
  return { status: 200, checkpoint, text: head.note.text }
}
