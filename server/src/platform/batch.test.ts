import { setTimeout as delay } from 'node:timers/promises'
import { Type } from 'typebox'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTestDatabase } from '../../test/harness.ts'
import { createSteps, type StepRefused, TURNS_BEFORE_BATCH } from './batch.ts'
import type { Database } from './db.ts'
import { defineSetStep, defineStep } from './sql-step.ts'

const countOneStep = defineStep(
  'count_one',
  Type.Object({
    id: Type.Integer(),
    refuse: Type.Optional(Type.Boolean()),
    deadlock: Type.Optional(Type.Boolean()),
  }),
  Type.Object({ id: Type.Integer() }),
)

const countAllStep = defineSetStep('count_all', countOneStep.input, countOneStep.answer)

let scratch: Awaited<ReturnType<typeof createTestDatabase>>
let database: Database
beforeAll(async () => {
  scratch = await createTestDatabase()
  database = scratch.open()
  await database.pool.query(`
    create table counted (id int primary key, batch xid8 not null);
    create function count_one(input jsonb) returns jsonb language plpgsql as $$
    begin
      insert into counted values ((input->>'id')::int, pg_current_xact_id());
      if (input->>'refuse')::boolean then perform refuse(429, 'no_room', jsonb_build_object('id', input->'id')); end if;
      if (input->>'deadlock')::boolean then raise exception using errcode = '40P01', message = 'deadlock'; end if;
      return jsonb_build_object('id', input->'id');
    end $$;
    create table set_calls (size int not null, repeated boolean not null);
    create function count_all(items jsonb[], repeated boolean) returns jsonb[] language plpgsql as $$
    begin
      insert into set_calls values (cardinality(items), repeated);
      return array(select count_one(item) from unnest(items) with ordinality as listed(item, place) order by place);
    end $$;`)
})
afterAll(async () => {
  await database.close()
  await scratch.drop()
})

test('many steps share one commit, and a refusal undoes one of them alone', async () => {
  const step = createSteps(database.pool)(countOneStep)
  const results = await Promise.allSettled(
    Array.from({ length: 50 }, (_, id) => step({ id, refuse: id % 10 === 3 }, [`item:${id}`])),
  )
  const refused = results.filter((result) => result.status === 'rejected').map((result) => result.reason as StepRefused)
  expect(refused).toHaveLength(5)
  for (const reason of refused) expect(reason).toMatchObject({ status: 429, message: 'no_room' })
  expect(refused[0]!.detail).toEqual({ id: 3 })
  const { rows } = await database.pool.query('select count(*)::int n, count(distinct batch)::int batches from counted')
  expect(rows[0].n).toBe(45)
  expect(rows[0].batches).toBeLessThanOrEqual(2)
})

test('when a whole batch fails, its items are tried again one by one', async () => {
  const step = createSteps(database.pool)(countOneStep)
  const results = await Promise.allSettled(
    Array.from({ length: 20 }, (_, index) => step({ id: 1_000 + index, deadlock: index === 7 }, [])),
  )
  expect(results.filter((result) => result.status === 'rejected')).toHaveLength(1)
  const { rows } = await database.pool.query('select count(*)::int n from counted where id >= 1000')
  expect(rows[0].n).toBe(19)
})

test('a lock held elsewhere makes a step wait, not fail', async () => {
  const holder = await database.connect()
  await holder.query('begin')
  await holder.query(`select pg_advisory_xact_lock(hashtextextended('shared', 0))`)
  const step = createSteps(database.pool)(countOneStep)
  let done = false
  const waiting = step({ id: 5_000 }, ['shared']).then(() => {
    done = true
  })
  await new Promise((resume) => setTimeout(resume, 100))
  expect(done).toBe(false)
  await holder.query('commit')
  await waiting
  expect(done).toBe(true)
  await holder.end()
})

const idsFrom = async (first: number) => {
  const { rows } = await database.pool.query<{ id: number; batch: string }>(
    'select id, batch::text from counted where id >= $1 and id < $1 + 1000 order by id',
    [first],
  )
  return { ids: rows.map(({ id }) => id), commits: new Set(rows.map(({ batch }) => batch)).size }
}
const setCalls = async () => {
  const { rows } = await database.pool.query<{ size: number; repeated: boolean }>('delete from set_calls returning *')
  return rows.map(({ size }) => size).sort((a, b) => a - b)
}

