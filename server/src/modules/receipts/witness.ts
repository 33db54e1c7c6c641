import {
  type Note,
  noteKeyId,
  noteSignatureLine,
  parseCheckpoint,
  parseVerifierKey,
  toBase64,
  verifyCosignatures,
} from '@countersign/proof'
import type { Db } from '../../platform/db.ts'
import { conflict, invalid, notConfigured } from '../../platform/problem.ts'
import { saveCosignature } from './log.store.ts'

type WitnessDeps = {
  db: Db
  origin: string
  witnesses: readonly string[]
  now: Date
  rootAt(size: number): Promise<Uint8Array>
}

/**
 * Accepts a checkpoint of this log that a witness has cosigned. It must have the root that the log had at that size;
 * another root is evidence of a fork, and the error says so.
 */
export async function acceptCosignatures(deps: WitnessDeps, newestSize: number, note: string) {
  if (deps.witnesses.length === 0) throw notConfigured('No witness is configured for this log.')
  const checkpoint = parseCheckpoint(note)
  if (!checkpoint) throw invalid('This is not a checkpoint in the signed note format.')
  if (checkpoint.origin !== deps.origin) throw invalid(`The checkpoint is of another log: '${checkpoint.origin}'.`)
  if (checkpoint.size === 0 || checkpoint.size > newestSize)
    throw invalid(`The log has no checkpoint of ${checkpoint.size} entries.`)
  const root = await deps.rootAt(checkpoint.size)
  if (toBase64(root) !== toBase64(checkpoint.root))
    throw conflict(
      'The log had another root at this size. If our signature is under this checkpoint, keep it as evidence.',
    )

  const verification = verifyCosignatures(note, { witnesses: deps.witnesses, now: deps.now })
  if (!verification.ok) throw invalid(verification.reason)
  const accepted = cosignaturesOf(checkpoint.note, deps.witnesses)
  for (const { witness, time, line } of accepted)
    await saveCosignature(deps.db, checkpoint.size, witness, line, new Date(time * 1000))
  return {
    size: checkpoint.size,
    accepted: accepted.map(({ witness, time }) => ({ witness, cosigned_at: new Date(time * 1000).toISOString() })),
  }
}

/** One signature line for each known witness; they have been verified already. */
function cosignaturesOf(note: Note, witnesses: readonly string[]) {
  return witnesses.flatMap((verifierKey) => {
    const key = parseVerifierKey(verifierKey)
    const keyId = key && toBase64(noteKeyId(key))
    const signature =
      key && note.signatures.find((candidate) => candidate.name === key.name && toBase64(candidate.keyId) === keyId)
    if (!signature) return []
    // A cosignature is the witness's time, in eight bytes, and then its signature.
    const time = Number(Buffer.from(signature.signature).readBigUInt64BE(0))
    return [{ witness: key.name, time, line: noteSignatureLine(key, signature.signature) }]
  })
}
