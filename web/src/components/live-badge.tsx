import { formatLocalTime } from '../format.ts'
import { type LiveState, useLiveState } from '../live.ts'

const texts: Record<LiveState['status'], string> = {
  connecting: 'Connecting',
  live: 'Live',
  reconnecting: 'Reconnecting, not live since',
  offline: 'Offline since',
}

/** Whether this page changes as things happen. */
export function LiveBadge() {
  const { status, since } = useLiveState()
  return (
    <p className="live-badge" data-status={status} role="status" aria-label="Connection">
      <span className="live-dot" aria-hidden="true" />
      {texts[status]}
      {since && ` ${formatLocalTime(since)}`}
    </p>
  )
}
