import type { ApiRequest, ApiResponse } from '@countersign/sdk'
import { useState } from 'react'
import type { SectionProps } from '../account/section-props.ts'
import { ACCOUNT_KEY, api, useLanes } from '../api.ts'
import { CsvButton } from '../components/csv-button.tsx'
import { Field, FilterForm, Select } from '../components/form-fields.tsx'
import { QueryResult } from '../components/query-result.tsx'
import type { Column } from '../components/table.tsx'
import { Badge, Card, Id, Timestamp } from '../components/ui.tsx'
import { readAllPages, useCursorPages } from '../components/use-cursor-pages.ts'
import { VirtualTable } from '../components/virtual-table.tsx'
import { toCsv } from '../csv.ts'
import { formatCount, formatUsdc, NO_VALUE } from '../format.ts'
import { navigate, routeHref } from '../route.ts'
import { formatMicroUsdc, sumMicro, toMicro } from '../usdc-sum.ts'
import { outcomeTones } from './run-outcomes.ts'
import { RunPage } from './run-page.tsx'

type Run = ApiResponse<'/api/runs', 'get'>['runs'][number]
type Query = NonNullable<ApiRequest<'/api/runs', 'get'>['query']>

const outcomes = [
  'completed',
  'blocked',
  'pending',
  'approved',
  'escalated',
  'failed',
] as const satisfies readonly Query['outcome'][]
const progressValues = ['waiting', 'executing', 'escalated', 'ended'] as const satisfies readonly Query['progress'][]
const PAGE_SIZE = 100
const MAX_CSV_ROWS = 10_000
const RUN_ID = /^run_[0-9a-f-]{36}$/

export function RunsSection({ me, route }: SectionProps) {
  const [, id] = route.segments
  return id === undefined ? <RunList query={route.query} /> : <RunPage me={me} id={id} />
}

/** The filters of the address as the API takes them. */
export function toRunsQuery(query: URLSearchParams): Query {
  const text = (name: string) => query.get(name)?.trim() || undefined
  const number = (name: string) => {
    const value = text(name)
    return value === undefined || !Number.isFinite(Number(value)) || Number(value) < 0 ? undefined : Number(value)
  }
  // An exact time, as the links of the control tower have it.
  const time = (name: string) => {
    const at = new Date(text(name) ?? Number.NaN)
    return Number.isNaN(at.getTime()) ? undefined : at.toISOString()
  }
  // A day of the reader's own calendar.
  const day = (name: string, end: string) => {
    const at = new Date(`${text(name)}T${end}`)
    return Number.isNaN(at.getTime()) ? undefined : at.toISOString()
  }
  return {
    outcome: outcomes.find((outcome) => outcome === text('outcome')),
    progress: progressValues.find((progress) => progress === text('progress')),
    agent_id: text('lane'),
    spender: text('spender'),
    team: text('team'),
    tag: text('tag'),
    since: time('since') ?? day('from', '00:00:00.000'),
    until: time('until') ?? day('to', '23:59:59.999'),
    min_usdc: number('min'),
    max_usdc: number('max'),
    mandate_id: text('mandate'),
    spent: text('spent') === 'true' || undefined,
  }
}

function RunList({ query }: { query: URLSearchParams }) {
  const filter = toRunsQuery(query)
  const isFiltered = Object.values(filter).some((value) => value !== undefined)
  const readPage = async (after: string | undefined) => {
    const { runs, next_after } = await api.get('/api/runs', { query: { ...filter, limit: PAGE_SIZE, after } })
    return { runs, next_cursor: next_after }
  }
  const { query: runs, readOn, hasMore } = useCursorPages([ACCOUNT_KEY, 'runs', filter], readPage)
  const [shownColumns, setShownColumns] = useState<readonly string[]>(defaultColumns)
  return (
    <Card title="Runs" note="Newest first">
      <RunFilters query={query} />
      <div className="row">
        <ColumnChoice shown={shownColumns} onChange={setShownColumns} />
        <CsvButton
          name="runs.csv"
          readCsv={async () => toRunsCsv(await readAllPages(readPage, (page) => page.runs, MAX_CSV_ROWS))}
        />
      </div>
      <QueryResult query={runs}>
        {({ pages }) => {
          const rows = pages.flatMap((page) => page.runs)
          const reading = runs.isFetchNextPageError ? 'None of the newest runs fits.' : 'Looking at older runs …'
          return (
            <>
              <VirtualTable
                label="Runs"
                columns={columns.filter(({ name }) => shownColumns.includes(name))}
                rows={rows}
                rowKey={({ run_id }) => run_id}
                empty={hasMore ? reading : isFiltered ? 'No run fits these filters.' : <NoRuns />}
                onEndNear={readOn}
              />
              {rows.length > 0 && (
                <p className="muted" role="status">
                  {formatCount(rows.length)} {rows.length === 1 ? 'run' : 'runs'}
                  {filter.spent && `, ${formatMicroUsdc(sumMicro(rows.map(({ price_usdc }) => toMicro(price_usdc))))}`}
                  {hasMore && (runs.isFetchNextPageError ? ' so far' : ' so far; scroll for more')}
                </p>
              )}
            </>
          )
        }}
      </QueryResult>
    </Card>
  )
}

