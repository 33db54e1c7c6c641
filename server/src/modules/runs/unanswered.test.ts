import { type CompiledQuery, DummyDriver, Kysely, PostgresAdapter, PostgresQueryCompiler } from 'kysely'
import { expect, test } from 'vitest'
import { systemClock } from '../../platform/clock.ts'
import type { Db } from '../../platform/db.ts'
import { createLog } from '../../platform/log.ts'
import type { Run } from './paid-unit.ts'
import { createAnswerOrNote } from './unanswered.ts'

/** A database that fails with these errors, one a statement, and then answers; with the ids that each statement named. */
function createFailingDatabase(errors: Error[]) {
  const named: string[][] = []
  class Driver extends DummyDriver {
    override async acquireConnection() {
      const executeQuery = async ({ parameters }: CompiledQuery) => {
        named.push(parameters.find((parameter): parameter is string[] => Array.isArray(parameter)) ?? [])
        const error = errors.shift()
        if (error) throw error
        return { rows: [] }
      }
      return { executeQuery, streamQuery: () => Promise.reject(new Error('not used')) as never }
    }
  }
  const db = new Kysely({
    dialect: {
      createAdapter: () => new PostgresAdapter(),
      createDriver: () => new Driver(),
      createQueryCompiler: () => new PostgresQueryCompiler(),
      createIntrospector: () => {
        throw new Error('not used')
      },
    },
  }) as unknown as Db
  return { db, named }
}

const lost = () => Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
const runIds = Array.from({ length: 50 }, (_, index) => `run_${index}`)
const loseRuns = (db: Db) => {
  const answerOrNote = createAnswerOrNote({ db, clock: systemClock, log: createLog('silent') })
  return Promise.all(
    runIds.map((id) => answerOrNote({ id, terms: { request_id: `req_${id}` } } as Run, Promise.reject(lost()))),
  )
}

test('fifty runs that an outage has left unanswered are noted by one statement, tried twice a second', async () => {
  const { db, named } = createFailingDatabase([lost(), lost()])
  const responses = await loseRuns(db)
  for (const [index, { status, body }] of responses.entries()) {
    expect(status).toBe(503)
    expect(JSON.parse(body)).toMatchObject({ run_id: runIds[index], charged: null, retryable: true })
  }
  await expect.poll(() => named.length, { timeout: 20_000 }).toBe(3)
  expect(named[0]).toEqual([runIds[0]])
  expect(named.slice(1)).toEqual([runIds, runIds])
  await new Promise((later) => setTimeout(later, 1_200))
  expect(named).toHaveLength(3)
})

test('runs that are lost after the others were noted are noted too', async () => {
  const { db, named } = createFailingDatabase([])
  const answerOrNote = createAnswerOrNote({ db, clock: systemClock, log: createLog('silent') })
  const lose = (id: string) => answerOrNote({ id, terms: {} } as Run, Promise.reject(lost()))
  await lose('run_first')
  await expect.poll(() => named).toEqual([['run_first']])
  await lose('run_second')
  await expect.poll(() => named).toEqual([['run_first'], ['run_second']])
})

test('an error that says nothing of an outage is thrown, and an answer is given as it is', async () => {
  const { db, named } = createFailingDatabase([])
  const answerOrNote = createAnswerOrNote({ db, clock: systemClock, log: createLog('silent') })
  const fault = new TypeError('a fault of ours')
  await expect(answerOrNote({ id: 'run_1' } as Run, Promise.reject(fault))).rejects.toBe(fault)
  const answer = { status: 200, headers: {}, body: '{}' }
  expect(await answerOrNote({ id: 'run_2' } as Run, Promise.resolve(answer))).toBe(answer)
  expect(named).toEqual([])
})
