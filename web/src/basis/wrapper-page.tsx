import type { Answer } from '@countersign/sdk'
import { useQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import { Chart } from '../parts/chart.tsx'
import { count, percent, signed } from '../parts/format.ts'
import { Loaded } from '../parts/loaded.tsx'
import { Card, Facts, Id, Outward, Title, When } from '../parts/parts.tsx'
import { SaveButton } from '../parts/save.tsx'
import { Table } from '../parts/table.tsx'
import { examineValue } from '../receipts/examine.ts'
import { FindingView } from '../receipts/finding.tsx'
import { link } from '../route.ts'
import { service, useKeySet } from '../service.ts'
import { PreviewMark } from './basis-page.tsx'

type Quote = Answer<'/api/basis/v1/quote/{symbol}', 'get'>
type Attestation = Answer<'/api/basis/v1/attestation/{symbol}', 'get'>
type History = Answer<'/api/basis/v1/history/{symbol}', 'get'>

export function WrapperPage({ symbol, chain }: { symbol: string; chain: string | undefined }) {
  const ask = { path: { symbol }, query: { chain } }
  const quote = useQuery({
    queryKey: ['quote', symbol, chain],
    queryFn: () => service.get('/api/basis/v1/quote/{symbol}', ask),
  })
  const history = useQuery({
    queryKey: ['history', symbol, chain],
    queryFn: () => service.get('/api/basis/v1/history/{symbol}', { ...ask, query: { chain, interval: '15m' } }),
    refetchInterval: 60_000,
  })
  const attestation = useQuery({
    queryKey: ['attestation', symbol, chain],
    queryFn: () => service.get('/api/basis/v1/attestation/{symbol}', ask),
    refetchInterval: false,
  })
  return (
    <>
      <Title
        aside={
          <a href={link(['basis'])} className="soft">
            The board
          </a>
        }
      >
        {symbol}
      </Title>
      <Card title="Reading" note={quote.data && <PreviewMark preview={quote.data.preview} />}>
        <Loaded query={quote}>{(reading) => <Reading quote={reading} />}</Loaded>
      </Card>
      <Card title="Basis over time" note="Basis points, every 15 minutes">
        <Loaded query={history}>{(past) => <HistoryView history={past} />}</Loaded>
      </Card>
      <Card title="Attestation" note="Signed by the service, checked in this browser">
        <Loaded query={attestation}>{(signed) => <AttestationView attestation={signed} />}</Loaded>
      </Card>
    </>
  )
}

function Reading({ quote }: { quote: Quote }) {
  const { effective_float: float, primary_market: market, borrow } = quote
  return (
    <>
      <Facts
        facts={[
          ['Underlying', `${quote.underlying}, market ${quote.underlying_state}`],
          ['Chain', quote.chain],
          ['Wrapper price', quote.wrapper_price],
          ['Reference price', `${quote.reference_price} (${quote.reference_source})`],
          ['Basis', `${signed(quote.basis_bps)} bps (${percent(quote.basis_pct)})`],
          [
            'Float near reference',
            `${count(float.near_reference_usd)} USD within ${float.band_bps} bps, confidence ${float.confidence}`,
          ],
          [
            'Minting',
            `${market.creation}${market.last_mint_size === null ? '' : `, last ${signed(market.last_mint_size, 0)} tokens`}`,
          ],
          ['Borrow', borrow.available ? `at ${percent(borrow.rate_apr)} a year` : 'not available'],
          ['As of', <When key="as_of" at={quote.as_of} />],
        ]}
      />
      {quote.observations.length > 0 && (
        <ul className="limits">
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
        format: (value: number) => signed(value),
      },
    ],
    [points],
  )
  if (points.length === 0) return <p className="soft empty">No readings yet.</p>
  return (
    <>
      <Chart label={`Basis of ${history.symbol} in basis points`} times={times} lines={lines} />
      <details>
        <summary>As a table</summary>
        <Table
          label="Past readings"
          columns={[
            { name: 'Time', show: ({ as_of }) => <When at={as_of} /> },
            { name: 'Basis (bps)', show: ({ basis_bps }) => signed(basis_bps), number: true },
            { name: 'Wrapper', show: ({ wrapper_price }) => wrapper_price, number: true },
            { name: 'Reference', show: ({ reference_price }) => reference_price, number: true },
            { name: 'Window', show: ({ window_status }) => window_status.replaceAll('_', ' ') },
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
  const keys = useKeySet()
  const { backing, symbol } = attestation
  return (
    <>
      <Facts
        facts={[
          ['Issuer', backing.issuer],
          ['Backing ratio', `${backing.ratio} (${backing.evidence.ratio_basis.replaceAll('_', ' ')})`],
          ['Report', backing.report_url && <Outward key="report" href={backing.report_url} />],
          ['Asset', <Id key="asset" value={backing.evidence.asset} full />],
          ['Evidence', <Id key="hash" value={backing.evidence.hash} full />],
          ['Valid until', <When key="until" at={backing.evidence.valid_until} />],
        ]}
      />
      <Loaded query={keys}>
        {(jwks) => (
          <>
            <FindingView finding={examineValue(attestation, jwks, new Date())} />
            <div className="row">
              <SaveButton name={`${symbol}-attestation.json`} value={attestation}>
                Save the attestation
              </SaveButton>
              <SaveButton name="jwks.json" value={jwks}>
                Save the keys
              </SaveButton>
              <a href={link(['verify'], { attestation: symbol, chain: attestation.chain })}>Open it under Verify</a>
            </div>
          </>
        )}
      </Loaded>
      <p className="soft">{attestation.disclaimer}</p>
    </>
  )
}
