import { expect, test } from 'vitest'
import { StepRefused } from '../../platform/batch.ts'
import { DatabaseUnavailable } from '../../platform/database-errors.ts'
import { withRetries } from './step-retries.ts'

const lostReply = () => new Error('Connection terminated unexpectedly')
const refusedConnection = () => Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })

/** Runs a step that fails with these errors, one an attempt, and with the last one from then on. */
async function attempt(errors: readonly Error[], forMs = 30) {
  const attempts: boolean[] = []
  const step = withRetries(
    async (_item: unknown, _locks, options) => {
      attempts.push(options?.repeated ?? false)
      throw errors[attempts.length - 1] ?? errors.at(-1)
    },
    { forMs, pauseMs: 2 },
  )
  const outcome = await step({}, [], { owner: 'tenant' }).catch((error: unknown) => error)
  return { outcome, attempts }
}

test('a reply that was lost stays unknown, though the last attempts found no database', async () => {
  const lost = lostReply()
  const { outcome, attempts } = await attempt([lost, refusedConnection()], 10)
  expect(outcome).toBe(lost)
  expect(attempts.slice(0, 2)).toEqual([false, true])
})

test('a reply that was lost stays unknown, though the last attempt was turned away', async () => {
  const lost = lostReply()
  expect((await attempt([refusedConnection(), lost, new Error('Too much is waiting.')])).outcome).toBe(lost)
})

test('a refusal after a lost reply is an answer', async () => {
  const refused = new StepRefused(409, 'nonce_used', {})
  expect((await attempt([lostReply(), refused])).outcome).toBe(refused)
})

test('where nothing was sent, nothing was done', async () => {
  const last = new DatabaseUnavailable('No connection.')
  expect((await attempt([refusedConnection(), last], 10)).outcome).toBe(last)
})
