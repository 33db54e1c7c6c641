import type { ApiResponse } from '@countersign/sdk'
import { DescriptionList, Timestamp } from '../components/ui.tsx'
import { formatCount, formatPercent, formatSigned } from '../format.ts'

export type Quote = ApiResponse<'/api/basis/v1/quote/{symbol}', 'get'>

export function QuoteView({ quote }: { quote: Quote }) {
  const { effective_float: effectiveFloat, primary_market: primaryMarket, borrow } = quote
  return (
    <>
      <DescriptionList
        items={[
          ['Underlying', `${quote.underlying}, market ${quote.underlying_state}`],
          ['Chain', quote.chain],
          ['Wrapper price', quote.wrapper_price],
          ['Reference price', `${quote.reference_price} (${quote.reference_source})`],
          ['Basis', `${formatSigned(quote.basis_bps)} bps (${formatPercent(quote.basis_pct)})`],
          [
            'Float near reference',
            `${formatCount(effectiveFloat.near_reference_usd)} USD within ${effectiveFloat.band_bps} bps, confidence ${effectiveFloat.confidence}`,
          ],
          [
            'Minting',
            `${primaryMarket.creation}${primaryMarket.last_mint_size === null ? '' : `, last ${formatSigned(primaryMarket.last_mint_size, 0)} tokens`}`,
          ],
          ['Borrow', borrow.available ? `at ${formatPercent(borrow.rate_apr)} a year` : 'not available'],
          ['As of', <Timestamp key="as_of" at={quote.as_of} />],
        ]}
      />
      {quote.observations.length > 0 && (
        <ul className="caveats">
          {quote.observations.map((observation) => (
            <li key={observation}>{observation}</li>
          ))}
        </ul>
      )}
    </>
  )
}