test('a set step takes all inputs in one call, and each gets its own answer', async () => {
  const step = createSteps(database.pool)(countAllStep)
  const answers = await Promise.all(Array.from({ length: 20 }, (_, index) => step({ id: 10_000 + index }, [])))
  expect(answers).toEqual(Array.from({ length: 20 }, (_, index) => ({ id: 10_000 + index })))
  // Everything that became ready in one turn shares a batch.
  expect(await setCalls()).toEqual([20])
  expect((await idsFrom(10_000)).commits).toBe(1)
})

test('a batch that is refused runs each input alone, in one commit, and only the refused ones fail', async () => {
  const step = createSteps(database.pool)(countAllStep)
  const results = await Promise.allSettled(
    Array.from({ length: 21 }, (_, index) => step({ id: 11_000 + index, refuse: index === 7 || index === 13 }, [])),
  )
  for (const [index, result] of results.entries())
    if (index === 7 || index === 13)
      expect(result).toMatchObject({
        status: 'rejected',
        reason: { name: 'StepRefused', status: 429, message: 'no_room', detail: { id: 11_000 + index } },
      })
    else expect(result).toEqual({ status: 'fulfilled', value: { id: 11_000 + index } })
  const { ids, commits } = await idsFrom(11_000)
  expect(ids).toHaveLength(19)
  expect(commits).toBe(1)
  // What the call of the whole batch wrote is undone; the calls of refused inputs are undone as well.
  expect(await setCalls()).toEqual(Array.from({ length: 19 }, () => 1))
})

test('an input that the database cannot store fails alone, like a refused one', async () => {
  const step = createSteps(database.pool)(countAllStep)
  const results = await Promise.allSettled([12_000, 12_001, 12_001, 12_002].map((id) => step({ id }, [])))
  expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled'])
  expect(results[2]).toMatchObject({ reason: { code: '23505' } })
  expect((await idsFrom(12_000)).ids).toEqual([12_000, 12_001, 12_002])
})

test.each([
  ['a step', countOneStep, 13_000],
  ['a set step', countAllStep, 14_000],
] as const)(
  '%s: an input whose lock is held elsewhere leaves its batch, and the others commit at once',
  async (_, definition, first) => {
    const holder = await database.connect()
    await holder.query('begin')
    await holder.query(`select pg_advisory_xact_lock(hashtextextended('slow tenant', 0))`)
    const step = createSteps(database.pool)(definition)
    const isSlow = (index: number) => index % 10 === 3
    const slow: Promise<unknown>[] = []
    const fast: Promise<unknown>[] = []
    for (let index = 0; index < 40; index += 1) {
      const locks = [`tenant:${index}`, isSlow(index) ? 'slow tenant' : 'fast tenant']
      const answer = step({ id: first + index }, locks)
      ;(isSlow(index) ? slow : fast).push(answer)
    }
    expect(await Promise.all(fast)).toHaveLength(36)
    expect((await idsFrom(first)).ids).toHaveLength(36)
    // Further inputs are not delayed either, while the slow ones are still waiting.
    await step({ id: first + 100 }, ['fast tenant'])
    expect((await idsFrom(first)).ids).toHaveLength(37)
    await holder.query('commit')
    await holder.end()
    expect(await Promise.all(slow)).toEqual([3, 13, 23, 33].map((index) => ({ id: first + index })))
    expect((await idsFrom(first)).ids).toHaveLength(41)
  },
)

test('several slow tenants wait side by side: one that is free again does not wait for the others', async () => {
  const holders = await Promise.all(
    ['slow a', 'slow b'].map(async (name) => {
      const holder = await database.connect()
      await holder.query('begin')
      await holder.query(`select pg_advisory_xact_lock(hashtextextended($1, 0))`, [name])
      return holder
    }),
  )
  const step = createSteps(database.pool)(countAllStep)
  const waiting = [
    step({ id: 15_000 }, ['slow a']),
    step({ id: 15_001 }, ['slow b']),
    step({ id: 15_002 }, ['slow b', 'slow a']),
  ]
  await step({ id: 15_003 }, ['other'])
  await holders[1]!.query('commit')
  expect(await waiting[1]).toEqual({ id: 15_001 })
  expect((await idsFrom(15_000)).ids).toEqual([15_001, 15_003])
  await holders[0]!.query('commit')
  await Promise.all(waiting)
  expect((await idsFrom(15_000)).ids).toEqual([15_000, 15_001, 15_002, 15_003])
  for (const holder of holders) await holder.end()
})

