import type { PriceSource } from '../../modules/basis/price-source.ts'
import { createConcentratedPools } from './concentrated-pools.ts'
import type { EvmEndpoint } from './evm-rpc.ts'

/** Aerodrome Slipstream: `slot0` has no protocol fee, `ticks` adds staked liquidity and reward growth. */
export const createAerodromeSlipstream = (options: { endpoint: EvmEndpoint; everySeconds?: number }): PriceSource =>
  createConcentratedPools({ id: 'slipstream', kind: 'slipstream', slot0Words: 6, tickWords: 10 }, options)
