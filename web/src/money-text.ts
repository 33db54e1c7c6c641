const AMOUNT = /^\d{1,10}(\.\d{1,6})?$/
const MAX_USDC = 1_000_000_000

export const AMOUNT_HELP = 'An amount in USDC, such as 0.05, with at most six decimals'

/** The amount that a text says, when it is one that the API takes; the text itself otherwise, so that nothing typed is lost. */
export function readAmount(text: string): number | string {
  const trimmed = text.trim()
  if (!AMOUNT.test(trimmed)) return trimmed
  const amount = Number(trimmed)
  return amount <= MAX_USDC && toMicro(trimmed) === toMicro(String(amount)) ? amount : trimmed
}

/** Whether a value is an amount with at most six decimals. */
export const isAmount = (value: unknown): value is number =>
  typeof value === 'number' && value >= 0 && value <= MAX_USDC && Number(value.toFixed(6)) === value

/** Whole micro-USDC of a plain decimal; undefined when it is none. */
export function toMicro(text: string): bigint | undefined {
  if (!AMOUNT.test(text)) return undefined
  const [whole = '0', fraction = ''] = text.split('.')
  return BigInt(whole) * 1_000_000n + BigInt(fraction.padEnd(6, '0'))
}

/** A value for a text input. No amount that the API takes is so small that it is written with an exponent. */
export function toInputText(value: unknown): string {
  if (value === undefined || value === null) return ''
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}
