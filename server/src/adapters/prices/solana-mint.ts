import { SourceRefused } from '../../modules/basis/price-source.ts'

/**
 * A Solana mint account as bytes. The base is 82 bytes; under Token-2022 it is padded to 165, followed by the kind of
 * account and a list of extensions, each a type, a length and that many bytes.
 */
export type Mint = {
  supply: bigint
  decimals: number
  scaled: { multiplier: number; next: number; nextAt: number } | null
  paused: boolean
}

const SUPPLY_AT = 36
const DECIMALS_AT = 44
const INITIALISED_AT = 45
const BASE_BYTES = 82
const KIND_AT = 165
const KIND_MINT = 1
const EXTENSIONS_AT = 166
const SCALED_UI_AMOUNT = 25
const PAUSABLE = 26
const AUTHORITY_BYTES = 32

export function decodeMint(bytes: Uint8Array): Mint {
  if (bytes.length < BASE_BYTES) throw new SourceRefused('the account is too short to be a mint')
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  if (view.getUint8(INITIALISED_AT) !== 1) throw new SourceRefused('the mint is not initialised')
  const mint: Mint = {
    supply: view.getBigUint64(SUPPLY_AT, true),
    decimals: view.getUint8(DECIMALS_AT),
    scaled: null,
    paused: false,
  }
  if (bytes.length <= KIND_AT) return mint
  if (view.getUint8(KIND_AT) !== KIND_MINT) throw new SourceRefused('the account is not a mint')
  for (let at = EXTENSIONS_AT; at + 4 <= bytes.length; ) {
    const type = view.getUint16(at, true)
    const length = view.getUint16(at + 2, true)
    const start = at + 4
    if (type === 0) break
    if (start + length > bytes.length) throw new SourceRefused('an extension of the mint is cut short')
    if (type === SCALED_UI_AMOUNT) mint.scaled = decodeScaled(view, start, length)
    if (type === PAUSABLE) mint.paused = length > AUTHORITY_BYTES && view.getUint8(start + AUTHORITY_BYTES) === 1
    at = start + length
  }
  return mint
}

function decodeScaled(view: DataView, start: number, length: number): NonNullable<Mint['scaled']> {
  if (length < AUTHORITY_BYTES + 24) throw new SourceRefused('the multiplier of the mint is cut short')
  const multiplier = view.getFloat64(start + AUTHORITY_BYTES, true)
  const nextAt = Number(view.getBigInt64(start + AUTHORITY_BYTES + 8, true))
  const next = view.getFloat64(start + AUTHORITY_BYTES + 16, true)
  if (!(multiplier > 0 && next > 0 && Number.isFinite(multiplier) && Number.isFinite(next)))
    throw new SourceRefused('the multiplier of the mint is not one')
  return { multiplier, next, nextAt }
}
