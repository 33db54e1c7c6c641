import type { PriceSource } from '../../modules/basis/price-source.ts'
import { createAerodromeSlipstream } from './aerodrome-slipstream.ts'
import { createAlpaca } from './alpaca.ts'
import { createChainlink } from './chainlink.ts'
import { createCoinbaseStocks } from './coinbase-stocks.ts'
import { createEvmSupply } from './evm-supply.ts'
import { createJupiter } from './jupiter.ts'
import { createPythHermes } from './pyth-hermes.ts'
import { createSolana } from './solana.ts'
import { createUniswapV3 } from './uniswap-v3.ts'
import { createXStocks } from './xstocks.ts'

/** The configured URLs and keys. A source without its URL or keys is off; with no source, every reading is a preview. */
export type SourceSettings = {
  pythUrl?: string
  pythApiKey?: string
  /** A Base node: feeds, pools, supply and mints. */
  baseRpcUrl?: string
  xstocksUrl?: string
  coinbaseStocksUrl?: string
  solanaRpcUrl?: string
  jupiterUrl?: string
  jupiterApiKey?: string
  alpacaDataUrl?: string
  alpacaTradingUrl?: string
  alpacaKeyId?: string
  alpacaSecretKey?: string
}

export function createConfiguredSources(settings: SourceSettings): PriceSource[] {
  const sources: PriceSource[] = []
  if (settings.pythUrl) sources.push(createPythHermes({ baseUrl: settings.pythUrl, apiKey: settings.pythApiKey }))
  if (settings.baseRpcUrl) {
    const endpoint = { url: settings.baseRpcUrl, chain: 'base' }
    sources.push(
      createChainlink({ endpoint }),
      createUniswapV3({ endpoint }),
      createAerodromeSlipstream({ endpoint }),
      createEvmSupply({ endpoint }),
    )
  }
  if (settings.xstocksUrl) sources.push(createXStocks({ baseUrl: settings.xstocksUrl }))
  if (settings.coinbaseStocksUrl) sources.push(createCoinbaseStocks({ url: settings.coinbaseStocksUrl }))
  if (settings.solanaRpcUrl) sources.push(createSolana({ rpcUrl: settings.solanaRpcUrl }))
  if (settings.jupiterUrl) sources.push(createJupiter({ baseUrl: settings.jupiterUrl, apiKey: settings.jupiterApiKey }))
  if (settings.alpacaKeyId && settings.alpacaSecretKey)
    sources.push(
      createAlpaca({
        dataUrl: settings.alpacaDataUrl ?? 'https://data.alpaca.markets',
        tradingUrl: settings.alpacaTradingUrl ?? 'https://api.alpaca.markets',
        keyId: settings.alpacaKeyId,
        secretKey: settings.alpacaSecretKey,
      }),
    )
  return sources
}
