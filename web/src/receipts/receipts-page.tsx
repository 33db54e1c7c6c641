import type { Answer, Ask } from '@countersign/sdk'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { Choice, Field, Filters } from '../parts/fields.tsx'
import { NONE } from '../parts/format.ts'
import { Loaded } from '../parts/loaded.tsx'
import { Pager, usePages } from '../parts/pages.tsx'
import { Card, Id, Soft, Title, When } from '../parts/parts.tsx'
import { type Column, Table } from '../parts/table.tsx'
import { go, link, type Route } from '../route.ts'
import { service, useLanes } from '../service.ts'
import { ReceiptPage } from './receipt-page.tsx'

type Receipt = Answer<'/api/receipts', 'get'>['receipts'][number]
type Query = NonNullable<Ask<'/api/receipts', 'get'>['query']>

const kinds = [
  'run',
  'loop',
  'topup',
  'preauth',
  'rh_run',
  'refund',
  'correction',
  'failure',
  'audit_head',
] as const satisfies readonly Query['kind'][]
const PAGE = 25

export function ReceiptsPage({ route }: { route: Route }) {
  const [id] = route.rest
  return id ? <ReceiptPage id={id} /> : <ReceiptList query={route.query} />
}

function ReceiptList({ query }: { query: URLSearchParams }) {
  const filter = query.toString()
  const pages = usePages(filter)
  const lanes = useLanes()
  const list = useQuery({
    queryKey: ['receipts', filter, pages.cursor],
    queryFn: () => service.get('/api/receipts', { query: { ...asked(query), limit: PAGE, cursor: pages.cursor } }),
    placeholderData: keepPreviousData,
  })
  const value = (name: string) => query.get(name) ?? undefined

  return (
    <>
      <Title>Receipts</Title>
      <Soft>
        Receipts are public and hold hashes, never the task or the output. Open one to have this browser check it, or{' '}
        <a href={link(['verify'])}>verify one you were given</a>.
      </Soft>
      <Card title="Issued receipts" note="Newest first">
        <Filters key={filter} typed apply={(values) => go(link(['receipts'], values))}>
          <Choice label="Kind" name="kind" value={value('kind')} options={kinds} all="any kind" />
          <Choice
            label="Lane"
            name="agent_id"
            value={value('agent_id')}
            options={laneNames(lanes.data?.agents ?? [], value('agent_id'))}
            all="any lane"
          />
          <Field label="Run">
            {(id) => <input id={id} name="run_id" defaultValue={value('run_id')} placeholder="run_…" maxLength={200} />}
          </Field>
          <Field label="Payer">
            {(id) => <input id={id} name="payer" defaultValue={value('payer')} placeholder="0x…" maxLength={200} />}
          </Field>
          <Field label="From (UTC)">
            {(id) => <input id={id} name="since" type="date" defaultValue={value('since')} />}
          </Field>
          <Field label="To (UTC)">
            {(id) => <input id={id} name="until" type="date" defaultValue={value('until')} />}
          </Field>
        </Filters>
        <Loaded query={list}>
          {({ receipts, next_cursor }) => (
            <>
              <Table
                label="Receipts"
                columns={columns}
                rows={receipts}
                rowKey={({ receipt_id }) => receipt_id}
                empty={filter ? 'No receipt fits this filter.' : 'No receipts yet: the first paid run issues one.'}
              />
              <Pager pages={pages} next={next_cursor} />
            </>
          )}
        </Loaded>
      </Card>
    </>
  )
}

const columns: Column<Receipt>[] = [
  {
    name: 'Receipt',
    show: ({ receipt_id }) => (
      <a href={link(['receipts', receipt_id])}>
        <Id value={receipt_id} />
      </a>
    ),
  },
  { name: 'Kind', show: ({ kind }) => kind },
  { name: 'Lane', show: ({ agent_id }) => agent_id ?? NONE },
  { name: 'Run', show: ({ run_id }) => <Id value={run_id} /> },
  { name: 'Issued', show: ({ issued_at }) => <When at={issued_at} /> },
  { name: 'Log entry', show: ({ log }) => (log ? `#${log.index}` : 'waiting'), number: true },
]

/** A lane in the address that is no longer listed can still be filtered by. */
const laneNames = (lanes: readonly { agent_id: string }[], chosen: string | undefined): string[] => [
  ...new Set([...lanes.map(({ agent_id }) => agent_id), 'default', ...(chosen ? [chosen] : [])]),
]

const DAY_MS = 86_400_000

/** Days are whole: `until` is the end of the day that was chosen. */
function asked(query: URLSearchParams): Query {
  const text = (name: string) => query.get(name) || undefined
  const day = (name: string, plusMs: number) => {
    const at = Date.parse(`${query.get(name)}T00:00:00Z`)
    return Number.isNaN(at) ? undefined : new Date(at + plusMs).toISOString()
  }
  return {
    kind: text('kind') as Query['kind'],
    agent_id: text('agent_id'),
    run_id: text('run_id'),
    payer: text('payer'),
    since: day('since', 0),
    until: day('until', DAY_MS),
  }
}
