import type { ApiResponse } from '@countersign/sdk'
import { useQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import { api, queryClient, useJwks } from '../api.ts'
import { Chart } from '../components/chart.tsx'
import { QueryResult } from '../components/query-result.tsx'
import { SaveButton } from '../components/save-button.tsx'
import { Table } from '../components/table.tsx'
import { Card, DescriptionList, ExternalLink, Id, PageTitle, Timestamp } from '../components/ui.tsx'
import { formatSigned } from '../format.ts'
import { VerificationResultView } from '../receipts/verification-result.tsx'
import { verifyEvidence } from '../receipts/verify-evidence.ts'
import { routeHref } from '../route.ts'
import { PreviewBadge } from './preview-badge.tsx'
import { useQuoteStream } from './quote-stream.ts'
import { QuoteView } from './quote-view.tsx'
import { StreamBadge } from './stream-badge.tsx'

type Attestation = ApiResponse<'/api/basis/v1/attestation/{symbol}', 'get'>
type History = ApiResponse<'/api/basis/v1/history/{symbol}', 'get'>

export function WrapperPage({ symbol, chain }: { symbol: string; chain: string | undefined }) {
  const request = { path: { symbol }, query: { chain } }
  const quoteKey = ['quote', symbol, chain]
  const stream = useQuoteStream(symbol, (reading) => {
    if (chain !== undefined && reading.chain !== chain) return
    queryClient.setQueryData(quoteKey, reading)
  })
  const quote = useQuery({
    queryKey: quoteKey,
    queryFn: () => api.get('/api/basis/v1/quote/{symbol}', request),
    refetchInterval: stream === 'live' ? false : 15_000,
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
      <Card
        title="Quote"
        note={
          quote.data && (
            <>
              <StreamBadge state={stream} /> <PreviewBadge preview={quote.data.preview} />
            </>
          )
        }
      >
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
          empty="No readings yet. The next measurement appears here by itself."
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
