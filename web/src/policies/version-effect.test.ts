import { expect, test } from 'vitest'
import { compareSimulations, describeEffect } from './version-effect.ts'

const run = (run_id: string, amount_usdc: number, outcome: string) => ({
  run_id,
  amount_usdc,
  simulated: { outcome, would_run: outcome === 'pass' },
})

test('only the runs whose outcome differs from that of the version in force count, with their money', () => {
  const present = [run('a', 0.1, 'blocked'), run('b', 0.2, 'blocked'), run('c', 0.3, 'pass'), run('d', 1, 'blocked')]
  const draft = [run('a', 0.1, 'pass'), run('b', 0.2, 'pass'), run('c', 0.3, 'review_required'), run('d', 1, 'blocked')]
  const effect = compareSimulations(present, draft)
  expect(effect).toEqual({
    allowed: { runs: 2, usdc: 0.3 },
    blocked: { runs: 0, usdc: 0 },
    review: { runs: 1, usdc: 0.3 },
  })
  expect(describeEffect(effect, 2)).toBe(
    'Against version 2, which is in force now, 2 runs (0.3 USDC) more would be allowed, 1 run (0.3 USDC) more would wait for a person.',
  )
})

test('a run that came between the two simulations is left out', () => {
  const effect = compareSimulations([], [run('a', 0.1, 'pass')])
  expect(describeEffect(effect, 1)).toBe('Against version 1, which is in force now, nothing would be different.')
})
