import { divideUp } from './broker.ts'

export type PerpPosition = {
  direction: 'long' | 'short'
  entryPriceE8: bigint
  leverageE2: bigint
  maintenanceMarginBps: number
}

/**
 * Where an isolated position's margin and profit together fall to its maintenance margin:
 * long P·(1 − 1/L)/(1 − mmr), short P·(1 + 1/L)/(1 + mmr).
 * Rounded towards the entry price, so the stated price is never better than the true one.
 */
export function liquidationPriceE8(position: PerpPosition): bigint {
  const { entryPriceE8: price, leverageE2: leverage } = position
  const maintenance = BigInt(position.maintenanceMarginBps)
  if (position.direction === 'long') {
    return divideUp(price * (leverage - 100n) * 10_000n, leverage * (10_000n - maintenance))
  }
  return (price * (leverage + 100n) * 10_000n) / (leverage * (10_000n + maintenance))
}

/** How far the price must move before the position is liquidated, in basis points of the current price. */
export function distanceToLiquidationBps(priceE8: bigint, liquidationPriceE8: bigint): number {
  const distance = priceE8 > liquidationPriceE8 ? priceE8 - liquidationPriceE8 : liquidationPriceE8 - priceE8
  return Number((distance * 1_000_000n) / priceE8) / 100
}