test('a lost connection rejects all inputs of a batch at once, and none is tried alone', async () => {
  let calls = 0
  const pool = {
    query: async () => {
      calls += 1
      throw Object.assign(new Error('Connection terminated unexpectedly'), { code: 'ECONNRESET' })
    },
  } as unknown as Database['pool']
  const step = createSteps(pool)(countAllStep)
  const answers = Array.from({ length: 30 }, (_, index) => step({ id: 16_000 + index }, []))
  for (const outcome of await Promise.allSettled(answers))
    expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'ECONNRESET' } })
  expect(calls).toBe(1)
})

test('an input that is repeated tells the set step so, also when its batch fails and it is tried alone', async () => {
  const step = createSteps(database.pool)(countAllStep)
  await setCalls()
  await Promise.all([step({ id: 17_000 }, []), step({ id: 17_001 }, []), step({ id: 17_002 }, [], { repeated: true })])
  const { rows } = await database.pool.query('delete from set_calls returning size, repeated')
  expect(rows).toEqual([{ size: 3, repeated: true }])
  const results = await Promise.allSettled([
    step({ id: 17_003 }, []),
    step({ id: 17_004, deadlock: true }, []),
    step({ id: 17_005 }, []),
  ])
  expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  const { rows: tried } = await database.pool.query('delete from set_calls returning size, repeated')
  // After a failed batch nobody knows whether an input was committed.
  expect(tried).toEqual([
    { size: 1, repeated: true },
    { size: 1, repeated: true },
  ])
})

test('inputs of several steps share a call and a commit; a refusal of one step leaves the others', async () => {
  const steps = createSteps(database.pool)
  const [one, all] = [steps(countOneStep), steps(countAllStep)]
  await setCalls()
  const results = await Promise.allSettled([
    one({ id: 18_000 }, []),
    all({ id: 18_001 }, []),
    one({ id: 18_002, refuse: true }, []),
    all({ id: 18_003 }, []),
    all({ id: 18_004, refuse: true }, []),
    one({ id: 18_005 }, []),
  ])
  expect(results.map((result) => (result.status === 'fulfilled' ? result.value.id : result.reason.detail.id))).toEqual([
    18_000, 18_001, 18_002, 18_003, 18_004, 18_005,
  ])
  expect(results.flatMap(({ status }, index) => (status === 'rejected' ? [index] : []))).toEqual([2, 4])
  expect(await idsFrom(18_000)).toEqual({ ids: [18_000, 18_001, 18_003, 18_005], commits: 1 })
  expect(await setCalls()).toEqual([1, 1])
})

/** A pool whose calls end when the test says so, to see what is sent while others are under way. */
function createHeldPool() {
  const calls: { ids: number[]; end: () => void }[] = []
  const pool = {
    query: ({ values }: { values: unknown[] }) =>
      new Promise((resolve) => {
        const inputs = JSON.parse(String(values[2])) as { id: number }[]
        const results = inputs.map(({ id }) => ({ ok: true, result: { id } }))
        calls.push({ ids: inputs.map(({ id }) => id), end: () => resolve({ rows: [{ results }] }) })
      }),
  } as unknown as Database['pool']
  /** Longer than the first input of a batch waits for others. */
  const turn = async () => {
    for (let count = 0; count <= TURNS_BEFORE_BATCH; count++) await new Promise((resume) => setImmediate(resume))
  }
  return { pool, calls, turn }
}

