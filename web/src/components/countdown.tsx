import { useEffect, useState } from 'react'
import { formatDuration, formatRelativeTime, formatTime } from '../format.ts'
import { useNow } from '../now.ts'

/** How much time is left; the exact end is its title. */
export function Countdown({ until, overText = 'over' }: { until: string; overText?: string }) {
  const [now, setNow] = useState(() => Date.now())
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1_000)
    return () => clearInterval(timer)
  }, [])
  const seconds = (Date.parse(until) - now) / 1000
  return (
    <time dateTime={until} title={formatTime(until)} className={seconds < 120 ? 'countdown urgent' : 'countdown'}>
      {seconds > 0 ? `${formatDuration(seconds)} left` : overText}
    </time>
  )
}

/** How long ago something was, where there is no room for its time, which is the title. */
export const Age = ({ at }: { at: string }) => {
  const now = useNow()
  return (
    <time dateTime={at} title={formatTime(at)} className="countdown">
      {formatRelativeTime(at, now)}
    </time>
  )
}
