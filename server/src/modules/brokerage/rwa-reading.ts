import type { CoveredWrapper } from '../basis/price-source.ts'
import type { Reading } from '../basis/quote.ts'
import { parseDecimal, type RwaReading } from './broker.ts'

/** The part of a basis reading that a trade in the tokenised equity needs. Undefined when the reading has no price. */
export function toRwaReading(wrapper: CoveredWrapper, { quote, backing }: Reading): RwaReading | undefined {
  const wrapperPriceE8 = parseDecimal(quote.wrapper_price.toFixed(8), 8)
  if (!wrapperPriceE8 || wrapperPriceE8 <= 0n) return undefined
  return {
    symbol: quote.symbol,
    underlying: quote.underlying,
    chain: quote.chain,
    tokenContract: wrapper.address,
    multiplier: backing.ratio,
    wrapperPriceE8,
    basisBps: quote.basis_bps,
    nearReferenceUsd: quote.effective_float.near_reference_usd,
    creation: quote.primary_market.creation,
    halted: quote.underlying_state === 'halted',
    asOf: new Date(quote.as_of),
    source: `basis:${quote.source}`,
    preview: quote.preview,
  }
}
