import { sql } from 'kysely'
import type { Tx } from '../../platform/db.ts'

export const spendDimensions = ['day', 'spender', 'team', 'lane', 'merchant', 'tag', 'key', 'rail'] as const
export type SpendDimension = (typeof spendDimensions)[number]

export type SpendSums = {
  amount_micro: bigint
  reported_micro: bigint
  count: bigint
  notional_micro: bigint
  trades: bigint
}
export type SpendGroup = SpendSums & { keys: (string | null)[]; place: string[] }

export type SpendFilter = {
  tenantId: string
  since: Date
  until: Date
  groupBy: readonly SpendDimension[]
  /** The name of the tag whose values are the groups. */
  tag: string | undefined
  /** The zone whose days are the groups. */
  timeZone: string
  limit: number
  /** The place of the last group of the page before. */
  after: readonly string[] | undefined
}

const column = (dimension: SpendDimension, { tag, timeZone }: Pick<SpendFilter, 'tag' | 'timeZone'>) => {
  switch (dimension) {
    case 'day':
      return sql`to_char(entry.at at time zone ${timeZone}, 'YYYY-MM-DD')`
    case 'tag':
      return sql`entry.tags->>${tag ?? ''}::text`
    case 'key':
      return sql`entry.key_id`
    default:
      return sql`entry.${sql.ref(dimension)}`
  }
}

type SpendRange = Pick<SpendFilter, 'tenantId' | 'since' | 'until'>

/** What was spent, by sums of hours where there are any. Without `isByTag` sums without tags are taken too; `dayZone` is the zone whose days are told apart. */
export const spendIn = (
  { tenantId, since, until }: SpendRange,
  { isByTag, dayZone }: { isByTag: boolean; dayZone: string | null },
) => sql`tenant_spend_sums(${tenantId}, ${since}, ${until}, ${isByTag}, ${dayZone})`

const sumColumns = sql`
  coalesce(sum(entry.amount_micro), 0)::bigint as amount_micro, sum(entry.reported_micro)::bigint as reported_micro, sum(entry.count)::bigint as count,
  coalesce(sum(entry.notional_micro), 0)::bigint as notional_micro, sum(entry.trades)::bigint as trades`

/**
 * One page of groups, and the sums of all of them. Groups are in the order of their names; those without a name come first.
 */
export async function readSpend(tx: Tx, filter: SpendFilter): Promise<{ groups: SpendGroup[]; totals: SpendSums }> {
  const { groupBy, limit, after, timeZone } = filter
  const dayZone = groupBy.includes('day') && timeZone !== 'UTC' ? timeZone : null
  const keys = sql`array[${sql.join(groupBy.map((dimension) => column(dimension, filter)))}]::text[]`
  const { rows } = await sql<{ totals: SpendSums; group: SpendGroup | null }>`
    with sums as materialized (
      select ${keys} as keys, ${sumColumns} from ${spendIn(filter, { isByTag: groupBy.includes('tag'), dayZone })} entry group by 1
    ), placed as (
      select sums.*, array(select coalesce('1' || key, '0') from unnest(sums.keys) with ordinality as named(key, place) order by place) collate "C" as place from sums
    ), page as (
      select * from placed where ${after === undefined ? sql`true` : sql`place > ${[...after]}::text[] collate "C"`} order by place limit ${limit}
    )
    select (select jsonb_build_object(
             'amount_micro', coalesce(sum(amount_micro), 0)::text, 'reported_micro', coalesce(sum(reported_micro), 0)::text, 'count', coalesce(sum(count), 0)::text,
             'notional_micro', coalesce(sum(notional_micro), 0)::text, 'trades', coalesce(sum(trades), 0)::text) from sums) as totals,
           case when page.keys is not null then jsonb_build_object(
             'keys', page.keys, 'place', page.place, 'amount_micro', page.amount_micro::text, 'reported_micro', page.reported_micro::text, 'count', page.count::text,
             'notional_micro', page.notional_micro::text, 'trades', page.trades::text) end as group
    from (select 1) as one left join page on true order by page.place
  `.execute(tx)
  const toSums = (sums: SpendSums): SpendSums => ({
    amount_micro: BigInt(sums.amount_micro),
    reported_micro: BigInt(sums.reported_micro),
    count: BigInt(sums.count),
    notional_micro: BigInt(sums.notional_micro),
    trades: BigInt(sums.trades),
  })
  return {
    totals: toSums(rows[0]!.totals),
    groups: rows.flatMap(({ group }) => (group ? [{ ...group, ...toSums(group) }] : [])),
  }
}

export type NamedSpend = SpendSums & {
  dimension: 'spender' | 'team' | 'key' | 'tag'
  /** The name of the tag; null for other dimensions. */
  tag: string | null
  value: string | null
}

/** The groups of each dimension, the largest first and at most `limit` of each: those of names, or those of tags. */
export async function readSpendByName(
  tx: Tx,
  filter: SpendRange & { limit: number; isByTag: boolean },
): Promise<NamedSpend[]> {
  const names = filter.isByTag
    ? sql`select 'tag', tag.key, tag.value from jsonb_each_text(coalesce(entry.tags, '{}')) tag`
    : sql`values ('spender', null, entry.spender), ('team', null, entry.team), ('key', null, entry.key_id)`
  const { rows } = await sql<NamedSpend>`
    with named as (
      select name.dimension, name.tag, name.value, ${sumColumns}
      from ${spendIn(filter, { isByTag: filter.isByTag, dayZone: null })} entry cross join lateral (${names}) as name (dimension, tag, value)
      group by 1, 2, 3
    ), ranked as (
      select named.*, row_number() over (partition by dimension order by amount_micro desc, notional_micro desc, tag, value) as place from named
    )
    select dimension, tag, value, amount_micro, reported_micro, count, notional_micro, trades from ranked where place <= ${filter.limit} order by dimension, place
  `.execute(tx)
  return rows
}

/** How many runs of a range have no sums, or none with their tags, and would be added up one by one. */
export async function countRunsWithoutSums(tx: Tx, range: SpendRange, isByTag: boolean): Promise<bigint> {
  const { rows } = await sql<{ runs: bigint }>`
    select spend_runs_singly(${range.tenantId}, ${range.since}, ${range.until}, ${isByTag}) as runs
  `.execute(tx)
  return rows[0]!.runs
}

/** What a tenant has spent since the beginning of an hour. */
export async function readSpentMicro(tx: Tx, tenantId: string, since: Date, until: Date): Promise<bigint> {
  const { rows } = await sql<{ micro: bigint }>`
    select tenant_spent_micro(${tenantId}, ${since}, ${until}) as micro
  `.execute(tx)
  return rows[0]!.micro
}
