import { describe, expect, test } from 'vitest'
import { limits, selectRecalled, toRunMemory } from './run-memory.ts'

const memory = (n: number, length = 10) => ({
  id: `mem_${String(n).padStart(3, '0')}`,
  why: 'newest' as const,
  words: [],
  content: 'x'.repeat(length),
})
const idsOf = (memories: { id: string }[]) => memories.map(({ id }) => Number(id.slice(4)))

describe('selectRecalled', () => {
  test('selects the matching memories, then the newest, each once, and returns them oldest first', () => {
    const newest = [12, 11, 10, 9, 8, 7, 6, 5].map((n) => memory(n))
    expect(idsOf(selectRecalled([memory(3), memory(11), memory(1)], newest))).toEqual([1, 3, 7, 8, 9, 10, 11, 12])
  })

  test('leaves room for the newest memories when many match', () => {
    const matching = [1, 2, 3, 4, 5, 6, 7, 8].map((n) => memory(n))
    expect(idsOf(selectRecalled(matching, [memory(40), memory(39), memory(38), memory(37)]))).toEqual([
      1, 2, 3, 4, 5, 38, 39, 40,
    ])
  })

  test('stays within the character limit and selects only whole memories', () => {
    const large = [memory(1, 5_000), memory(2, 5_000), memory(3, 3_000)]
    const selected = selectRecalled(large, [memory(9, 1), memory(8, limits.contentCharacters)])
    expect(idsOf(selected)).toEqual([1, 3])
    expect(selectRecalled([memory(1, limits.contentCharacters)], [])).toHaveLength(1)
    expect(selectRecalled([], [])).toEqual([])
  })
})

describe('toRunMemory', () => {
  const run = {
    memoryId: 'mem_1',
    tenantId: 'ten_1',
    sessionId: 's',
    agentId: 'writer-v1',
    runId: 'run_1',
    task: 'Write.',
    output: 'Written.',
    verified: true,
    grade: 'A',
  }

  test('holds task and outcome, for ninety days', () => {
    expect(toRunMemory(run, new Date('2026-01-01T00:00:00Z'))).toMatchObject({
      id: 'mem_1',
      run_id: 'run_1',
      content: 'Task: Write.\n\nOutcome: Written.',
      metadata: { source: 'run', verified: true, grade: 'A' },
      expires_at: '2026-04-01T00:00:00.000Z',
    })
  })

  test('stays within the limit for any task and output, and splits no surrogate pair', () => {
    const { content } = toRunMemory(
      { ...run, task: `a${'\u{1f600}'.repeat(16_000)}`, output: `b${'\u{1f600}'.repeat(30_000)}` },
      new Date(),
    )
    expect(content.length).toBeLessThanOrEqual(limits.contentCharacters)
    expect(content.length).toBeGreaterThan(limits.contentCharacters - 200)
    expect(content.isWellFormed()).toBe(true)
  })
})
