import { verifyEd25519 } from './ed25519.ts'
import { fromBase64, toBase64, tryDecode, utf8 } from './encoding.ts'
import { type Jwk, publicKeyBytes } from './jwk.ts'
import { emptyRoot, type HashInput, isTreeSize, readHash } from './merkle-tree.ts'
import {
  isKeyName,
  NOTE_ED25519,
  type Note,
  type NoteKey,
  noteSignatureLine,
  parseNote,
  parseVerifierKey,
  signaturesOf,
} from './note.ts'
import { ProofError } from './proof-error.ts'
import { HASH_BYTES } from './sha256.ts'

/** The head of a log: C2SP tlog-checkpoint. */
export type Checkpoint = { origin: string; size: number; root: Uint8Array; extensions: string[] }

/** A public key that signs under the log's own name, or a verifier key line, which includes the name. */
export type CheckpointKey = Jwk | string

export type VerifiedCheckpoint =
  | { ok: true; checkpoint: Checkpoint; note: Note; signedBy: string[]; reason: string }
  | { ok: false; reason: string }

/** The text a log signs with ed25519 and puts into the note. */
export function checkpointText({ origin, size, root }: { origin: string; size: number; root: HashInput }): string {
  const hash = readHash(root)
  if (!isTreeSize(size) || !hash) throw new ProofError('A checkpoint needs a tree size and a root of 32 bytes.')
  const text = `${origin}\n${size}\n${toBase64(hash)}\n`
  if (parseCheckpointText(text)?.origin !== origin) throw new ProofError(`'${origin}' cannot be the origin of a log.`)
  return text
}

/** The log's own signature line, from the 64-byte ed25519 signature of `checkpointText`. */
export const checkpointSignatureLine = (origin: string, publicKey: Uint8Array, signature: Uint8Array): string =>
  noteSignatureLine({ name: origin, type: NOTE_ED25519, publicKey }, signature)

/** The parsed checkpoint, or undefined when it is malformed. Does not verify signatures. */
export function parseCheckpoint(note: unknown): (Checkpoint & { note: Note }) | undefined {
  const parsed = parseNote(note)
  const checkpoint = parsed && parseCheckpointText(parsed.text)
  return checkpoint && { ...checkpoint, note: parsed }
}

/**
 * Verifies that a trusted key of the log signed this checkpoint. Signatures of unknown keys are ignored; an invalid
 * signature in a trusted key's name invalidates the whole note, as does a tree size beyond 2^53 - 1.
 */
export function verifyCheckpoint(
  note: unknown,
  { origin, keys }: { origin: string; keys: readonly CheckpointKey[] },
): VerifiedCheckpoint {
  const parsed = parseCheckpoint(note)
  if (!parsed) return { ok: false, reason: 'This is not a checkpoint in the signed note format.' }
  if (parsed.origin !== origin)
    return { ok: false, reason: `The checkpoint is of the log '${parsed.origin}', not '${origin}'.` }

  const signedBy: string[] = []
  for (const key of noteKeys(keys, origin)) {
    for (const { signature } of signaturesOf(parsed.note, key)) {
      if (!verifyEd25519(key.publicKey, utf8(parsed.note.text), signature)) {
        return { ok: false, reason: `The signature in the name of '${key.name}' does not verify.` }
      }
      signedBy.push(key.name)
    }
  }
  if (signedBy.length === 0) return { ok: false, reason: 'No trusted key of the log signed this checkpoint.' }
  const { note: parsedNote, ...checkpoint } = parsed
  return { ok: true, checkpoint, note: parsedNote, signedBy, reason: `Signed by ${signedBy.join(', ')}.` }
}

/** Keys whose name cannot appear in a signature line cannot have signed, so they are left out. */
function noteKeys(keys: readonly CheckpointKey[], origin: string): NoteKey[] {
  return keys.flatMap((key) => {
    if (typeof key === 'string') {
      const parsed = parseVerifierKey(key)
      return parsed?.type === NOTE_ED25519 ? [parsed] : []
    }
    const publicKey = publicKeyBytes(key)
    return publicKey && isKeyName(origin) ? [{ name: origin, type: NOTE_ED25519, publicKey }] : []
  })
}

function parseCheckpointText(text: string): Checkpoint | undefined {
  const lines = text.split('\n')
  if (lines.pop() !== '' || lines.length < 3 || lines.includes('')) return undefined
  const [origin, sizeText, rootText, ...extensions] = lines as [string, string, string, ...string[]]
  const size = /^(?:0|[1-9]\d{0,15})$/.test(sizeText) ? Number(sizeText) : undefined
  const root = tryDecode(fromBase64, rootText)
  if (size === undefined || !isTreeSize(size) || root?.length !== HASH_BYTES) return undefined
  if (size === 0 && toBase64(emptyRoot()) !== rootText) return undefined
  return { origin, size, root, extensions }
}
