import type { ApiResponse } from '@countersign/sdk'
import { useQuery } from '@tanstack/react-query'
import { useRef } from 'react'
import { api, queryClient } from '../api.ts'
import { QueryResult } from '../components/query-result.tsx'
import { type Column, Table } from '../components/table.tsx'
import { Badge, Card, MutedText, PageTitle, Timestamp } from '../components/ui.tsx'
import { formatPercent, formatSigned, NO_VALUE } from '../format.ts'
import { type Route, routeHref } from '../route.ts'
import { PreviewBadge } from './preview-badge.tsx'
import { useQuoteStream } from './quote-stream.ts'
import { StreamBadge } from './stream-badge.tsx'
import { WrapperPage } from './wrapper-page.tsx'

type Board = ApiResponse<'/api/basis/v1/board', 'get'>
type Row = Board['rows'][number]

const BOARD_READ_MS = 500

export function BasisPage({ route }: { route: Route }) {
  const [symbol] = route.segments
  return symbol ? <WrapperPage symbol={symbol} chain={route.query.get('chain') ?? undefined} /> : <BoardPage />
}

function BoardPage() {
  const readAt = useRef(0)
  const stream = useQuoteStream(undefined, () => {
    // Readings of all wrappers come together; the ranks are of all of them, so the board is read once for each round.
    if (Date.now() - readAt.current < BOARD_READ_MS) return
    readAt.current = Date.now()
    setTimeout(() => void queryClient.invalidateQueries({ queryKey: ['board'] }), BOARD_READ_MS)
  })
  const board = useQuery({
    queryKey: ['board'],
    queryFn: () => api.get('/api/basis/v1/board'),
    refetchInterval: stream === 'live' ? false : 15_000,
  })
  return (
    <>
      <PageTitle>Basis board</PageTitle>
      <MutedText>How far tokenised shares trade from their reference price while minting has not caught up.</MutedText>
      <Card
        title="Wrappers"
        note={
          board.data && (
            <>
              <StreamBadge state={stream} /> <PreviewBadge preview={board.data.preview} />{' '}
              <Timestamp at={board.data.as_of} />
            </>
          )
        }
      >
        <QueryResult query={board}>
          {({ rows, scoring }) => (
            <>
              <Table
                label="Wrappers by window score"
                columns={createColumns(scoring)}
                rows={rows}
                rowKey={({ symbol, chain }) => `${symbol} ${chain}`}
                empty="No wrapper is covered."
              />
              <details>
                <summary>How the score is computed</summary>
                <p>{scoring.note}</p>
                <p>
                  <code className="wrap">{scoring.formula}</code>
                </p>
                <dl className="description-list">
                  {Object.entries(scoring.statuses).map(([status, meaning]) => (
                    <div key={status}>
                      <dt>{status.replaceAll('_', ' ')}</dt>
                      <dd>{meaning}</dd>
                    </div>
                  ))}
                </dl>
              </details>
            </>
          )}
        </QueryResult>
      </Card>
    </>
  )
}

const createColumns = (scoring: Board['scoring']): Column<Row>[] => [
  { name: '#', render: ({ rank }) => rank, numeric: true },
  {
    name: 'Wrapper',
    render: ({ symbol, chain }) => <a href={routeHref(['basis', symbol], { chain })}>{symbol}</a>,
  },
  { name: 'Underlying', render: ({ underlying }) => underlying },
  { name: 'Chain', render: ({ chain }) => chain },
  { name: 'Score', render: ({ window_score }) => window_score.toFixed(2), numeric: true },
  {
    name: 'Window',
    render: ({ window_status }) => (
      <span title={scoring.statuses[window_status]}>
        <Badge tone={window_status.startsWith('window') ? 'warning' : 'neutral'}>
          {window_status.replaceAll('_', ' ')}
        </Badge>
      </span>
    ),
  },
  { name: 'Basis (bps)', render: ({ basis_bps }) => formatSigned(basis_bps), numeric: true },
  { name: 'Float locked', render: ({ float_locked_pct }) => formatPercent(float_locked_pct), numeric: true },
  {
    name: 'Momentum 24 h',
    render: ({ meme_momentum_24h_pct: momentum }) => (momentum === null ? NO_VALUE : formatPercent(momentum)),
    numeric: true,
  },
  { name: 'Minting', render: ({ primary_market }) => primary_market.creation },
]
