import type { PriceSource } from '../../modules/basis/price-source.ts'
import { createConcentratedPools } from './concentrated-pools.ts'
import type { EvmEndpoint } from './evm-rpc.ts'

/** Aerodrome Slipstream: `slot0` lacks the protocol fee, `ticks` adds the staked liquidity and the growth of rewards. */
export const createAerodromeSlipstream = (options: { endpoint: EvmEndpoint; everySeconds?: number }): PriceSource =>
  createConcentratedPools({ id: 'slipstream', kind: 'slipstream', slot0Words: 6, tickWords: 10 }, options)
