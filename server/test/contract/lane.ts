import { describe, expect, test } from 'vitest'
import type { Lane, LaneResult, LaneTask } from '../../src/modules/runs/lane.ts'

/** What every lane must keep, whatever does the work behind it. `makeLane` gives a lane that is able to answer. */
export function laneContract(name: string, makeLane: () => Promise<{ lane: Lane; close(): Promise<void> }>): void {
  const AGENTS = [
    'comedian-v1',
    'writer-v1',
    'support-v1',
    'analyst-v1',
    'coder-v1',
    'strategist-v1',
    'researcher-v2',
    'default',
    'unheard-of-v7',
  ]

  const task = (over: Partial<LaneTask> = {}): LaneTask => ({
    runId: 'run_contract',
    agentId: 'default',
    task: 'Say something about rivers: 3, 4, 5.',
    context: [],
    deadline: new Date(Date.now() + 10_000),
    signal: new AbortController().signal,
    ...over,
  })

  const withLane = async (use: (lane: Lane) => Promise<void>) => {
    const { lane, close } = await makeLane()
    try {
      await use(lane)
    } finally {
      await close()
    }
  }

  const outputOf = (result: LaneResult) => (result.ok ? result.output : `failed: ${result.message}`)

  describe(`lane contract: ${name}`, () => {
    test('every agent id gets an answer, an unknown one too', () =>
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

    test('the result says the mode the lane promises, and counts what it used', () =>
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

    test('what the caller handed in is left as it was', () =>
      withLane(async (lane) => {
        const given = task({ context: Object.freeze(['An earlier note.']) as readonly string[] })
        const before = JSON.stringify({ ...given, signal: undefined })
        await lane.execute(Object.freeze(given) as LaneTask)
        expect(JSON.stringify({ ...given, signal: undefined })).toBe(before)
      }))

    test('a run that is already over is a failure that may be tried again, not an exception', () =>
      withLane(async (lane) => {
        const result = await lane.execute(task({ signal: AbortSignal.abort(), deadline: new Date(Date.now() - 1) }))
        expect(result).toMatchObject({ ok: false, reason: 'timeout', retryable: true })
      }))

    test('many runs at once keep their answers apart', () =>
      withLane(async (lane) => {
        const tasks = AGENTS.map((agentId, at) =>
          task({ agentId, task: `Say something about river number ${at}: ${at}, ${at + 1}, 9.` }),
        )
        const alone: string[] = []
        for (const one of tasks) alone.push(outputOf(await lane.execute(one)))
        const together = await Promise.all(tasks.map((one) => lane.execute(one)))
        expect(together.map(outputOf)).toEqual(alone)
        expect(new Set(alone).size).toBe(tasks.length)
      }))

    test('hostile text is answered or refused, never thrown', () =>
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
