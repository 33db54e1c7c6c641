import type { ApiResponse } from '@countersign/sdk'
import { routeHref } from '../route.ts'
import { sumMicro } from '../usdc-sum.ts'
import { addDays, daysBetween, startOfDay, toDay } from './days.ts'

export const groupings = ['spender', 'team', 'lane', 'merchant', 'tag', 'day'] as const
export type Grouping = (typeof groupings)[number]

/** Days of the reader's calendar, or of UTC, in which the service counts its own; both included. */
export type Period = { from: string; to: string; isUtc?: true }

export type SpendGroup = ApiResponse<'/api/spend', 'get'>['groups'][number]

export type SpendRow = {
  /** Null for what has no such name. */
  name: string | null
  nowMicro: bigint
  beforeMicro: bigint
  /** The part of this period that was paid for runs, and for how many. */
  runsMicro: bigint
  runs: number
  /** The part that nobody but the tenant has seen paid. */
  reportedMicro: bigint
}

/** Runs are paid by these; everything else is a pre-authorised payment or a trade. */
const RUN_RAILS = ['wallet', 'x402']
const DEFAULT_DAYS = 30
const OWN_MERCHANT = 'countersign'

export const lastDays = (now: Date, count = DEFAULT_DAYS): Period => ({
  from: addDays(toDay(now), 1 - count),
  to: toDay(now),
})

/** As many days, directly before. */
export function periodBefore({ from, to, ...zone }: Period): Period {
  const length = daysBetween(from, to) + 1
  return { from: addDays(from, -length), to: addDays(from, -1), ...zone }
}

/** As the API takes it: from the first midnight until before the last. */
export function toRange({ from, to, isUtc }: Period) {
  const midnight = (day: string) => (isUtc ? `${day}T00:00:00.000Z` : startOfDay(day)!.toISOString())
  return { from: midnight(from), to: midnight(addDays(to, 1)) }
}

export function readPeriod(query: URLSearchParams, fromName: string, toName: string): Period | undefined {
  const [from, to] = [query.get(fromName) ?? '', query.get(toName) ?? '']
  if (!startOfDay(from) || !startOfDay(to) || from > to) return undefined
  return { from, to, ...(query.get('zone') === 'utc' && { isUtc: true as const }) }
}

export const daysOf = ({ from, to }: Period): string[] =>
  Array.from({ length: daysBetween(from, to) + 1 }, (_, index) => addDays(from, index))

export const describePeriod = ({ from, to, isUtc }: Period): string =>
  `${from === to ? from : `${from} to ${to}`}${isUtc ? ' UTC' : ''}`

const amountOf = (groups: readonly SpendGroup[]) => sumMicro(groups.map(({ amount }) => BigInt(amount)))

/** One row for each name of either period, the largest first. The groups are by name and rail. */
export function compareGroups(
  grouping: Grouping,
  now: readonly SpendGroup[],
  before: readonly SpendGroup[],
): SpendRow[] {
  const nameOf = (group: SpendGroup) => group[grouping] ?? null
  const [nowByName, beforeByName] = [Map.groupBy(now, nameOf), Map.groupBy(before, nameOf)]
  return [...new Set([...nowByName.keys(), ...beforeByName.keys()])]
    .map((name) => toRow(name, nowByName.get(name) ?? [], beforeByName.get(name) ?? []))
    .filter(({ nowMicro, beforeMicro, runs }) => nowMicro !== 0n || beforeMicro !== 0n || runs > 0)
    .sort((a, b) => Number(b.nowMicro - a.nowMicro) || Number(b.beforeMicro - a.beforeMicro))
}

function toRow(name: string | null, now: readonly SpendGroup[], before: readonly SpendGroup[]): SpendRow {
  const ofRuns = now.filter(({ rail }) => RUN_RAILS.includes(rail ?? ''))
  return {
    name,
    nowMicro: amountOf(now),
    beforeMicro: amountOf(before),
    runsMicro: amountOf(ofRuns),
    runs: ofRuns.reduce((sum, { count }) => sum + count, 0),
    reportedMicro: sumMicro(now.map(({ reported }) => BigInt(reported))),
  }
}

/** One row for each day of the period, beside the day at the same place of the one before; the newest first. */
export function compareDays(
  period: Period,
  now: readonly SpendGroup[],
  periodBeforeIt: Period | undefined,
  before: readonly SpendGroup[],
): SpendRow[] {
  const [nowByDay, beforeByDay] = [Map.groupBy(now, ({ day }) => day), Map.groupBy(before, ({ day }) => day)]
  const daysBefore = periodBeforeIt ? daysOf(periodBeforeIt) : []
  return daysOf(period)
    .map((day, index) => toRow(day, nowByDay.get(day) ?? [], beforeByDay.get(daysBefore[index] ?? '') ?? []))
    .reverse()
}

/** The runs that a row counts; undefined where it counts none, or the list of runs cannot be narrowed to them. */
export function runsHref(row: SpendRow, grouping: Grouping, tag: string, period: Period): string | undefined {
  if (row.runs === 0 || row.name === null) return undefined
  const { isUtc, ...days } = grouping === 'day' ? { ...period, from: row.name, to: row.name } : period
  const range = isUtc ? toInstants({ ...days, isUtc }) : days
  const names: Record<Grouping, Record<string, string> | undefined> = {
    spender: { spender: row.name },
    team: { team: row.name },
    lane: { lane: row.name },
    tag: { tag: `${tag}:${row.name}` },
    merchant: row.name === OWN_MERCHANT ? {} : undefined,
    day: {},
  }
  const filter = names[grouping]
  return filter && routeHref(['account', 'runs'], { ...filter, ...range, spent: 'true' })
}

/** The same for a list whose days are the reader's own: its first and last moment. */
function toInstants(period: Period): { since: string; until: string } {
  const { from, to } = toRange(period)
  return { since: from, until: new Date(Date.parse(to) - 1).toISOString() }
}
