import fc from 'fast-check'
import type pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Database } from '../../src/platform/db.ts'
import { createTestDatabase } from '../harness.ts'
import { callSet } from '../money/run-items.ts'

/**
 * Random batches of holds, compared with a model that admits the holders one after the other. A batch must give the same
 * answers, counters, holds and announcements as its holders one by one.
 */
let scratch: Awaited<ReturnType<typeof createTestDatabase>>
let database: Database
let client: pg.Client
beforeAll(async () => {
  scratch = await createTestDatabase()
  database = scratch.open(1)
  client = await database.connect()
  await client.query(`
    insert into tenants (id, org_name, email, created_at, updated_at) values ('ten_1', 'x', 'x@example.com', now(), now());
    create table holders (id text primary key, holds jsonb not null);
    create table calls (size int not null);
    create function hold_all(items jsonb[], repeated boolean) returns jsonb[] language plpgsql as $$
    declare
      held jsonb[] := hold_limits(array(select item->'holds' from unnest(items) with ordinality as listed(item, place) order by place), '2026-11-16T15:00:00Z');
    begin
      insert into calls values (cardinality(items));
      insert into holders select item->>'id', counted->'holds' from unnest(items, held) as listed(item, counted);
      return held;
    end $$;
    create function settle_all(items jsonb[], repeated boolean) returns jsonb[] language plpgsql as $$
    begin
      perform settle_holds(array_agg(holder.holds), array_agg((item->>'success')::boolean), array_agg((item->>'actual')::bigint))
      from unnest(items) as item join holders holder on holder.id = item->>'id';
      delete from holders where id in (select item->>'id' from unnest(items) as item);
      return array(select '{}'::jsonb from unnest(items));
    end $$;`)
})
afterAll(async () => {
  await client.end()
  await database.close()
  await scratch.drop()
})

const PERIODS = ['day:2026-11-15', 'day:2026-11-16']

/** Counters as governance defines them, except `payer`, whose limit comes with the hold. */
type Definition = { limit: number; soft: number | null; enforced: boolean; thresholds: number[] }
const initialDefinitions: Record<string, Definition> = {
  'budget:block': { limit: 10_000, soft: 6_000, enforced: true, thresholds: [3_000, 6_000, 8_000] },
  'budget:other': { limit: 4_000, soft: null, enforced: true, thresholds: [] },
  'policy:count': { limit: 12, soft: null, enforced: true, thresholds: [] },
  'policy:warn': { limit: 5_000, soft: 2_000, enforced: false, thresholds: [4_000, 7_000] },
}
const PAYER_LIMIT = 7_000

type Demand = { scope: string; period: string; amount: number; enforce: boolean; onSuccess: 'spend' | 'release' }
type Op =
  | { do: 'hold'; holders: Demand[][] }
  | { do: 'settle'; picks: number[]; success: boolean; share: number }
  | { do: 'define'; scope: string; limit: number; enforced: boolean }
  | { do: 'remove'; scope: string }

const demand = fc.record({
  scope: fc.constantFrom(...Object.keys(initialDefinitions), 'payer'),
  period: fc.constantFrom(...PERIODS),
  amount: fc.oneof(
    { weight: 4, arbitrary: fc.integer({ min: 0, max: 900 }) },
    // A large one that often does not fit.
    { weight: 1, arbitrary: fc.integer({ min: 3_000, max: 9_000 }) },
  ),
  enforce: fc.boolean(),
  onSuccess: fc.constantFrom('spend' as const, 'spend' as const, 'release' as const),
})
const holder = fc.uniqueArray(demand, { maxLength: 4, selector: ({ scope, period }) => `${scope} ${period}` })
const scopes = fc.constantFrom(...Object.keys(initialDefinitions))
const op: fc.Arbitrary<Op> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('hold' as const),
      holders: fc.array(holder, { minLength: 1, maxLength: 8 }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('settle' as const),
      picks: fc.array(fc.nat(30), { minLength: 1, maxLength: 8 }),
      success: fc.boolean(),
      share: fc.constantFrom(0, 0.4, 1, 2),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('define' as const),
      scope: scopes,
      limit: fc.constantFrom(500, 4_000, 12_000),
      enforced: fc.boolean(),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('remove' as const), scope: scopes }) },
)

type Hold = { scope: string; period: string; amount: number; onSuccess: string; measure: string }
type Counter = { spent: number; reserved: number; alerted: number }

class Model {
  definitions = structuredClone(initialDefinitions)
  counters = new Map<string, Counter>()
  holders = new Map<string, Hold[]>()
  announcements: string[] = []
  refusals = 0

  counter(scope: string, period: string): Counter {
    const name = `${scope} ${period}`
    if (!this.counters.has(name)) this.counters.set(name, { spent: 0, reserved: 0, alerted: 0 })
    return this.counters.get(name)!
  }

