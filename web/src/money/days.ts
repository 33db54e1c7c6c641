/** Days of the reader's own calendar, as in `2026-11-16`. */
export function toDay(at: Date): string {
  const pad = (value: number) => String(value).padStart(2, '0')
  return `${at.getFullYear()}-${pad(at.getMonth() + 1)}-${pad(at.getDate())}`
}

const DAY = /^\d{4}-\d{2}-\d{2}$/

export function startOfDay(day: string | undefined): Date | undefined {
  const at = new Date(`${DAY.test(day ?? '') ? day : ''}T00:00:00.000`)
  return Number.isNaN(at.getTime()) ? undefined : at
}

export function endOfDay(day: string | undefined): Date | undefined {
  const at = new Date(`${DAY.test(day ?? '') ? day : ''}T23:59:59.999`)
  return Number.isNaN(at.getTime()) ? undefined : at
}

/** A clock that is put forward makes a day shorter, so days are counted by the calendar and not by hours. */
export function addDays(day: string, count: number): string {
  const [year, month, date] = day.split('-').map(Number) as [number, number, number]
  return new Date(Date.UTC(year, month - 1, date + count)).toISOString().slice(0, 10)
}

export const daysBetween = (from: string, to: string): number => Math.round((Date.parse(to) - Date.parse(from)) / 864e5)
