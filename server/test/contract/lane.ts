import { describe, expect, test } from 'vitest'
import type { Lane, LaneResult, LaneTask } from '../../src/modules/runs/lane.ts'

/** The guarantees of every lane, whatever executes the task. `createLane` opens a lane that is able to answer. */
export function laneContract(name: string, createLane: () => Promise<{ lane: Lane; close(): Promise<void> }>): void {
  const AGENTS = [
    'comedian-v1',
    'writer-v1',
    'support-v1',
    'analyst-v1',
    'coder-v1',
    'strategist-v1',
    'researcher-v2',
    'default',
    'unknown-v7',
  ]

  const task = (overrides: Partial<LaneTask> = {}): LaneTask => ({
    runId: 'run_contract',
    agentId: 'default',
    task: 'Say something about rivers: 3, 4, 5.',
    context: [],
    deadline: new Date(Date.now() + 10_000),
    signal: new AbortController().signal,
    ...overrides,
  })

  const withLane = async (run: (lane: Lane) => Promise<void>) => {
    const { lane, close } = await createLane()
    try {
      await run(lane)
    } finally {
      await close()
    }
  }

  const formatResult = (result: LaneResult) => (result.ok ? result.output : `failed: ${result.message}`)

  describe(`lane contract: ${name}`, () => {
    test('every agent id gets an answer, even an unknown one', () =>
      withLane(async (lane) => {
        for (const agentId of AGENTS) {
          const result = await lane.execute(task({ agentId }))
          expect(result).toMatchObject({ ok: true })
          if (!result.ok) continue
          expect(result.output.trim().length).toBeGreaterThan(0)
          expect(result.output.length).toBeLessThanOrEqual(64_000)
          expect(result.provider).not.toBe('')
          expect(result.model).not.toBe('')
        }
      }))

    test('the result has the mode of the lane, and its usage', () =>
      withLane(async (lane) => {
        const result = await lane.execute(task())
        if (!result.ok) throw new Error(result.message)
        expect(['live', 'offline']).toContain(lane.mode)
        expect(result.mode).toBe(lane.mode)
        for (const figure of [result.usage.inputTokens, result.usage.outputTokens, result.usage.costUsd]) {
          expect(Number.isFinite(figure) && figure >= 0).toBe(true)
        }
        expect(result.fallbacks).toEqual([])
      }))

    test('the task is not modified', () =>
      withLane(async (lane) => {
        const input = task({ context: Object.freeze(['An earlier note.']) as readonly string[] })
        const before = JSON.stringify({ ...input, signal: undefined })
        await lane.execute(Object.freeze(input) as LaneTask)
        expect(JSON.stringify({ ...input, signal: undefined })).toBe(before)
      }))

    test('an aborted run is a retryable failure, not an exception', () =>
      withLane(async (lane) => {
        const result = await lane.execute(task({ signal: AbortSignal.abort(), deadline: new Date(Date.now() - 1) }))
        expect(result).toMatchObject({ ok: false, reason: 'timeout', retryable: true })
      }))

    test('concurrent runs do not mix their answers', () =>
      withLane(async (lane) => {
        const tasks = AGENTS.map((agentId, i) =>
          task({ agentId, task: `Say something about river number ${i}: ${i}, ${i + 1}, 9.` }),
        )
        const sequential: string[] = []
        for (const laneTask of tasks) sequential.push(formatResult(await lane.execute(laneTask)))
        const concurrent = await Promise.all(tasks.map((laneTask) => lane.execute(laneTask)))
        expect(concurrent.map(formatResult)).toEqual(sequential)
        expect(new Set(sequential).size).toBe(tasks.length)
      }))

    test('hostile text is answered or refused, and never throws', () =>
      withLane(async (lane) => {
        for (const text of [
          '\0\ud800',
          'x'.repeat(32_000),
          '```',
          '{"a":',
          '-- \n; drop table runs;',
          '💥'.repeat(4000),
        ]) {
          expect(typeof (await lane.execute(task({ task: text }))).ok).toBe('boolean')
        }
      }))
  })
}