  /** The answer for one holder: its holds and the states of the counters, or the reason of the refusal. */
  hold(id: string, demands: Demand[]) {
    const counted = demands
      .filter(({ scope }) => scope === 'payer' || this.definitions[scope])
      .map((each) => ({ ...each, amount: each.scope === 'policy:count' ? 1 : each.amount }))
      .sort((a, b) => (`${a.scope} ${a.period}` < `${b.scope} ${b.period}` ? -1 : 1))
    for (const { scope, period, amount, enforce } of counted) {
      const definition = this.definitions[scope]
      const { spent, reserved } = this.counter(scope, period)
      const isEnforced = !definition || definition.enforced || enforce
      if (isEnforced && spent + reserved + amount > (definition?.limit ?? PAYER_LIMIT)) {
        this.refusals += 1
        return `no room in ${scope}`
      }
    }
    const states = []
    for (const { scope, period, amount } of counted) {
      const definition = this.definitions[scope]
      const counter = this.counter(scope, period)
      const before = counter.spent + counter.reserved
      counter.reserved += amount
      if (!definition) continue
      const used = before + amount
      states.push({
        scope,
        used_micro: `${before}`,
        over_limit: used > definition.limit,
        over_soft: definition.soft !== null && used > definition.soft,
      })
      const reached = Math.max(0, ...definition.thresholds.filter((each) => each <= used && each > counter.alerted))
      if (reached > 0) {
        counter.alerted = reached
        this.announcements.push(`${scope} ${period} ${reached}`)
      }
    }
    const holds = counted.map(({ scope, period, amount, onSuccess }) => ({
      scope,
      period,
      amount,
      onSuccess,
      measure: scope === 'policy:count' ? 'count' : 'money',
    }))
    this.holders.set(id, holds)
    return {
      holds: holds.map(({ amount, onSuccess, ...hold }) => ({
        ...hold,
        amount_micro: `${amount}`,
        on_success: onSuccess,
      })),
      states,
    }
  }

  settle(id: string, success: boolean, actual: number) {
    for (const { scope, period, amount, onSuccess, measure } of this.holders.get(id)!) {
      const counter = this.counter(scope, period)
      counter.reserved -= amount
      if (success && onSuccess === 'spend') counter.spent += measure === 'count' ? amount : Math.min(amount, actual)
    }
    this.holders.delete(id)
  }
}

let serial = 0
const toHoldItem = ({ scope, period, amount, enforce, onSuccess }: Demand) => ({
  scope,
  period,
  amount_micro: scope === 'policy:count' ? 1 : amount,
  on_success: onSuccess,
  measure: scope === 'policy:count' ? 'count' : 'money',
  on_refusal: { status: 429, reason: `no room in ${scope}`, detail: {} },
  ...(scope === 'payer' ? { limit_micro: PAYER_LIMIT } : { defined: true, enforce, event_id: `evt_${serial++}` }),
})

async function define(scope: string, { limit, soft, enforced, thresholds }: Definition) {
  const input = {
    scope,
    tenant_id: 'ten_1',
    limit_micro: `${limit}`,
    soft_limit_micro: soft === null ? null : `${soft}`,
    enforced,
    thresholds_micro: thresholds.map(String),
    subject: { scope },
  }
  await client.query('select define_limit($1)', [JSON.stringify(input)])
}

const byName = (a: object, b: object) => (JSON.stringify(sortKeys(a)) < JSON.stringify(sortKeys(b)) ? -1 : 1)
const sortKeys = (value: object) => Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
/** Holds and states have no order. */
const sorted = (answers: unknown[]) =>
  answers.map((answer) => {
    if (typeof answer === 'string') return answer
    const { holds, states } = answer as { holds: object[]; states: object[] }
    return { holds: [...holds].sort(byName), states: [...states].sort(byName) }
  })

async function apply(model: Model, step: Op) {
  if (step.do === 'define') {
    const definition = { ...initialDefinitions[step.scope]!, limit: step.limit, enforced: step.enforced }
    model.definitions[step.scope] = definition
    return define(step.scope, definition)
  }
  if (step.do === 'remove') {
    delete model.definitions[step.scope]
    return client.query('delete from limit_definitions where scope = $1', [step.scope])
  }
  if (step.do === 'hold') {
    const items = step.holders.map((demands) => ({ id: `holder_${serial++}`, holds: demands.map(toHoldItem) }))
    const expected = items.map(({ id }, index) => model.hold(id, step.holders[index]!))
    return expect(sorted(await callSet(client, 'hold_all', items))).toEqual(sorted(expected))
  }
  const ids = [...model.holders.keys()]
  const picked = [...new Set(step.picks.map((pick) => ids[pick % ids.length]))].filter((id) => id !== undefined)
  if (picked.length === 0) return
  const items = picked.map((id, index) => ({ id, success: step.success, actual: Math.round(step.share * 500 * index) }))
  for (const { id, success, actual } of items) model.settle(id, success, actual)
  expect(await callSet(client, 'settle_all', items)).toEqual(items.map(() => ({})))
}

