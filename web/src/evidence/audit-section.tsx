import type { ApiRequest } from '@countersign/sdk'
import { useInfiniteQuery } from '@tanstack/react-query'
import { useEffect, useRef } from 'react'
import type { SectionProps } from '../account/section-props.ts'
import { ACCOUNT_KEY, api } from '../api.ts'
import { CopyButton } from '../components/copy-button.tsx'
import { Field, FilterForm } from '../components/form-fields.tsx'
import { QueryResult } from '../components/query-result.tsx'
import { SaveButton, saveFile } from '../components/save-button.tsx'
import { type Column, Table } from '../components/table.tsx'
import { Card, Id, TextBlock, Timestamp } from '../components/ui.tsx'
import { toCsv } from '../csv.ts'
import { NO_VALUE } from '../format.ts'
import { navigate, type Route, routeHref } from '../route.ts'
import type { AuditEvent } from './audit-chain.ts'
import { ChainCard } from './chain-card.tsx'
import { subjectHref } from './subject-href.ts'

type AuditQuery = NonNullable<ApiRequest<'/api/audit', 'get'>['query']>

const PAGE_SIZE = 100

/** `#/account/audit?actor=…&type=…&subject=…&since=…&until=…&event=…` */
export function AuditSection({ route }: SectionProps) {
  const filter = toAuditQuery(route.query)
  const isFiltered = Object.keys(filter).length > 0
  const audit = useInfiniteQuery({
    queryKey: [ACCOUNT_KEY, 'audit', filter],
    queryFn: ({ pageParam }) =>
      api.get('/api/audit', { query: { ...filter, format: 'json', limit: PAGE_SIZE, cursor: pageParam } }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next_cursor }) => next_cursor ?? undefined,
    // Each page that was read would be read again: the newest events come by opening the list anew.
    refetchInterval: ({ state }) => (state.data && state.data.pages.length > 1 ? false : 15_000),
  })
  return (
    <QueryResult query={audit}>
      {({ pages }) => {
        const events = pages.flatMap((page) => page.events)
        return (
          <>
            <ChainCard events={events} checkpoint={pages[0]!.checkpoint} isFiltered={isFiltered} />
            <EventCard event={events.find(({ seq }) => String(seq) === route.query.get('event'))} />
            <Card title="Audit trail" note="Newest first; the number shows all of an event">
              <AuditFilters query={route.query} />
              <div className="row">
                <button
                  type="button"
                  className="secondary"
                  onClick={() => saveFile('audit.csv', 'text/csv', toAuditCsv(events))}
                >
                  Save as CSV
                </button>
                <SaveButton name="audit.json" value={events}>
                  Save as JSON
                </SaveButton>
                <a href="/api/audit?format=ndjson" download="audit.ndjson">
                  The whole chain (NDJSON)
                </a>
              </div>
              <Table
                label="Audit trail"
                columns={createColumns(route.query)}
                rows={events}
                rowKey={({ id }) => id}
                empty={
                  audit.hasNextPage
                    ? 'None of the newest events matches this filter.'
                    : isFiltered
                      ? 'No event matches this filter.'
                      : 'Nothing was recorded yet.'
                }
              />
              {audit.hasNextPage && (
                <button
                  type="button"
                  className="secondary"
                  disabled={audit.isFetching}
                  onClick={() => void audit.fetchNextPage()}
                >
                  Load older events
                </button>
              )}
            </Card>
          </>
        )
      }}
    </QueryResult>
  )
}

/** All of the event that the address names. */
function EventCard({ event }: { event: AuditEvent | undefined }) {
  const place = useRef<HTMLDivElement>(null)
  const seq = event?.seq
  useEffect(() => {
    if (seq !== undefined) place.current?.scrollIntoView({ block: 'center' })
  }, [seq])
  if (!event) return null
  const json = JSON.stringify(event, null, 2)
  return (
    <div ref={place}>
      <Card title={`Event ${event.seq}`} note={<CopyButton text={json} label="the event" />}>
        <TextBlock label={`Event ${event.seq} as JSON`}>{json}</TextBlock>
      </Card>
    </div>
  )
}

function AuditFilters({ query }: { query: Route['query'] }) {
  const textField = (label: string, name: string, placeholder: string) => (
    <Field label={label}>
      {(id) => (
        <input id={id} name={name} defaultValue={query.get(name) ?? ''} maxLength={200} placeholder={placeholder} />
      )}
    </Field>
  )
  const timeField = (label: string, name: string) => (
    <Field label={label}>
      {(id) => <input id={id} name={name} type="datetime-local" defaultValue={query.get(name) ?? ''} />}
    </Field>
  )
  return (
    <FilterForm
      key={query.toString()}
      hasButtons
      onApply={(values) => navigate(routeHref(['account', 'audit'], values))}
    >
      {textField('Actor', 'actor', 'key_…')}
      {textField('Type', 'type', 'policy.updated')}
      {textField('Subject', 'subject', 'run_…')}
      {timeField('From (your time)', 'since')}
      {timeField('To (your time)', 'until')}
    </FilterForm>
  )
}

/** Only the filters that are set; times of the form are in the reader's time zone. */
function toAuditQuery(query: Route['query']): AuditQuery {
  const texts = ['actor', 'type', 'subject'].map((name) => [name, query.get(name)])
  const times = ['since', 'until'].map((name) => {
    const at = Date.parse(query.get(name) ?? '')
    return [name, Number.isNaN(at) ? null : new Date(at).toISOString()]
  })
  return Object.fromEntries([...texts, ...times].filter(([, value]) => value))
}

const renderLink = (name: 'actor' | 'type', value: string) => (
  <a href={routeHref(['account', 'audit'], { [name]: value })} title={`Only of this ${name}`}>
    {name === 'type' ? value : <Id value={value} />}
  </a>
)

const createColumns = (query: Route['query']): Column<AuditEvent>[] => [
  {
    name: '#',
    render: ({ seq }) => (
      <a
        href={routeHref(['account', 'audit'], { ...Object.fromEntries(query), event: String(seq) })}
        aria-label={`Event ${seq}`}
      >
        {seq}
      </a>
    ),
    numeric: true,
  },
  { name: 'At', render: ({ occurred_at }) => <Timestamp at={occurred_at} /> },
  { name: 'Type', render: ({ type }) => renderLink('type', type) },
  { name: 'Actor', render: ({ actor }) => renderLink('actor', actor) },
  {
    name: 'Subject',
    render: ({ subject }) => {
      const href = subjectHref(subject)
      return href ? (
        <a href={href}>
          <Id value={subject} />
        </a>
      ) : (
        <Id value={subject} />
      )
    },
  },
  { name: 'Decision', render: ({ decision }) => decision ?? NO_VALUE },
]

const csvColumns = ['seq', 'occurred_at', 'type', 'actor', 'subject', 'decision', 'data', 'prev_hash', 'hash'] as const

const toAuditCsv = (events: readonly AuditEvent[]) =>
  toCsv(
    csvColumns,
    events.map((event) => csvColumns.map((name) => (name === 'data' ? JSON.stringify(event.data) : event[name]))),
  )
