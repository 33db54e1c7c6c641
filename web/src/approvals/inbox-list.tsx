import { Badge } from '../components/ui.tsx'
import { formatRelativeTime, formatUsdc } from '../format.ts'
import { useNow } from '../now.ts'
import { Countdown } from './countdown.tsx'
import { type InboxItem, isNewTarget } from './inbox-item.ts'

export const rowId = (id: string) => `inbox-${id}`

/** A line for each approval; the one that is shown beside the list is the current one. */
export function InboxList({
  items,
  currentId,
  toHref,
  selection,
  onSelect,
}: {
  items: InboxItem[]
  currentId: string | undefined
  toHref: (id: string) => string
  /** Undefined for those who may not decide. */
  selection: ReadonlySet<string> | undefined
  onSelect: (id: string, isSelected: boolean) => void
}) {
  return (
    <ul className="inbox-list" aria-label="Approvals">
      {items.map((item) => (
        <li key={item.id} className={item.id === currentId ? 'current' : undefined}>
          {selection && item.status === 'pending' && (
            <input
              type="checkbox"
              aria-label={`Select ${item.title}, ${formatUsdc(item.amountUsdc)}`}
              checked={selection.has(item.id)}
              onChange={(event) => onSelect(item.id, event.target.checked)}
            />
          )}
          <a
            className="inbox-link"
            id={rowId(item.id)}
            href={toHref(item.id)}
            aria-current={item.id === currentId ? 'true' : undefined}
          >
            <span className="inbox-title">{item.title}</span>
            <span className="inbox-amount">{formatUsdc(item.amountUsdc)}</span>
            <span className="muted inbox-spender">
              {item.domain === 'core' ? '' : 'trade · '}
              {item.spender}
              {isNewTarget(item) && ' · new'}
            </span>
            <span className="inbox-state">
              {item.status === 'pending' && item.expiresAt ? (
                <Countdown until={item.expiresAt} />
              ) : (
                <Ended item={item} />
              )}
            </span>
          </a>
        </li>
      ))}
    </ul>
  )
}

function Ended({ item }: { item: InboxItem }) {
  const now = useNow()
  return (
    <>
      <Badge tone={item.tone}>{item.state}</Badge>{' '}
      <span className="muted">{formatRelativeTime(item.decisions.at(-1)?.at ?? item.createdAt, now)}</span>
    </>
  )
}
