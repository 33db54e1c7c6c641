import { expect, test } from 'vitest'
import { didYouMean, suggest } from './suggest.ts'

test.each([
  ['taks', ['task', 'tags', 'budget'], 'task'],
  ['run.complete', ['run.failed', 'run.completed'], 'run.completed'],
  ['analyst', ['writer-v1', 'analyst-v1'], 'analyst-v1'],
  ['max_per_day', ['max_per_month_usdc', 'max_per_day_usdc'], 'max_per_day_usdc'],
  ['daily', ['run', 'day', 'week'], 'day'],
])('%s means one of %j', (word, candidates, meant) => expect(suggest(word, candidates)).toEqual([meant]))

test('nothing is suggested for a word that is like none, and a long one is cut', () => {
  expect(suggest('colour', ['task', 'budget'])).toEqual([])
  expect(didYouMean('x'.repeat(100_000), ['task'])).toBe('')
})
