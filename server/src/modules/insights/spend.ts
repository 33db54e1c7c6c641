import type { TenantCaller } from '../../platform/auth-context.ts'
import type { Clock } from '../../platform/clock.ts'
import { toCsv } from '../../platform/csv.ts'
import type { Db } from '../../platform/db.ts'
import { usdcFromMicro } from '../../platform/money.ts'
import { toPage } from '../../platform/paging.ts'
import { invalid } from '../../platform/problem.ts'
import { endOfHour, startOfHour } from './hours.ts'
import { readSpend, type SpendDimension, type SpendSums, spendDimensions } from './spend.store.ts'

export type SpendQuery = {
  group_by?: string
  tag?: string
  from?: string
  to?: string
  time_zone?: string
  limit?: number
  cursor?: string
}

const DAY_MS = 24 * 3_600_000
const DEFAULT_DAYS = 30
export const MAX_DAYS = 366
export const MAX_GROUPS = 1_000
export const MAX_DIMENSIONS = 2
const DEFAULT_GROUPS = 100

export type Spend = ReturnType<typeof createSpend>
export type SpendReport = Awaited<ReturnType<Spend['read']>>

/** What a tenant has spent over everything that is governed: runs, loops, pre-authorised payments and trades. */
export function createSpend(deps: { db: Db; clock: Clock }) {
  return {
    async read(caller: TenantCaller, query: SpendQuery) {
      const groupBy = readDimensions(query)
      const { since, until } = readRange(query, deps.clock.now())
      const limit = query.limit ?? DEFAULT_GROUPS
      const filter = {
        tenantId: caller.tenantId,
        since,
        until: query.to === undefined ? endOfHour(until) : until,
        groupBy,
        tag: query.tag,
        timeZone: readTimeZone(query),
      }
      const after = query.cursor === undefined ? undefined : readCursor(query.cursor, groupBy.length)
      const { groups, totals } = await readSpend(deps.db, { ...filter, limit: limit + 1, after }).catch((error) => {
        throw isUnknownZone(error) ? unknownZone(filter.timeZone) : error
      })
      const page = toPage(groups, limit, ({ place }) => Buffer.from(JSON.stringify(place)).toString('base64url'))
      return {
        from: since.toISOString(),
        to: until.toISOString(),
        group_by: groupBy,
        tag: query.tag ?? null,
        totals: toSpendSums(totals),
        groups: page.rows.map(({ keys, ...sums }) => ({
          ...Object.fromEntries(groupBy.map((dimension, index) => [dimension, keys[index] ?? null])),
          ...toSpendSums(sums),
        })),
        has_more: page.has_more,
        next_cursor: page.next_cursor,
      }
    },
  }
}

const columns = ['amount', 'amount_usdc', 'count', 'reported', 'reported_usdc', 'notional', 'notional_usdc', 'trades']

/** One line for each group; the atoms are authoritative. */
export const toSpendCsv = ({ group_by, groups }: SpendReport): string =>
  toCsv(
    [...group_by, ...columns],
    groups.map((group) =>
      [...group_by, ...columns].map((name) => (group as Record<string, string | number | null>)[name] ?? null),
    ),
  )

export const toSpendSums = (sums: SpendSums) => ({
  amount: sums.amount_micro.toString(),
  amount_usdc: usdcFromMicro(sums.amount_micro),
  count: Number(sums.count),
  reported: sums.reported_micro.toString(),
  reported_usdc: usdcFromMicro(sums.reported_micro),
  notional: sums.notional_micro.toString(),
  notional_usdc: usdcFromMicro(sums.notional_micro),
  trades: Number(sums.trades),
})

function readDimensions({ group_by = 'day', tag }: SpendQuery): SpendDimension[] {
  const names = group_by.split(',')
  const unknown = names.find((name) => !(spendDimensions as readonly string[]).includes(name))
  if (unknown !== undefined)
    throw invalid(`querystring/group_by: '${unknown}' is none of ${spendDimensions.join(', ')}.`)
  if (new Set(names).size < names.length) throw invalid('querystring/group_by names a dimension twice.')
  if (names.length > MAX_DIMENSIONS) throw invalid(`querystring/group_by names more than ${MAX_DIMENSIONS} dimensions.`)
  if (names.includes('tag') !== (tag !== undefined))
    throw invalid('querystring/tag names the tag whose values are the groups of group_by=tag; send both or neither.')
  return names as SpendDimension[]
}

function readRange({ from, to }: SpendQuery, now: Date): { since: Date; until: Date } {
  // Just after now, so that what was spent in this millisecond is in it.
  const until = to === undefined ? new Date(now.getTime() + 1) : readTime('to', to)
  const since =
    from === undefined ? startOfHour(new Date(until.getTime() - DEFAULT_DAYS * DAY_MS)) : readTime('from', from)
  if (since >= until) throw invalid('querystring/from must be before querystring/to.')
  if (until.getTime() - since.getTime() > MAX_DAYS * DAY_MS)
    throw invalid(`querystring/from and to are more than ${MAX_DAYS} days apart.`)
  return { since, until }
}

/**
 * Only names that both this process and the database know; an offset would have the other sign in the database. So would
 * some abbreviations mean another place there: IST is Kolkata here and two hours ahead of UTC there.
 */
function readTimeZone({ time_zone = 'UTC' }: SpendQuery): string {
  try {
    const { timeZone } = new Intl.DateTimeFormat('en', { timeZone: time_zone }).resolvedOptions()
    return time_zone.includes('/') ? time_zone : timeZone
  } catch {
    throw unknownZone(time_zone)
  }
}

const unknownZone = (name: string) => invalid(`querystring/time_zone: '${name}' is not the name of a time zone.`)

/** Some names of old are known here and not to the database. */
const isUnknownZone = (error: unknown) => (error as { code?: string }).code === '22023'

/** A day begins at midnight UTC. A day that the calendar does not have would otherwise become another one. */
function readTime(name: string, text: string): Date {
  const time = new Date(text)
  const [day] = text.split('T')
  if (Number.isNaN(time.getTime()) || Number.isNaN(Date.parse(day!)) || !new Date(day!).toISOString().startsWith(day!))
    throw invalid(`querystring/${name} is not a date or a date and time.`)
  return time
}

function readCursor(cursor: string, length: number): string[] {
  let place: unknown
  try {
    place = JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8'))
  } catch {}
  const isPlace =
    Array.isArray(place) &&
    place.length === length &&
    place.every((part) => typeof part === 'string' && !part.includes('\u0000'))
  if (!isPlace) throw invalid('querystring/cursor is not the next_cursor of a page of this report.')
  return place as string[]
}
