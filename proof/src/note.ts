import { concat, equalBytes, fromBase64, fromHex, toBase64, toHex, tryDecode, utf8 } from './encoding.ts'
import { ProofError } from './proof-error.ts'
import { sha256 } from './sha256.ts'

/** C2SP signed-note signature types supported by this package. */
export const NOTE_ED25519 = 0x01
export const NOTE_COSIGNATURE_V1 = 0x04
export type NoteKeyType = typeof NOTE_ED25519 | typeof NOTE_COSIGNATURE_V1

export const MAX_NOTE_LENGTH = 262_144
export const MAX_NOTE_SIGNATURES = 64

/** A key that may sign notes, with the name it signs under. */
export type NoteKey = { name: string; type: NoteKeyType; publicKey: Uint8Array }

/** One signature line. `keyId` has four bytes; together with the name it identifies the claimed key. */
export type NoteSignature = { name: string; keyId: Uint8Array; signature: Uint8Array }

/** `text` is the signed text, including its last newline. */
export type Note = { text: string; signatures: NoteSignature[] }

/** SHA-256(name ‖ newline ‖ type ‖ public key), truncated to four bytes. */
export const noteKeyId = ({ name, type, publicKey }: NoteKey): Uint8Array =>
  sha256(concat(utf8(`${name}\n`), new Uint8Array([type]), publicKey)).slice(0, 4)

/** `— <name> <base64>` for a signature over the note's text. The content of `signature` depends on the key's type. */
export function noteSignatureLine(key: NoteKey, signature: Uint8Array): string {
  if (!isKeyName(key.name))
    throw new ProofError('A key name must not be empty and must not contain whitespace or a plus sign.')
  return `— ${key.name} ${toBase64(concat(noteKeyId(key), signature))}\n`
}

/** The signed note of a text and its signature lines. */
export function formatNote(text: string, signatureLines: readonly string[]): string {
  const note = `${text}\n${signatureLines.join('')}`
  const parsed = parseNote(note)
  if (parsed?.text !== text || parsed.signatures.length !== signatureLines.length) {
    throw new ProofError('The text and its signature lines do not form a signed note.')
  }
  return note
}

/** The parsed signed note, or undefined when it is malformed. Does not verify signatures. */
export function parseNote(note: unknown): Note | undefined {
  if (typeof note !== 'string' || note.length > MAX_NOTE_LENGTH) return undefined
  if (!note.isWellFormed() || hasControlCharacters(note)) return undefined
  const blank = note.lastIndexOf('\n\n')
  if (blank <= 0 || !note.endsWith('\n')) return undefined
  const lines = note.slice(blank + 2, -1).split('\n')
  if (lines.length > MAX_NOTE_SIGNATURES) return undefined
  const signatures = lines.map(parseSignatureLine)
  if (!signatures.every((signature) => signature !== undefined)) return undefined
  return { text: note.slice(0, blank + 1), signatures }
}

/** The signatures of a note that claim to be from this key, by name and key id. */
export const signaturesOf = (note: Note, key: NoteKey): NoteSignature[] => {
  const keyId = noteKeyId(key)
  return note.signatures.filter(({ name, keyId: claimedKeyId }) => name === key.name && equalBytes(claimedKeyId, keyId))
}

/** The one-line form of a verifier key: `<name>+<hex key id>+<base64 of type and public key>`. */
export const formatVerifierKey = (key: NoteKey): string =>
  `${key.name}+${toHex(noteKeyId(key))}+${toBase64(concat(new Uint8Array([key.type]), key.publicKey))}`

/** The key of a verifier key line, or undefined when it is malformed, of another type, or contradicts its own id. */
export function parseVerifierKey(line: unknown): NoteKey | undefined {
  if (typeof line !== 'string' || line.length > 1024) return undefined
  const [, name, id, encoded] = /^([^+]+)\+([0-9a-f]{8})\+(.+)$/s.exec(line) ?? []
  const bytes = tryDecode(fromBase64, encoded)
  if (name === undefined || id === undefined || !isKeyName(name) || bytes?.length !== 33) return undefined
  const type = bytes[0]
  if (type !== NOTE_ED25519 && type !== NOTE_COSIGNATURE_V1) return undefined
  const key = { name, type, publicKey: bytes.subarray(1) } as const
  return equalBytes(noteKeyId(key), fromHex(id)) ? key : undefined
}

export const isKeyName = (name: string): boolean =>
  name !== '' && name.isWellFormed() && !/[\p{White_Space}+\p{Cc}]/u.test(name)

function parseSignatureLine(line: string): NoteSignature | undefined {
  const [dash, name, encoded, ...extra] = line.split(' ')
  const bytes = tryDecode(fromBase64, encoded)
  if (dash !== '—' || extra.length > 0 || name === undefined || !isKeyName(name)) return undefined
  if (!bytes || bytes.length < 5) return undefined
  return { name, keyId: bytes.subarray(0, 4), signature: bytes.subarray(4) }
}

function hasControlCharacters(text: string): boolean {
  for (let i = 0; i < text.length; i += 1) {
    const code = text.charCodeAt(i)
    if (code < 0x20 && code !== 0x0a) return true
  }
  return false
}
