import { Badge } from '../components/ui.tsx'
import type { StreamState } from './quote-stream.ts'

/** Whether new readings arrive by themselves. */
export const StreamBadge = ({ state }: { state: StreamState }) => (
  <span role="status" data-stream={state}>
    {state === 'live' ? (
      <Badge tone="success">updates live</Badge>
    ) : state === 'connecting' ? (
      <Badge tone="neutral">connecting…</Badge>
    ) : (
      <Badge tone="warning">stream lost: asks every 15 s</Badge>
    )}
  </span>
)
