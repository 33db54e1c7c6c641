import { PriceSourceError } from '../../modules/basis/price-source.ts'

/**
 * A decoded Solana mint account. The base layout has 82 bytes; Token-2022 pads it to 165 bytes, followed by the account
 * type and a list of extensions, each with a type, a length and that many bytes.
 */
export type Mint = {
  supply: bigint
  decimals: number
  scaled: { multiplier: number; next: number; nextAt: number } | null
  paused: boolean
}

const SUPPLY_OFFSET = 36
const DECIMALS_OFFSET = 44
const INITIALISED_OFFSET = 45
const BASE_BYTES = 82
const ACCOUNT_TYPE_OFFSET = 165
const ACCOUNT_TYPE_MINT = 1
const EXTENSIONS_OFFSET = 166
const EXTENSION_SCALED_UI_AMOUNT = 25
const EXTENSION_PAUSABLE = 26
const AUTHORITY_BYTES = 32

export function decodeMint(bytes: Uint8Array): Mint {
  if (bytes.length < BASE_BYTES) throw new PriceSourceError('the account is too short to be a mint')
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  if (view.getUint8(INITIALISED_OFFSET) !== 1) throw new PriceSourceError('the mint is not initialised')
  const mint: Mint = {
    supply: view.getBigUint64(SUPPLY_OFFSET, true),
    decimals: view.getUint8(DECIMALS_OFFSET),
    scaled: null,
    paused: false,
  }
  if (bytes.length <= ACCOUNT_TYPE_OFFSET) return mint
  if (view.getUint8(ACCOUNT_TYPE_OFFSET) !== ACCOUNT_TYPE_MINT) throw new PriceSourceError('the account is not a mint')
  for (let offset = EXTENSIONS_OFFSET; offset + 4 <= bytes.length; ) {
    const type = view.getUint16(offset, true)
    const length = view.getUint16(offset + 2, true)
    const start = offset + 4
    if (type === 0) break
    if (start + length > bytes.length) throw new PriceSourceError('an extension of the mint is cut short')
    if (type === EXTENSION_SCALED_UI_AMOUNT) mint.scaled = decodeScaledUiAmount(view, start, length)
    if (type === EXTENSION_PAUSABLE)
      mint.paused = length > AUTHORITY_BYTES && view.getUint8(start + AUTHORITY_BYTES) === 1
    offset = start + length
  }
  return mint
}

function decodeScaledUiAmount(view: DataView, start: number, length: number): NonNullable<Mint['scaled']> {
  if (length < AUTHORITY_BYTES + 24) throw new PriceSourceError('the multiplier of the mint is cut short')
  const multiplier = view.getFloat64(start + AUTHORITY_BYTES, true)
  const nextAt = Number(view.getBigInt64(start + AUTHORITY_BYTES + 8, true))
  const next = view.getFloat64(start + AUTHORITY_BYTES + 16, true)
  if (!(multiplier > 0 && next > 0 && Number.isFinite(multiplier) && Number.isFinite(next)))
    throw new PriceSourceError('the multiplier of the mint is not a positive number')
  return { multiplier, next, nextAt }
}