const NoRuns = () => (
  <>
    No runs yet. <a href={routeHref(['playground'])}>Make the first one in the playground</a>.
  </>
)

function RunFilters({ query }: { query: URLSearchParams }) {
  const lanes = useLanes()
  const value = (name: string) => query.get(name) ?? ''
  const apply = ({ run, ...values }: Record<string, string>) =>
    navigate(run && RUN_ID.test(run) ? routeHref(['account', 'runs', run]) : routeHref(['account', 'runs'], values))
  const input = (label: string, name: string, attributes: { type?: string; placeholder?: string } = {}) => (
    <Field label={label}>
      {(id) => <input id={id} name={name} defaultValue={value(name)} maxLength={200} {...attributes} />}
    </Field>
  )
  return (
    <FilterForm key={query.toString()} onApply={apply} hasButtons>
      <Select label="Outcome" name="outcome" value={value('outcome')} options={outcomes} emptyLabel="any outcome" />
      <Select
        label="Progress"
        name="progress"
        value={value('progress')}
        options={progressValues}
        emptyLabel="any progress"
      />
      <Select
        label="Lane"
        name="lane"
        value={value('lane')}
        options={(lanes.data?.agents ?? []).map(({ agent_id }) => agent_id)}
        emptyLabel="any lane"
      />
      {input('Run id', 'run', { placeholder: 'run_…' })}
      {input('Spender', 'spender')}
      {input('Team', 'team')}
      {input('Tag', 'tag', { placeholder: 'project:apollo' })}
      {input('Mandate', 'mandate', { placeholder: 'man_…' })}
      {/* The exact time that a link of another page named stays until the filters are cleared. */}
      {['since', 'until'].map(
        (name) => value(name) && <input key={name} type="hidden" name={name} value={value(name)} />,
      )}
      {input('From', 'from', { type: 'date' })}
      {input('To', 'to', { type: 'date' })}
      {input('At least, USDC', 'min', { type: 'number' })}
      {input('At most, USDC', 'max', { type: 'number' })}
      <label className="check-field">
        <input type="checkbox" name="spent" value="true" defaultChecked={value('spent') === 'true'} /> Only what was
        spent
      </label>
    </FilterForm>
  )
}

function ColumnChoice({ shown, onChange }: { shown: readonly string[]; onChange: (names: string[]) => void }) {
  return (
    <details className="column-choice">
      <summary>Columns</summary>
      {columns.map(({ name }) => (
        <label key={name}>
          <input
            type="checkbox"
            checked={shown.includes(name)}
            disabled={name === 'Run'}
            onChange={({ target }) =>
              onChange(
                columns
                  .map((column) => column.name)
                  .filter((other) => (other === name ? target.checked : shown.includes(other))),
              )
            }
          />{' '}
          {name}
        </label>
      ))}
    </details>
  )
}

export const toRunsCsv = (runs: readonly Run[]) =>
  toCsv(
    [
      'run_id',
      'outcome',
      'action',
      'lane',
      'price_usdc',
      'spender',
      'team',
      'tags',
      'created_at',
      'finished_at',
      'receipt',
    ],
    runs.map((run) => [
      run.run_id,
      run.outcome,
      run.action,
      run.agent_id,
      run.price_usdc,
      run.spender ?? null,
      run.team ?? null,
      run.tags ? JSON.stringify(run.tags) : null,
      run.created_at,
      run.finished_at ?? null,
      run.receipt_url?.split('/').at(-1) ?? null,
    ]),
  )

const columns: Column<Run>[] = [
  {
    name: 'Run',
    render: ({ run_id }) => (
      <a href={routeHref(['account', 'runs', run_id])}>
        <Id value={run_id} />
      </a>
    ),
  },
  { name: 'Outcome', render: ({ outcome }) => <Badge tone={outcomeTones[outcome] ?? 'neutral'}>{outcome}</Badge> },
  { name: 'Action', render: ({ action }) => action },
  { name: 'Lane', render: ({ agent_id }) => agent_id },
  { name: 'Price', render: ({ price_usdc }) => formatUsdc(price_usdc), numeric: true },
  { name: 'Spender', render: ({ spender }) => spender ?? NO_VALUE },
  { name: 'Team', render: ({ team }) => team ?? NO_VALUE },
  {
    name: 'Tags',
    render: ({ tags }) =>
      tags
        ? Object.entries(tags)
            .map(([name, value]) => `${name}: ${value}`)
            .join(', ')
        : NO_VALUE,
  },
  { name: 'When', render: ({ created_at }) => <Timestamp at={created_at} /> },
  {
    name: 'Receipt',
    render: ({ receipt_url }) => {
      const id = receipt_url?.split('/').at(-1)
      return id ? (
        <a href={routeHref(['receipts', id])}>
          <Id value={id} />
        </a>
      ) : (
        NO_VALUE
      )
    },
  },
]

const defaultColumns = ['Run', 'Outcome', 'Lane', 'Price', 'Spender', 'When', 'Receipt']
