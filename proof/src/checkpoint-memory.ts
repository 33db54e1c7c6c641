import { type Checkpoint, type CheckpointKey, verifyCheckpoint } from './checkpoint.ts'
import { type Check, failed, passed, skipped } from './checks.ts'
import { verifyConsistency } from './consistency.ts'
import { equalBytes } from './encoding.ts'
import { LOG_EVIDENCE_SCHEMA, type LogEvidence } from './log-evidence.ts'

/** Where a reader keeps the largest checkpoint it has seen of each log, as the signed note. */
export type CheckpointStore = {
  read(log: string): Promise<string | undefined> | string | undefined
  write(log: string, note: string): Promise<void> | void
}

export function memoryCheckpoints(): CheckpointStore {
  const notes = new Map<string, string>()
  return { read: (log) => notes.get(log), write: (log, note) => void notes.set(log, note) }
}

export type CheckpointMemoryOptions = {
  store: CheckpointStore
  origin: string
  /** The keys of the log that are trusted now, retired ones included. */
  keys: readonly CheckpointKey[]
  /** The name in the store; by default the origin. */
  name?: string
  /**
   * What was remembered before the checkpoint was asked for. When it is given, the checkpoint is the log's newest, and one
   * that is smaller is a rollback. Reading it before the request keeps two answers that overtake each other apart.
   */
  before?: string | undefined | null
  /**
   * The proof between two sizes from the log; without it a checkpoint of another size cannot be compared. It throws when
   * the log cannot be reached, and returns no hashes when the log refuses.
   */
  fetchConsistency?: (from: number, to: number) => Promise<readonly string[]>
  /** The current time, for the evidence. */
  now: Date
}

/** The check `log_memory`, and evidence when the log has contradicted itself. */
export type RememberedCheck = { check: Check; evidence?: LogEvidence }

/**
 * Compares a checkpoint with the largest one that was seen before, and remembers it when it is larger: trust on first use.
 * What cannot be compared is `skipped` and not remembered; a rollback, a fork, and a log that cannot prove its growth fail.
 */
export async function rememberCheckpoint(note: unknown, options: CheckpointMemoryOptions): Promise<RememberedCheck> {
  const { store, origin, keys, name = origin, now } = options
  const trust = { origin, keys }
  const checkpointCheck = verifyCheckpoint(note, trust)
  if (!checkpointCheck.ok || typeof note !== 'string')
    return { check: skipped('log_memory', 'There is no trusted checkpoint.') }
  const rememberedNote = await store.read(name)
  const remembered = verifyCheckpoint(rememberedNote, trust)
  if (!remembered.ok || rememberedNote === undefined) {
    await store.write(name, note)
    return { check: passed('log_memory', `The first checkpoint of this log that was seen here is remembered.`) }
  }
  const { checkpoint: old } = remembered
  const { checkpoint: current } = checkpointCheck
  const evidence = (kind: 'fork' | 'rollback', fork?: LogEvidence['fork']): LogEvidence => ({
    schema: LOG_EVIDENCE_SCHEMA,
    kind,
    origin,
    checkpoints: [rememberedNote, note],
    observed_at: [now.toISOString(), now.toISOString()],
    ...(fork && { fork }),
  })
  if (current.size === old.size) {
    return equalBytes(current.root, old.root)
      ? { check: passed('log_memory', `The same tree of ${old.size} entries was seen before.`) }
      : {
          check: failed('log_memory', `The log showed another tree of ${old.size} entries before: it has forked.`),
          evidence: evidence('fork'),
        }
  }
  const before = typeof options.before === 'string' ? verifyCheckpoint(options.before, trust) : undefined
  if (before?.ok && current.size < before.checkpoint.size) {
    const reason = `The log has ${current.size} entries and had ${before.checkpoint.size} before: it was rolled back.`
    return { check: failed('log_memory', reason), evidence: evidence('rollback') }
  }
  const [smaller, larger] = current.size < old.size ? [current, old] : [old, current]
  const proof = await readProof(options, smaller, larger)
  if (proof === undefined)
    return { check: skipped('log_memory', `It was not compared with the tree of ${old.size} entries seen before.`) }
  if (!isExtension(smaller, larger, proof)) {
    const reason = `The log cannot show that its tree of ${larger.size} entries extends that of ${smaller.size} seen before.`
    return { check: failed('log_memory', reason) }
  }
  if (current.size > old.size) await store.write(name, note)
  return { check: passed('log_memory', `It agrees with the tree of ${old.size} entries seen before.`) }
}

/** Undefined when the log could not be asked. */
async function readProof(
  { fetchConsistency }: CheckpointMemoryOptions,
  smaller: Checkpoint,
  larger: Checkpoint,
): Promise<readonly string[] | undefined> {
  if (smaller.size === 0) return []
  try {
    return await fetchConsistency?.(smaller.size, larger.size)
  } catch {
    return undefined
  }
}

const isExtension = (smaller: Checkpoint, larger: Checkpoint, proof: readonly string[]) =>
  verifyConsistency({
    oldSize: smaller.size,
    oldRoot: smaller.root,
    newSize: larger.size,
    newRoot: larger.root,
    proof,
  })
