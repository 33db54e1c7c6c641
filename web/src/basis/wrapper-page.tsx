import type { ApiResponse } from '@countersign/sdk'
import { useQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import { api, useJwks } from '../api.ts'
import { Chart } from '../components/chart.tsx'
import { QueryResult } from '../components/query-result.tsx'
import { SaveButton } from '../components/save-button.tsx'
import { Table } from '../components/table.tsx'
import { Card, DescriptionList, ExternalLink, Id, PageTitle, Timestamp } from '../components/ui.tsx'
import { formatCount, formatPercent, formatSigned } from '../format.ts'
import { VerificationResultView } from '../receipts/verification-result.tsx'
import { verifyEvidence } from '../receipts/verify-evidence.ts'
import { routeHref } from '../route.ts'
import { PreviewBadge } from './preview-badge.tsx'

type Quote = ApiResponse<'/api/basis/v1/quote/{symbol}', 'get'>
type Attestation = ApiResponse<'/api/basis/v1/attestation/{symbol}', 'get'>
type History = ApiResponse<'/api/basis/v1/history/{symbol}', 'get'>

export function WrapperPage({ symbol, chain }: { symbol: string; chain: string | undefined }) {
  const request = { path: { symbol }, query: { chain } }
  const quote = useQuery({
    queryKey: ['quote', symbol, chain],
    queryFn: () => api.get('/api/basis/v1/quote/{symbol}', request),
  })
  const history = useQuery({
    queryKey: ['history', symbol, chain],
    queryFn: () => api.get('/api/basis/v1/history/{symbol}', { ...request, query: { chain, interval: '15m' } }),
    refetchInterval: 60_000,
  })
  const attestation = useQuery({
    queryKey: ['attestation', symbol, chain],
    queryFn: () => api.get('/api/basis/v1/attestation/{symbol}', request),
    refetchInterval: false,
  })
  return (
    <>
      <PageTitle
        aside={
          <a href={routeHref(['basis'])} className="muted">
            Basis board
          </a>
        }
      >
        {symbol}
      </PageTitle>
      <Card title="Quote" note={quote.data && <PreviewBadge preview={quote.data.preview} />}>
        <QueryResult query={quote}>{(data) => <QuoteView quote={data} />}</QueryResult>
      </Card>
      <Card title="Basis over time" note="Basis points, every 15 minutes">
        <QueryResult query={history}>{(data) => <HistoryView history={data} />}</QueryResult>
      </Card>
      <Card title="Attestation" note="Signed by the service, verified in this browser">
        <QueryResult query={attestation}>{(signed) => <AttestationView attestation={signed} />}</QueryResult>
      </Card>
    </>
  )
}

function QuoteView({ quote }: { quote: Quote }) {
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

function HistoryView({ history }: { history: History }) {
  const { points } = history
  const times = useMemo(() => points.map(({ as_of }) => as_of), [points])
  const lines = useMemo(
    () => [
      {
        label: 'Basis',
        values: points.map(({ basis_bps }) => basis_bps),
        colour: 'accent' as const,
        unit: 'bps',
        format: (value: number) => formatSigned(value),
      },
    ],
    [points],
  )
  if (points.length === 0) return <p className="muted empty">No readings yet.</p>
  return (
    <>
      <Chart label={`Basis of ${history.symbol} in basis points`} times={times} lines={lines} />
      <details>
        <summary>As a table</summary>
        <Table
          label="Past readings"
          columns={[
            { name: 'Time', render: ({ as_of }) => <Timestamp at={as_of} /> },
            { name: 'Basis (bps)', render: ({ basis_bps }) => formatSigned(basis_bps), numeric: true },
            { name: 'Wrapper', render: ({ wrapper_price }) => wrapper_price, numeric: true },
            { name: 'Reference', render: ({ reference_price }) => reference_price, numeric: true },
            { name: 'Window', render: ({ window_status }) => window_status.replaceAll('_', ' ') },
          ]}
          rows={[...points].reverse().slice(0, 96)}
          rowKey={({ as_of }) => as_of}
          empty="No readings yet."
        />
      </details>
    </>
  )
}

function AttestationView({ attestation }: { attestation: Attestation }) {
  const jwksQuery = useJwks()
  const { backing, symbol } = attestation
  return (
    <>
      <DescriptionList
        items={[
          ['Issuer', backing.issuer],
          ['Backing ratio', `${backing.ratio} (${backing.evidence.ratio_basis.replaceAll('_', ' ')})`],
          ['Report', backing.report_url && <ExternalLink key="report" href={backing.report_url} />],
          ['Asset', <Id key="asset" value={backing.evidence.asset} full />],
          ['Evidence', <Id key="hash" value={backing.evidence.hash} full />],
          ['Valid until', <Timestamp key="until" at={backing.evidence.valid_until} />],
        ]}
      />
      <QueryResult query={jwksQuery}>
        {(jwks) => (
          <>
            <VerificationResultView result={verifyEvidence(attestation, jwks, new Date())} />
            <div className="row">
              <SaveButton name={`${symbol}-attestation.json`} value={attestation}>
                Save attestation
              </SaveButton>
              <SaveButton name="jwks.json" value={jwks}>
                Save keys
              </SaveButton>
              <a href={routeHref(['verify'], { attestation: symbol, chain: attestation.chain })}>Open in Verify</a>
            </div>
          </>
        )}
      </QueryResult>
      <p className="muted">{attestation.disclaimer}</p>
    </>
  )
}
