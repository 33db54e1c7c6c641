import { formatTime } from '../format.ts'
import { useSecond } from '../now.ts'

const SOON_MS = 5 * 60_000

/** How long is left, as a clock: `1 day 02:03:04`, then `02:03:04`. */
export function formatCountdown(ms: number): string {
  if (ms <= 0) return 'expired'
  const seconds = Math.ceil(ms / 1_000)
  const days = Math.floor(seconds / 86_400)
  const clock = [Math.floor(seconds / 3_600) % 24, Math.floor(seconds / 60) % 60, seconds % 60]
    .map((part) => String(part).padStart(2, '0'))
    .join(':')
  return days === 0 ? clock : `${days} ${days === 1 ? 'day' : 'days'} ${clock}`
}

/** The time left until a moment; it ticks. */
export function Countdown({ until }: { until: string }) {
  const leftMs = Date.parse(until) - useSecond()
  return (
    <time className={leftMs < SOON_MS ? 'countdown soon' : 'countdown'} dateTime={until} title={formatTime(until)}>
      {formatCountdown(leftMs)}
    </time>
  )
}
