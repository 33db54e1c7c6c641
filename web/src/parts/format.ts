/** Figures and times as people read them; every time is UTC, so that two readers see the same. */
export const NONE = '–'

export const usdc = (amount: number) => `${amount.toLocaleString('en-US', { maximumFractionDigits: 6 })} USDC`

export const count = (value: number) => value.toLocaleString('en-US')

export const percent = (share: number | null) => (share === null ? NONE : `${(share * 100).toFixed(1)} %`)

export const milliseconds = (value: number | null) => (value === null ? NONE : `${count(Math.round(value))} ms`)

export const signed = (value: number, digits = 2) => `${value > 0 ? '+' : ''}${value.toFixed(digits)}`

export const time = (iso: string) => iso.replace('T', ' ').replace(/(\.\d+)?Z$/, ' UTC')

export function duration(seconds: number | null): string {
  if (seconds === null) return NONE
  if (seconds < 120) return `${Math.round(seconds)} s`
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`
  return seconds < 172_800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86_400)} days`
}
