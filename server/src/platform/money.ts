/** USDC has six decimals. Inside the program money is a bigint of micro-USDC; numbers appear at the JSON edge only. */
export const MICRO_PER_USDC = 1_000_000n

const MAX_USDC = 1_000_000_000

/** A JSON number of USDC as micro-USDC, or undefined when it is negative, not finite, absurd or finer than a micro. */
export function microFromUsdc(usdc: number): bigint | undefined {
  if (!Number.isFinite(usdc) || usdc < 0 || usdc > MAX_USDC) return undefined
  const text = usdc.toFixed(6)
  if (Number(text) !== usdc) return undefined
  return BigInt(text.replace('.', ''))
}

/** ` Send 0.3, or …`: what a sum of floats was meant to be, or nothing when no rounding helps. */
export function roundingHint(usdc: number): string {
  const micro = microFromUsdc(Number(usdc.toFixed(6)))
  return micro === undefined || micro === 0n
    ? ''
    : ` Send ${usdcFromMicro(micro)}, or "${micro}" as the amount in atomic units.`
}

/** Exact for every amount below nine billion USDC: the nearest double of a six-decimal text prints as that text again. */
export function usdcFromMicro(micro: bigint): number {
  const negative = micro < 0n
  const digits = (negative ? -micro : micro).toString().padStart(7, '0')
  const usdc = Number(`${digits.slice(0, -6)}.${digits.slice(-6)}`)
  return negative ? -usdc : usdc
}
