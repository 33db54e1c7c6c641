import { expect, test } from 'vitest'
import type { Lane, LaneTask } from './lane.ts'
import { withTurns } from './lane-turns.ts'

test('a task begins at once beside a flood of another owner, of which some wait in front of the lane', async () => {
  const started: { owner: string | undefined; end: () => void }[] = []
  const lane: Lane = {
    name: 'held',
    mode: 'offline',
    execute: ({ owner }) =>
      new Promise((resolve) => {
        const end = () => resolve({ ok: false, reason: 'unavailable', message: '', retryable: true })
        started.push({ owner, end })
      }),
  }
  const { execute } = withTurns(lane, 4)
  const task = (owner: string): LaneTask => ({
    owner,
    runId: 'run_1',
    agentId: 'default',
    task: 'x',
    context: [],
    deadline: new Date(),
    signal: AbortSignal.timeout(1_000),
  })
  const flood = Array.from({ length: 100 }, () => execute(task('flood')))
  expect(started.map(({ owner }) => owner)).toEqual(['flood', 'flood'])
  const quiet = execute(task('quiet'))
  expect(started.at(-1)!.owner).toBe('quiet')
  for (let index = 0; index < started.length; index += 1) {
    started[index]!.end()
    await new Promise((resume) => setImmediate(resume))
  }
  expect(await Promise.all([...flood, quiet])).toHaveLength(101)
})
