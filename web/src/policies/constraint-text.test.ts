import { expect, test } from 'vitest'
import { describeConstraint } from './constraint-text.ts'

test('a limit is said in words', () => {
  expect(describeConstraint('max_per_run_usdc', 0.02)).toBe('Max per run: 0.02 USDC')
  expect(describeConstraint('allowed_agents', ['a', 'b'])).toBe('Allowed agents: a, b')
  expect(describeConstraint('allowed_agents', [])).toBe('Allowed agents: none')
  expect(describeConstraint('allowed_hours_utc', { start: 8, end: 18 })).toBe('Allowed hours (UTC): from 8 up to 18')
  expect(describeConstraint('require_mandate', true)).toBe('Require mandate: yes')
  expect(describeConstraint('max_runs_per_minute', 3)).toBe('Max runs per minute: 3')
})
