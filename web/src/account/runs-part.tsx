import type { Answer, Ask } from '@countersign/sdk'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { Choice, Filters } from '../parts/fields.tsx'
import { NONE, usdc } from '../parts/format.ts'
import { Loaded } from '../parts/loaded.tsx'
import { Pager, usePages } from '../parts/pages.tsx'
import { Card, Id, Mark, type Tone, When } from '../parts/parts.tsx'
import { type Column, Table } from '../parts/table.tsx'
import { go, link } from '../route.ts'
import { ACCOUNT, service } from '../service.ts'
import type { PartProps } from './account-page.tsx'

type Run = Answer<'/api/runs', 'get'>['runs'][number]
type Query = NonNullable<Ask<'/api/runs', 'get'>['query']>

const outcomes = [
  'completed',
  'blocked',
  'pending',
  'approved',
  'escalated',
  'failed',
] as const satisfies readonly Query['outcome'][]
const tones: Record<string, Tone> = { completed: 'good', blocked: 'bad', failed: 'bad', escalated: 'warn' }
const PAGE = 25

export function RunsPart({ route }: PartProps) {
  const outcome = (route.query.get('outcome') ?? undefined) as Query['outcome']
  const pages = usePages(outcome ?? '')
  const runs = useQuery({
    queryKey: [ACCOUNT, 'runs', outcome, pages.cursor],
    queryFn: () => service.get('/api/runs', { query: { outcome, limit: PAGE, after: pages.cursor } }),
    placeholderData: keepPreviousData,
  })
  return (
    <Card title="Runs" note="Newest first">
      <Filters key={outcome} apply={(values) => go(link(['account', 'runs'], values))}>
        <Choice label="Outcome" name="outcome" value={outcome} options={outcomes} all="any outcome" />
      </Filters>
      <Loaded query={runs}>
        {({ runs: list, next_after }) => (
          <>
            <Table
              label="Runs"
              columns={columns}
              rows={list}
              rowKey={({ run_id }) => run_id}
              empty={outcome ? `No run is ${outcome}.` : 'No runs yet: POST /api/run with your key makes one.'}
            />
            <Pager pages={pages} next={next_after} />
          </>
        )}
      </Loaded>
    </Card>
  )
}

const columns: Column<Run>[] = [
  { name: 'Run', show: ({ run_id }) => <Id value={run_id} /> },
  { name: 'Outcome', show: ({ outcome }) => <Mark tone={tones[outcome] ?? 'plain'}>{outcome}</Mark> },
  { name: 'Action', show: ({ action }) => action },
  { name: 'Lane', show: ({ agent_id }) => agent_id },
  { name: 'Price', show: ({ price_usdc }) => usdc(price_usdc), number: true },
  { name: 'When', show: ({ created_at }) => <When at={created_at} /> },
  {
    name: 'Receipt',
    show: ({ receipt_url }) => {
      const id = receipt_url?.split('/').at(-1)
      return id ? (
        <a href={link(['receipts', id])}>
          <Id value={id} />
        </a>
      ) : (
        NONE
      )
    },
  },
]
