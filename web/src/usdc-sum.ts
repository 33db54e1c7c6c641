/** Exact amounts: millionths of a USDC as whole numbers, because sums of fractions drift. */
export type Amount = string | number

/** From atomic units as text, or from a number of USDC with at most six decimals. */
export const toMicro = (amount: Amount): bigint =>
  typeof amount === 'string' ? BigInt(amount) : BigInt(Math.round(amount * 1e6))

export const sumMicro = (amounts: readonly bigint[]): bigint => amounts.reduce((sum, micro) => sum + micro, 0n)

/** Every digit, as in `1,234.5` for 1234500000 millionths. */
export function formatMicro(micro: bigint): string {
  const size = micro < 0n ? -micro : micro
  const fraction = (size % 1_000_000n).toString().padStart(6, '0').replace(/0+$/, '')
  return `${micro < 0n ? '−' : ''}${(size / 1_000_000n).toLocaleString('en-US')}${fraction && `.${fraction}`}`
}

export const formatMicroUsdc = (micro: bigint): string => `${formatMicro(micro)} USDC`

export const formatDifference = (micro: bigint): string => `${micro > 0n ? '+' : ''}${formatMicroUsdc(micro)}`

/** A plain number for spreadsheets. */
export const toDecimal = (micro: bigint): string => formatMicro(micro).replaceAll(',', '').replace('−', '-')

/** How much more or less than before; undefined where there was nothing before. */
export function formatChange(beforeMicro: bigint, nowMicro: bigint): string | undefined {
  if (beforeMicro === 0n) return undefined
  const tenths = Number(((nowMicro - beforeMicro) * 10_000n) / beforeMicro) / 100
  return `${tenths > 0 ? '+' : ''}${tenths.toFixed(1).replace('-', '−')} %`
}
