/** Numbers and times for display. Times are always UTC, so that every reader sees the same. */
export const NO_VALUE = '–'

export const formatUsdc = (amount: number) => `${amount.toLocaleString('en-US', { maximumFractionDigits: 6 })} USDC`

export const formatCount = (value: number) => value.toLocaleString('en-US')

export const formatPercent = (share: number | null) => (share === null ? NO_VALUE : `${(share * 100).toFixed(1)} %`)

export const formatMilliseconds = (value: number | null) =>
  value === null ? NO_VALUE : `${formatCount(Math.round(value))} ms`

export const formatSigned = (value: number, digits = 2) => `${value > 0 ? '+' : ''}${value.toFixed(digits)}`

export const formatTime = (iso: string) => iso.replace('T', ' ').replace(/(\.\d+)?Z$/, ' UTC')

export function formatDuration(seconds: number | null): string {
  if (seconds === null) return NO_VALUE
  if (seconds < 120) return `${Math.round(seconds)} s`
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`
  return seconds < 172_800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86_400)} days`
}
