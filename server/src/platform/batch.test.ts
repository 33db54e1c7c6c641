import { Type } from 'typebox'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTestDatabase } from '../../test/harness.ts'
import { createSteps, type StepRefused } from './batch.ts'
import type { Database } from './db.ts'
import { defineStep } from './sql-step.ts'

const countOneStep = defineStep(
  'count_one',
  Type.Object({
    id: Type.Integer(),
    refuse: Type.Optional(Type.Boolean()),
    deadlock: Type.Optional(Type.Boolean()),
  }),
  Type.Object({ id: Type.Integer() }),
)

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
