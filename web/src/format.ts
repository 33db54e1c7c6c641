/** Numbers and times for display. */
export const NO_VALUE = '–'

// Made once: to make one for each cell costs more than the rest of its row.
const amounts = new Intl.NumberFormat('en-US', { maximumFractionDigits: 6 })
const counts = new Intl.NumberFormat('en-US')
const localTimes = new Map<string | undefined, Intl.DateTimeFormat>()

export const formatUsdc = (amount: number) => `${amounts.format(amount)} USDC`

export const formatCount = (value: number) => counts.format(value)

export const formatPercent = (share: number | null) => (share === null ? NO_VALUE : `${(share * 100).toFixed(1)} %`)

export const formatMilliseconds = (value: number | null) =>
  value === null ? NO_VALUE : `${formatCount(Math.round(value))} ms`

export const formatSigned = (value: number, digits = 2) => `${value > 0 ? '+' : ''}${value.toFixed(digits)}`

/** The exact time, the same for every reader. */
export const formatTime = (iso: string) => iso.replace('T', ' ').replace(/(\.\d+)?Z$/, ' UTC')

/** The time where the reader is, or in the time zone given. */
export function formatLocalTime(iso: string, timeZone?: string): string {
  const at = new Date(iso)
  if (Number.isNaN(at.getTime())) return iso
  return localTimeFormat(timeZone).format(at)
}

function localTimeFormat(timeZone: string | undefined): Intl.DateTimeFormat {
  const format =
    localTimes.get(timeZone) ??
    new Intl.DateTimeFormat('en-GB', {
      day: 'numeric',
      month: 'short',
      year: 'numeric',
      hour: '2-digit',
      minute: '2-digit',
      timeZone,
    })
  localTimes.set(timeZone, format)
  return format
}

const MINUTE_MS = 60_000
const CLOCK_LAG_MS = 15_000
const relativeTime = new Intl.RelativeTimeFormat('en', { numeric: 'always', style: 'short' })

export function formatRelativeTime(iso: string, nowMs: number): string {
  const differenceMs = Date.parse(iso) - nowMs
  const minutes = Math.abs(differenceMs) / MINUTE_MS
  if (Number.isNaN(minutes)) return ''
  // The page's clock is a few seconds behind what the service has just written.
  if (minutes < 1) return differenceMs > CLOCK_LAG_MS ? 'in less than a minute' : 'just now'
  const [amount, unit]: [number, Intl.RelativeTimeFormatUnit] =
    minutes < 60
      ? [minutes, 'minute']
      : minutes < 60 * 24
        ? [minutes / 60, 'hour']
        : minutes < 60 * 24 * 60
          ? [minutes / 60 / 24, 'day']
          : [minutes / 60 / 24 / 30, 'month']
  return relativeTime.format(Math.sign(differenceMs) * Math.floor(amount), unit)
}

export function formatDuration(seconds: number | null): string {
  if (seconds === null) return NO_VALUE
  if (seconds < 120) return `${Math.round(seconds)} s`
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`
  return seconds < 172_800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86_400)} days`
}