test('at most two batches are under way; the rest waits and shares the next one', async () => {
  const { pool, calls, turn } = createHeldPool()
  const step = createSteps(pool)(countAllStep)
  const answers: Promise<unknown>[] = []
  for (let id = 0; id < 5; id += 1) {
    answers.push(step({ id }, [`item:${id}`]))
    await turn()
  }
  expect(calls.map(({ ids }) => ids)).toEqual([[0], [1]])
  calls[1]!.end()
  await turn()
  expect(calls.map(({ ids }) => ids)).toEqual([[0], [1], [2, 3, 4]])
  for (const call of calls) call.end()
  expect(await Promise.all(answers)).toEqual([0, 1, 2, 3, 4].map((id) => ({ id })))
})

test.each([
  { owners: 'one owner alone', others: 0, batches: [[0], [1, 2]] },
  { owners: 'an owner beside others', others: 1, batches: [[0], [1], [2]] },
])(
  'what follows from a batch of $owners is in the next batch only when nobody else is about',
  async ({ others, batches }) => {
    const { pool, calls, turn } = createHeldPool()
    const step = createSteps(pool)(countAllStep)
    for (let id = 0; id < others; id += 1) {
      const answer = step({ id: 100 + id }, [`quiet:${id}`], { owner: `quiet ${id}` })
      await turn()
      calls.pop()!.end()
      await answer
    }
    const send = (id: number) => step({ id }, ['wallet'], { owner: 'busy' })
    const followUp = send(0).then(() => send(2))
    await turn()
    const second = send(1)
    await turn()
    for (let index = 0; index < batches.length; index += 1) {
      calls[index]!.end()
      await turn()
      await turn()
    }
    expect(calls.map(({ ids }) => ids)).toEqual(batches)
    expect(await Promise.all([second, followUp])).toEqual([{ id: 1 }, { id: 2 }])
  },
)

test('an input that needs a lock of a batch under way waits its turn, and the others do not wait for it', async () => {
  const { pool, calls, turn } = createHeldPool()
  const step = createSteps(pool)(countAllStep)
  const answers = [step({ id: 0 }, ['wallet:a', 'run:0'])]
  await turn()
  // 1 waits for wallet:a; 2 waits behind 1 for wallet:b, so that 1 keeps its turn; 3 is free.
  answers.push(step({ id: 1 }, ['wallet:a', 'wallet:b']), step({ id: 2 }, ['wallet:b']), step({ id: 3 }, ['wallet:c']))
  await turn()
  expect(calls.map(({ ids }) => ids)).toEqual([[0], [3]])
  calls[1]!.end()
  await turn()
  expect(calls.map(({ ids }) => ids)).toEqual([[0], [3]])
  calls[0]!.end()
  await turn()
  expect(calls.map(({ ids }) => ids)).toEqual([[0], [3], [1, 2]])
  calls[2]!.end()
  expect(await Promise.all(answers)).toEqual([0, 1, 2, 3].map((id) => ({ id })))
})

const manyLocks = (owner: string, count = 64) => Array.from({ length: count }, (_, index) => `limit:${owner}:${index}`)

test('owners take turns: an input of a quiet owner is in the next batch, however many a flood has waiting', async () => {
  const { pool, calls, turn } = createHeldPool()
  const step = createSteps(pool)(countAllStep)
  const answers = Array.from({ length: 400 }, (_, id) => step({ id }, [`item:${id}`], { owner: 'flood' }))
  await turn()
  expect(calls.map(({ ids }) => ids.length)).toEqual([64, 64])
  answers.push(step({ id: 1_000 }, ['quiet'], { owner: 'quiet' }))
  await turn()
  calls[0]!.end()
  await turn()
  expect(calls[2]!.ids).toContain(1_000)
  // While somebody else waits, the flood fills a quarter of a batch.
  expect(calls[2]!.ids).toHaveLength(17)
  for (let index = 0; index < calls.length; index += 1) {
    calls[index]!.end()
    await turn()
  }
  expect(await Promise.all(answers)).toHaveLength(401)
})

