import { concat } from './encoding.ts'
import { ProofError } from './proof-error.ts'
import { TILE_WIDTH } from './tile.ts'

/** The length of an entry is written in 16 bits. */
export const MAX_ENTRY_BYTES = 65_535

/** C2SP entry bundle: each entry is preceded by its big-endian 16-bit length. */
export function encodeEntryBundle(entries: readonly Uint8Array[]): Uint8Array {
  if (entries.length < 1 || entries.length > TILE_WIDTH) {
    throw new ProofError(`A bundle contains 1 to ${TILE_WIDTH} entries, not ${entries.length}.`)
  }
  return concat(
    ...entries.flatMap((entry) => {
      if (entry.length > MAX_ENTRY_BYTES) throw new ProofError(`An entry has at most ${MAX_ENTRY_BYTES} bytes.`)
      return [new Uint8Array([entry.length >> 8, entry.length & 0xff]), entry]
    }),
  )
}

/** The entries of a bundle, which must contain exactly `width` of them. Throws when it is truncated or has more. */
export function decodeEntryBundle(bytes: Uint8Array, width: number): Uint8Array[] {
  const entries: Uint8Array[] = []
  let at = 0
  while (at < bytes.length && entries.length < width) {
    if (at + 2 > bytes.length) throw new ProofError('The entry bundle is truncated.')
    const end = at + 2 + ((bytes[at]! << 8) | bytes[at + 1]!)
    if (end > bytes.length) throw new ProofError('The entry bundle is truncated.')
    entries.push(bytes.subarray(at + 2, end))
    at = end
  }
  if (at !== bytes.length || entries.length !== width) {
    throw new ProofError(`The entry bundle does not contain exactly ${width} entries.`)
  }
  return entries
}
