import { expect, test } from 'vitest'
import { renderText } from '../../test/render.tsx'
import { PreviewBadge } from './preview-badge.tsx'
import { type Quote, QuoteView } from './quote-view.tsx'

const quote = {
  underlying: 'AAPL',
  underlying_state: 'closed',
  chain: 'base',
  wrapper_price: 201.5,
  reference_price: 200,
  reference_source: 'pyth',
  basis_bps: 75,
  basis_pct: 0.0075,
  effective_float: { near_reference_usd: 12345, band_bps: 50, confidence: 'high' },
  primary_market: { creation: 'open', last_mint_size: null },
  borrow: { available: false, rate_apr: null },
  observations: [] as string[],
  as_of: '2026-11-15T00:00:00Z',
} as unknown as Quote
const render = (changes: object) => renderText(<QuoteView quote={{ ...quote, ...changes } as Quote} />)

test('the basis is shown with its sign, in basis points and percent', () => {
  expect(render({})).toContain('+75.00 bps (0.8 %)')
  expect(render({ basis_bps: -75, basis_pct: -0.0075 })).toContain('-75.00 bps (-0.8 %)')
})

test('a burn is shown as a negative last mint, and no mint at all is left out', () => {
  expect(render({})).not.toContain('tokens')
  expect(render({ primary_market: { creation: 'paused', last_mint_size: -40 } })).toContain('paused, last -40 tokens')
})

test('the borrow rate is shown only when borrowing is available', () => {
  expect(render({})).toContain('not available')
  expect(render({ borrow: { available: true, rate_apr: 0.05 } })).toContain('at 5.0 % a year')
})

test('observations are listed', () => {
  expect(render({ observations: ['The reference is 3 hours old.'] })).toContain('The reference is 3 hours old.')
})

test('illustrative figures are marked as a preview', () => {
  expect(renderText(<PreviewBadge preview />)).toContain('illustrative')
  expect(renderText(<PreviewBadge preview={false} />)).toContain('live')
})
