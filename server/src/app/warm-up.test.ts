import { expect, test } from 'vitest'
import { readBenchmarkSuite } from '../adapters/lanes/benchmark.ts'
import { warmUp } from './warm-up.ts'

test.each(['offline', 'live'] as const)(
  'every task of the suite is read once, and others get turns in between (%s)',
  async (mode) => {
    const tasks: string[] = []
    let turns = 0
    let isOver = false
    const takeTurns = () => {
      turns++
      if (!isOver) setImmediate(takeTurns)
    }
    setImmediate(takeTurns)
    await warmUp({ chooseLane: (task) => tasks.push(task), mode })
    isOver = true
    expect(tasks).toEqual(readBenchmarkSuite().tasks.map(({ task }) => task))
    expect(turns).toBeGreaterThan(tasks.length)
  },
)
