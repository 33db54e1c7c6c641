import { parseCheckpoint } from './checkpoint.ts'
import { SIGNATURE_BYTES, verifyEd25519 } from './ed25519.ts'
import { concat, utf8 } from './encoding.ts'
import { type Jwk, publicKeyBytes } from './jwk.ts'
import {
  NOTE_COSIGNATURE_V1,
  type Note,
  type NoteKey,
  noteSignatureLine,
  parseVerifierKey,
  signaturesOf,
} from './note.ts'
import { ProofError } from './proof-error.ts'

/** A witness key with the name it cosigns under, or its verifier key line. */
export type WitnessKey = { name: string; key: Jwk } | string

export type Cosignature = { name: string; time: number }

export type VerifiedCosignatures = { ok: boolean; cosignatures: Cosignature[]; reason: string }

/** How far a witness's clock may run ahead. */
export const COSIGNATURE_SKEW_SECONDS = 300

/** The message a witness signs (C2SP cosignature/v1): at this time, the checkpoint was the largest consistent one it saw. */
export function cosignatureMessage(checkpointText: string, time: number): Uint8Array {
  if (!Number.isSafeInteger(time) || time < 0) throw new ProofError('The time of a cosignature is in whole seconds.')
  return utf8(`cosignature/v1\ntime ${time}\n${checkpointText}`)
}

/** The witness's signature line, from the 64-byte ed25519 signature of `cosignatureMessage`. */
export function cosignatureLine(
  witness: { name: string; publicKey: Uint8Array },
  time: number,
  signature: Uint8Array,
): string {
  const timestamp = new Uint8Array(8)
  new DataView(timestamp.buffer).setBigUint64(0, BigInt(time))
  return noteSignatureLine({ ...witness, type: NOTE_COSIGNATURE_V1 }, concat(timestamp, signature))
}

/**
 * Verifies which of these witnesses cosigned the checkpoint. With enough of them (`quorum`, one by default) the log cannot
 * have shown different trees to different readers unless those witnesses colluded. The log's own signature is not checked.
 */
export function verifyCosignatures(
  note: unknown,
  { witnesses, quorum = 1, now }: { witnesses: readonly WitnessKey[]; quorum?: number; now?: Date },
): VerifiedCosignatures {
  const parsed = parseCheckpoint(note)
  if (!parsed) return { ok: false, cosignatures: [], reason: 'This is not a checkpoint in the signed note format.' }

  const cosignatures: Cosignature[] = []
  const cosigningKeys = new Set<string>()
  for (const witness of witnesses.flatMap(noteKey)) {
    const { times, problem } = readCosignatures(parsed.note, witness, now)
    for (const time of times) cosignatures.push({ name: witness.name, time })
    if (problem !== undefined) return { ok: false, cosignatures, reason: problem }
    // The same key under two names counts as one witness.
    if (times.length > 0) cosigningKeys.add(witness.publicKey.join())
  }
  const requiredCount = Math.max(1, quorum)
  return {
    ok: cosigningKeys.size >= requiredCount,
    cosignatures,
    reason: `${cosigningKeys.size} known witnesses cosigned, ${requiredCount} required.`,
  }
}

/** The times of the cosignatures of one key, up to the first that does not hold. */
export function readCosignatures(note: Note, key: NoteKey, now?: Date): { times: number[]; problem?: string } {
  const times: number[] = []
  for (const { signature } of signaturesOf(note, key)) {
    const time = verifiedTime(note.text, key.publicKey, signature)
    if (time === undefined) return { times, problem: `The cosignature in the name of '${key.name}' does not verify.` }
    if (now && time > now.getTime() / 1000 + COSIGNATURE_SKEW_SECONDS)
      return { times, problem: `The cosignature of '${key.name}' is dated in the future.` }
    times.push(time)
  }
  return { times }
}

function verifiedTime(text: string, publicKey: Uint8Array, timestamped: Uint8Array): number | undefined {
  if (timestamped.length !== 8 + SIGNATURE_BYTES) return undefined
  const time = Number(new DataView(timestamped.buffer, timestamped.byteOffset, 8).getBigUint64(0))
  if (!Number.isSafeInteger(time)) return undefined
  return verifyEd25519(publicKey, cosignatureMessage(text, time), timestamped.subarray(8)) ? time : undefined
}

function noteKey(witness: WitnessKey): NoteKey[] {
  if (typeof witness === 'string') {
    const parsed = parseVerifierKey(witness)
    return parsed?.type === NOTE_COSIGNATURE_V1 ? [parsed] : []
  }
  const publicKey = publicKeyBytes(witness.key)
  return publicKey ? [{ name: witness.name, type: NOTE_COSIGNATURE_V1, publicKey }] : []
}
