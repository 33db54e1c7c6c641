import { type Ref, useEffect, useRef, useState } from 'react'
import { mayControl } from '../account/permissions.ts'
import type { SectionProps } from '../account/section-props.ts'
import { hasStatus } from '../api.ts'
import { Field, FilterForm, Select } from '../components/form-fields.tsx'
import { QueryResult } from '../components/query-result.tsx'
import { Card, MutedText } from '../components/ui.tsx'
import { navigate, routeHref } from '../route.ts'
import { ApprovalCard } from './approval-card.tsx'
import type { Outcome } from './decide.ts'
import { type DecisionControls, DecisionForm } from './decision-form.tsx'
import type { InboxItem } from './inbox-item.ts'
import { InboxList, rowId } from './inbox-list.tsx'
import { domains, type InboxFilter, statuses, toInboxFilter, useInbox, useInboxItem } from './inbox-queries.ts'
import { ShortcutList, useShortcuts } from './keyboard.tsx'
import { OutcomeList } from './outcome-list.tsx'
import { NotificationSetting } from './waiting.tsx'

const MAX_OUTCOMES = 20

/** The inbox of everything that waits for a person, and what became of what was decided. */
export function ApprovalsSection({ me, route }: SectionProps) {
  const [, openId] = route.segments
  const filter = toInboxFilter(route.query)
  const inbox = useInbox(filter)
  const [outcomes, setOutcomes] = useState<Outcome[]>([])
  const addOutcome = (outcome: Outcome) =>
    setOutcomes((list) => [outcome, ...list.filter(({ id }) => id !== outcome.id)].slice(0, MAX_OUTCOMES))
  return (
    <Card title="Inbox" note={filter.status === 'pending' ? 'What expires first stands first' : 'Newest first'}>
      <InboxFilters filter={filter} isItemOpen={openId !== undefined} />
      <OutcomeList outcomes={outcomes} onClear={() => setOutcomes([])} />
      <QueryResult query={inbox}>
        {({ items }) => (
          <>
            <Inbox
              items={items}
              openId={openId}
              query={Object.fromEntries(route.query)}
              canControl={mayControl(me)}
              isPendingList={filter.status === 'pending'}
              onOutcome={addOutcome}
            />
            {inbox.hasNextPage && (
              <button
                type="button"
                className="secondary"
                disabled={inbox.isFetchingNextPage}
                onClick={() => void inbox.fetchNextPage()}
              >
                Show more
              </button>
            )}
          </>
        )}
      </QueryResult>
    </Card>
  )
}

function InboxFilters({ filter, isItemOpen }: { filter: InboxFilter; isItemOpen: boolean }) {
  return (
    <div className="inbox-tools" data-open={isItemOpen}>
      <FilterForm
        key={JSON.stringify(filter)}
        onApply={(values) => navigate(routeHref(['account', 'approvals'], values))}
        hasButtons
      >
        <Select label="Status" name="status" value={filter.status} options={statuses} />
        <Select
          label="Domain"
          name="domain"
          value={filter.domain === 'all' ? '' : filter.domain}
          options={domains}
          emptyLabel="core and brokerage"
        />
        <Field label="Spender">
          {(id) => <input id={id} name="spender" defaultValue={filter.spender ?? ''} maxLength={200} />}
        </Field>
      </FilterForm>
      <NotificationSetting />
    </div>
  )
}

type InboxProps = {
  items: InboxItem[]
  openId: string | undefined
  query: Record<string, string>
  canControl: boolean
  isPendingList: boolean
  onOutcome: (outcome: Outcome) => void
}

