import type { PriceSource } from '../../modules/basis/price-source.ts'
import { createConcentratedPools } from './concentrated-pools.ts'
import type { EvmEndpoint } from './evm-rpc.ts'

/** Uniswap v3: `slot0` has seven fields, `ticks` eight. */
export const createUniswapV3 = (options: { endpoint: EvmEndpoint; everySeconds?: number }): PriceSource =>
  createConcentratedPools({ id: 'uniswap-v3', kind: 'uniswap-v3', slot0Words: 7, tickWords: 8 }, options)
