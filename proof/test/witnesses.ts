import {
  cosignatureLine,
  cosignatureMessage,
  formatVerifierKey,
  NOTE_COSIGNATURE_V1,
  parseCheckpoint,
} from '../src/proof.ts'
import type { TestKey } from './fixtures.ts'

export const witnessVkey = (name: string, { publicKey }: TestKey): string =>
  formatVerifierKey({ name, type: NOTE_COSIGNATURE_V1, publicKey })

/** The cosignature of a checkpoint at `time`; `signer` differs from `key` for a forged one. */
export function cosign(note: string, name: string, key: TestKey, time: number, signer = key): string {
  const { text } = parseCheckpoint(note)!.note
  return cosignatureLine({ name, publicKey: key.publicKey }, time, signer.sign(cosignatureMessage(text, time)))
}