function Inbox({ items, openId, query, canControl, isPendingList, onOutcome }: InboxProps) {
  const [selectedIds, setSelectedIds] = useState<ReadonlySet<string>>(new Set())
  const [hasHelp, setHelp] = useState(false)
  const controls = useRef<DecisionControls>(null)
  const currentId = openId ?? items[0]?.id
  const selectedItems = items.filter(({ id, status }) => status === 'pending' && selectedIds.has(id))
  const toHref = (id: string) => routeHref(['account', 'approvals', id], query)
  const select = (id: string, isSelected: boolean) =>
    setSelectedIds((ids) => new Set(isSelected ? [...ids, id] : [...ids].filter((other) => other !== id)))
  const index = items.findIndex(({ id }) => id === currentId)
  const lastIndex = useRef(0)
  const isMoving = useRef(false)
  useEffect(() => {
    if (!isMoving.current || openId === undefined) return
    isMoving.current = false
    // After the layout, which gives the focus to the page on a new address.
    const frame = requestAnimationFrame(() => focusRow(openId))
    return () => cancelAnimationFrame(frame)
  })
  useEffect(() => {
    if (index !== -1) lastIndex.current = index
  }, [index])
  const move = (step: 1 | -1) => {
    // One that was decided has left the list, and the next has taken its place.
    const nextIndex = index === -1 ? lastIndex.current + (step === 1 ? 0 : -1) : index + step
    const next = items[Math.min(items.length - 1, Math.max(0, nextIndex))]
    if (!next) return
    isMoving.current = true
    navigate(toHref(next.id))
  }
  useShortcuts({
    j: () => move(1),
    k: () => move(-1),
    '?': () => setHelp(!hasHelp),
    ...(canControl && {
      a: () => controls.current?.approve(),
      r: () => controls.current?.startReject(),
      x: () => currentId && select(currentId, !selectedIds.has(currentId)),
    }),
  })
  return (
    <>
      {hasHelp ? (
        <ShortcutList />
      ) : (
        <p className="muted key-hint">
          Keys: <kbd>j</kbd> <kbd>k</kbd> {canControl && <KeyHint />}
          <kbd>?</kbd>
        </p>
      )}
      {selectedItems.length > 0 && (
        <section className="selection" aria-label="Selected approvals">
          <strong>{selectedItems.length} selected</strong>
          <button type="button" className="link" onClick={() => setSelectedIds(new Set())}>
            Select none
          </button>
          {selectedItems.length > 1 && <DecisionForm items={selectedItems} onOutcome={onOutcome} />}
        </section>
      )}
      <div className="inbox" data-open={openId !== undefined}>
        <div className="inbox-pane">
          {items.length === 0 && (
            <EmptyInbox isPendingList={isPendingList} isFiltered={Object.keys(query).length > 0} />
          )}
          <InboxList
            items={items}
            currentId={currentId}
            toHref={toHref}
            selection={canControl ? selectedIds : undefined}
            onSelect={select}
          />
        </div>
        {currentId !== undefined && (
          <div className="inbox-detail">
            <a className="inbox-back" href={routeHref(['account', 'approvals'], query)}>
              All approvals
            </a>
            <OpenItem
              id={currentId}
              listedItem={items.find(({ id }) => id === currentId)}
              canControl={canControl}
              onOutcome={onOutcome}
              onLeave={() => focusRow(currentId)}
              controls={controls}
            />
          </div>
        )}
      </div>
    </>
  )
}

const focusRow = (id: string | undefined) => id && document.getElementById(rowId(id))?.focus()

const KeyHint = () => (
  <>
    <kbd>a</kbd> <kbd>r</kbd> <kbd>x</kbd>{' '}
  </>
)

const EmptyInbox = ({ isPendingList, isFiltered }: { isPendingList: boolean; isFiltered: boolean }) => (
  <div className="empty">
    <MutedText>{isPendingList ? 'Nothing waits for a decision.' : 'No approvals.'}</MutedText>
    {!isFiltered && (
      <MutedText>
        A policy with <code>require_approval_above_usdc</code> puts larger payments before a person.{' '}
        <a href={routeHref(['account', 'policies'])}>Policies</a>
      </MutedText>
    )}
  </div>
)

type OpenItemProps = {
  id: string
  /** Undefined when the filters do not list it, such as one that was decided meanwhile. */
  listedItem: InboxItem | undefined
  canControl: boolean
  onOutcome: (outcome: Outcome) => void
  onLeave: () => void
  controls: Ref<DecisionControls>
}

function OpenItem({ id, listedItem, ...props }: OpenItemProps) {
  const query = useInboxItem(listedItem ? undefined : id)
  if (listedItem) return <ApprovalCard item={listedItem} {...props} />
  if (hasStatus(query.error, 404) && !query.data)
    return <MutedText>There is no approval {id} in this organisation.</MutedText>
  return <QueryResult query={query}>{(item) => <ApprovalCard item={item} {...props} />}</QueryResult>
}
