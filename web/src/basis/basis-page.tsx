import type { Answer } from '@countersign/sdk'
import { useQuery } from '@tanstack/react-query'
import { NONE, percent, signed } from '../parts/format.ts'
import { Loaded } from '../parts/loaded.tsx'
import { Card, Mark, Soft, Title, When } from '../parts/parts.tsx'
import { type Column, Table } from '../parts/table.tsx'
import { link, type Route } from '../route.ts'
import { service } from '../service.ts'
import { WrapperPage } from './wrapper-page.tsx'

type Board = Answer<'/api/basis/v1/board', 'get'>
type Row = Board['rows'][number]

export function BasisPage({ route }: { route: Route }) {
  const [symbol] = route.rest
  return symbol ? <WrapperPage symbol={symbol} chain={route.query.get('chain') ?? undefined} /> : <BoardPage />
}

function BoardPage() {
  const board = useQuery({ queryKey: ['board'], queryFn: () => service.get('/api/basis/v1/board') })
  return (
    <>
      <Title>Basis board</Title>
      <Soft>How far tokenised shares have run from their reference while supply has not caught up.</Soft>
      <Card
        title="Wrappers"
        note={
          board.data && (
            <>
              <PreviewMark preview={board.data.preview} /> <When at={board.data.as_of} />
            </>
          )
        }
      >
        <Loaded query={board}>
          {({ rows, scoring }) => (
            <>
              <Table
                label="Wrappers by window score"
                columns={columnsOf(scoring)}
                rows={rows}
                rowKey={({ symbol, chain }) => `${symbol} ${chain}`}
                empty="No wrapper is covered."
              />
              <details>
                <summary>How the score is made</summary>
                <p>{scoring.note}</p>
                <p>
                  <code className="wrap">{scoring.formula}</code>
                </p>
                <dl className="facts">
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
        </Loaded>
      </Card>
    </>
  )
}

export const PreviewMark = ({ preview }: { preview: boolean }) =>
  preview ? <Mark tone="warn">preview: illustrative figures</Mark> : <Mark tone="good">live</Mark>

const columnsOf = (scoring: Board['scoring']): Column<Row>[] => [
  { name: '#', show: ({ rank }) => rank, number: true },
  {
    name: 'Wrapper',
    show: ({ symbol, chain }) => <a href={link(['basis', symbol], { chain })}>{symbol}</a>,
  },
  { name: 'Of', show: ({ underlying }) => underlying },
  { name: 'Chain', show: ({ chain }) => chain },
  { name: 'Score', show: ({ window_score }) => window_score.toFixed(2), number: true },
  {
    name: 'Window',
    show: ({ window_status }) => (
      <span title={scoring.statuses[window_status]}>
        <Mark tone={window_status.startsWith('window') ? 'warn' : 'plain'}>{window_status.replaceAll('_', ' ')}</Mark>
      </span>
    ),
  },
  { name: 'Basis (bps)', show: ({ basis_bps }) => signed(basis_bps), number: true },
  { name: 'Float locked', show: ({ float_locked_pct }) => percent(float_locked_pct), number: true },
  {
    name: 'Momentum 24 h',
    show: ({ meme_momentum_24h_pct: momentum }) => (momentum === null ? NONE : percent(momentum)),
    number: true,
  },
  { name: 'Minting', show: ({ primary_market }) => primary_market.creation },
]
