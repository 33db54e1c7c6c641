import { useQuery } from '@tanstack/react-query'
import { ACCOUNT_KEY, api } from '../api.ts'
import type { TradeRun } from '../approvals/inbox-item.ts'
import { Badge, DescriptionList, MutedText, Timestamp } from '../components/ui.tsx'
import { formatDuration, formatPercent, formatUsdc } from '../format.ts'
import { useSecond } from '../now.ts'
import { describeDrift, formatBps, formatUsd, type RunQuote, readTradeFacts } from './trade-facts.ts'

const OPEN_STATES = ['pending_approval', 'approved']

/** The instrument and its risk on the terms of the run, and the market now beside the market when it was asked for. */
export function InstrumentCard({ run }: { run: TradeRun }) {
  const isOpen = OPEN_STATES.includes(run.status) && run.instrument_type !== 'spend'
  const quote = useQuery({
    queryKey: [ACCOUNT_KEY, 'trades', run.run_id, 'quote'],
    queryFn: () => api.get('/api/rh/runs/{id}/quote', { path: { id: run.run_id } }),
    enabled: isOpen,
    refetchInterval: 5_000,
  })
  const facts = readTradeFacts(run)
  const now = quote.data
  return (
    <>
      <DescriptionList
        items={[
          ['Instrument', `${run.symbol} (${run.instrument_type})`],
          ['Order', describeOrder(run)],
          ['Notional', formatUsdc(run.notional_usdc)],
          ['Leverage', run.leverage !== null && `${run.leverage}×`],
          ['Margin', facts.margin !== undefined && formatUsdc(facts.margin)],
          [
            'Liquidation price',
            facts.liquidation_price !== undefined && (
              <>
                {formatUsd(facts.liquidation_price)}, {formatPercent(facts.distance_to_liq_pct ?? null)} away when asked
                {now?.distance_to_liq_pct != null && <>, {formatPercent(now.distance_to_liq_pct)} now</>}
              </>
            ),
          ],
          [
            'Basis',
            facts.basis_bps !== undefined && (
              <>
                {formatBps(facts.basis_bps)} when asked{now?.basis_bps != null && <>, {formatBps(now.basis_bps)} now</>}
              </>
            ),
          ],
          ['Session', describeSession(now?.session ?? facts.session)],
          ['Opens', now?.next_open && <Timestamp at={now.next_open} />],
          [
            'Price when asked',
            facts.quote && (
              <>
                {formatUsd(facts.quote.price)} from {facts.quote.source}, <Timestamp at={facts.quote.observed_at} />
              </>
            ),
          ],
          ['Price now', now && <PriceNow quote={now} />],
          ['Drift since asked', now && <Drift quote={now} />],
          ['Fees, estimate', facts.est_fees !== undefined && formatUsdc(facts.est_fees)],
          ['Slippage, estimate', facts.est_slippage_bps !== undefined && formatBps(facts.est_slippage_bps)],
          [
            'Buying power',
            facts.buying_power_before !== undefined &&
              facts.buying_power_after !== undefined &&
              `${formatUsdc(facts.buying_power_before)}, then ${formatUsdc(facts.buying_power_after)}`,
          ],
          [
            'Position',
            run.instrument_type !== 'spend' &&
              facts.position_before !== undefined &&
              `${facts.position_before}, then ${facts.position_after}`,
          ],
          ['Yield', facts.yield_rate !== undefined && formatPercent(facts.yield_rate)],
          ['Locked until', facts.unlock_at && <Timestamp at={facts.unlock_at} />],
          ['Merchant', facts.merchant],
          ['Category', facts.category],
          ['Rail', facts.rail],
          ['Left today', facts.remaining_budget != null && formatUsdc(facts.remaining_budget)],
        ]}
      />
      {quote.error && <MutedText>No price at the moment: {quote.error.message}</MutedText>}
    </>
  )
}

const describeOrder = (run: TradeRun) =>
  `${run.side} ${run.quantity}, ${run.price_limit === null ? 'at the market' : `limit ${formatUsd(run.price_limit)}`}`

const describeSession = (session: string | undefined) => (session === 'always' ? 'open, never closes' : session)

function PriceNow({ quote }: { quote: RunQuote }) {
  const ageSeconds = Math.max(0, (useSecond() - Date.parse(quote.observed_at)) / 1_000)
  return (
    <>
      {formatUsd(quote.price)}, <span className="muted">{formatDuration(ageSeconds)} old</span>
      {quote.halted && (
        <>
          {' '}
          <Badge tone="error">halted</Badge>
        </>
      )}
    </>
  )
}

function Drift({ quote }: { quote: RunQuote }) {
  const { text, tone } = describeDrift(quote)
  return (
    <>
      <Badge tone={tone}>{formatBps(quote.drift_bps)}</Badge> {text}
    </>
  )
}