test('three floods share a batch evenly', async () => {
  const { pool, calls, turn } = createHeldPool()
  const step = createSteps(pool)(countAllStep)
  const first = [step({ id: 1 }, ['x']), step({ id: 2 }, ['x'])]
  await turn()
  for (const [number, owner] of ['a', 'b', 'c'].entries())
    for (let index = 0; index < 100; index += 1)
      void step({ id: 1_000 * (number + 1) + index }, [`${owner}:${index}`], { owner })
  await turn()
  calls[0]!.end()
  await turn()
  const shares = [1, 2, 3].map((number) => calls[1]!.ids.filter((id) => Math.floor(id / 1_000) === number).length)
  expect(shares).toEqual([16, 16, 16])
  for (let index = 0; index < calls.length; index += 1) {
    calls[index]!.end()
    await turn()
  }
  await Promise.all(first)
})

test('inputs with many locks share no batch with another owner, and leave one batch to the others', async () => {
  const { pool, calls, turn } = createHeldPool()
  const step = createSteps(pool)(countAllStep)
  const answers = [0, 1].flatMap((number) =>
    Array.from({ length: 40 }, (_, index) =>
      step({ id: 100 * number + index }, manyLocks(`heavy${number}:${index}`), { owner: `heavy${number}` }),
    ),
  )
  await turn()
  // 64 locks each: eight of them fill a batch, and only one such batch is under way.
  expect(calls.map(({ ids }) => ids)).toEqual([[0, 1, 2, 3, 4, 5, 6, 7]])
  answers.push(step({ id: 1_000 }, ['light'], { owner: 'light' }))
  await turn()
  expect(calls.map(({ ids }) => ids)).toEqual([[0, 1, 2, 3, 4, 5, 6, 7], [1_000]])
  calls[1]!.end()
  await delay(30)
  calls[0]!.end()
  await turn()
  // A rest as long as the batch took, in which others go on.
  expect(calls).toHaveLength(2)
  answers.push(step({ id: 1_001 }, ['light'], { owner: 'light' }))
  await turn()
  expect(calls[2]!.ids).toEqual([1_001])
  calls[2]!.end()
  // Then the other heavy owner has its turn.
  await expect.poll(() => calls[3]?.ids).toEqual([100, 101, 102, 103, 104, 105, 106, 107])
  const timer = setInterval(() => {
    for (const { end } of calls) end()
  }, 1)
  expect(await Promise.all(answers)).toHaveLength(82)
  clearInterval(timer)
})

test('the callers of a batch hear of their results in slices, and others get the event loop in between', async () => {
  const { pool, calls, turn } = createHeldPool()
  const step = createSteps(pool)(countAllStep)
  const order: (number | 'other')[] = []
  const answers = Array.from({ length: 40 }, async (_, id) => {
    await step({ id }, [`item:${id}`])
    if (id === 0) setImmediate(() => order.push('other'))
    order.push(id)
  })
  await turn()
  calls[0]!.end()
  await Promise.all(answers)
  expect(order.filter((entry) => entry !== 'other')).toEqual(Array.from({ length: 40 }, (_, id) => id))
  expect(order.indexOf('other')).toBeLessThanOrEqual(16)
})

test('inputs for a lock that another process has just held wait for it at once, and are not sent in vain before', async () => {
  const calls: { ids: number[]; waits: boolean }[] = []
  const pool = {
    query: async ({ values }: { values: unknown[] }) => {
      const inputs = JSON.parse(String(values[2])) as { id: number }[]
      const waits = values[5] as boolean
      calls.push({ ids: inputs.map(({ id }) => id), waits })
      const isHeld = ({ id }: { id: number }) => !waits && id < 10
      const results = inputs.map((input) =>
        isHeld(input) ? { busy: 'wallet' } : { ok: true, result: { id: input.id } },
      )
      return { rows: [{ results }] }
    },
  } as unknown as Database['pool']
  const step = createSteps(pool)(countAllStep)
  await step({ id: 0 }, ['run:0', 'wallet'])
  expect(calls.splice(0)).toEqual([
    { ids: [0], waits: false },
    { ids: [0], waits: true },
  ])
  await Promise.all([step({ id: 1 }, ['run:1', 'wallet']), step({ id: 2 }, ['wallet']), step({ id: 11 }, ['other'])])
  expect(calls.splice(0)).toEqual([
    { ids: [1, 2], waits: true },
    { ids: [11], waits: false },
  ])
  await delay(300)
  await step({ id: 12 }, ['wallet'])
  expect(calls).toEqual([{ ids: [12], waits: false }])
})