async function compare(model: Model) {
  const { rows: counters } = await client.query(
    `select scope || ' ' || period as name, spent_micro, reserved_micro, alerted_micro from limits where spent_micro + reserved_micro + alerted_micro > 0`,
  )
  const expected = [...model.counters]
    .filter(([, { spent, reserved, alerted }]) => spent + reserved + alerted > 0)
    .sort(([a], [b]) => (a < b ? -1 : 1))
  expect(counters.sort((a, b) => (a.name < b.name ? -1 : 1))).toEqual(
    expected.map(([name, { spent, reserved, alerted }]) => ({
      name,
      spent_micro: BigInt(spent),
      reserved_micro: BigInt(reserved),
      alerted_micro: BigInt(alerted),
    })),
  )
  const { rows: drift } = await client.query(
    `select counter.scope from limits counter left join (
       select hold.value->>'scope' as scope, hold.value->>'period' as period, sum((hold.value->>'amount_micro')::bigint) as amount
       from holders cross join jsonb_array_elements(holders.holds) as hold(value) group by 1, 2
     ) held using (scope, period) where counter.reserved_micro <> coalesce(held.amount, 0)`,
  )
  expect(drift).toEqual([])
  const { rows: announcements } = await client.query<{ name: string }>(
    `select event.value#>>'{data,scope}' || ' ' || (event.value#>>'{data,period}') || ' ' || (event.value#>>'{data,threshold}') as name
     from journal cross join jsonb_array_elements(journal.events) as event(value) order by journal.id`,
  )
  expect(announcements.map(({ name }) => name).sort()).toEqual([...model.announcements].sort())
}

test('random batches of holds end like the same holds one by one', async () => {
  let refusals = 0
  await fc.assert(
    fc.asyncProperty(fc.array(op, { minLength: 5, maxLength: 25 }), async (history) => {
      await client.query('truncate limits, limit_definitions, holders, journal cascade')
      for (const [scope, definition] of Object.entries(initialDefinitions)) await define(scope, definition)
      const model = new Model()
      for (const step of history) {
        await apply(model, step)
        await compare(model)
      }
      refusals += model.refusals
    }),
    { numRuns: 40, seed: 13, endOnFailure: true },
  )
  expect(refusals).toBeGreaterThan(100)
  // Enough batches were held as a whole, and enough fell apart into single holders.
  const { rows } = await client.query(
    'select count(*) filter (where size > 1) as batches, count(*) filter (where size = 1) as singles from calls',
  )
  expect(rows[0].batches).toBeGreaterThan(50n)
  expect(rows[0].singles).toBeGreaterThan(100n)
})

test('a hold that does not fit is refused alone, and the small ones before and behind it are held', async () => {
  await client.query('truncate limits, limit_definitions, holders, journal cascade')
  await define('budget:block', initialDefinitions['budget:block']!)
  const amounts = [2_000, 9_000, 3_000, 5_000, 4_999, 1]
  const items = amounts.map((amount) => ({
    id: `holder_${serial++}`,
    holds: [toHoldItem({ scope: 'budget:block', period: PERIODS[0]!, amount, enforce: false, onSuccess: 'spend' })],
  }))
  const answers = await callSet(client, 'hold_all', items)
  const used = answers.map((answer) =>
    typeof answer === 'string' ? answer : (answer as { states: { used_micro: string }[] }).states[0]!.used_micro,
  )
  expect(used).toEqual([
    '0',
    'no room in budget:block',
    '2000',
    '5000',
    'no room in budget:block',
    'no room in budget:block',
  ])
  const { rows } = await client.query('select reserved_micro, alerted_micro from limits')
  expect(rows).toEqual([{ reserved_micro: 10_000n, alerted_micro: 8_000n }])
})

test('a threshold is announced once, by the holder that reached it, and the highest only when several are passed', async () => {
  await client.query('truncate limits, limit_definitions, holders, journal cascade')
  await define('budget:block', initialDefinitions['budget:block']!)
  const hold = async (amounts: number[]) => {
    const items = amounts.map((amount) => ({
      id: `holder_${serial++}`,
      holds: [toHoldItem({ scope: 'budget:block', period: PERIODS[0]!, amount, enforce: false, onSuccess: 'release' })],
    }))
    expect((await callSet(client, 'hold_all', items)).every((answer) => typeof answer === 'object')).toBe(true)
    const { rows } = await client.query(
      `delete from journal returning events#>>'{0,id}' as id, events#>>'{0,data,threshold}' as threshold, events#>>'{0,data,reserved}' as reserved`,
    )
    return rows.map((row) => ({
      ...row,
      id: items.findIndex((item) => 'event_id' in item.holds[0]! && item.holds[0].event_id === row.id),
    }))
  }
  expect(await hold([1_000, 1_999])).toEqual([])
  expect(await hold([0, 1, 100])).toEqual([{ id: 1, threshold: '3000', reserved: '3000' }])
  expect(await hold([100, 4_800, 10])).toEqual([{ id: 1, threshold: '8000', reserved: '8000' }])
  // Released and reached again in the same window: not announced again.
  const { rows } = await client.query<{ id: string }>('select id from holders')
  await callSet(
    client,
    'settle_all',
    rows.map(({ id }) => ({ id, success: true, actual: null })),
  )
  expect(await hold([4_000, 4_500])).toEqual([])
})
