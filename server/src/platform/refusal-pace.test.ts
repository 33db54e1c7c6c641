import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createRefusalPace } from './refusal-pace.ts'

const holds: number[] = []
const startPace = () => createRefusalPace(async (ms) => holds.push(ms))

beforeEach(() => {
  holds.length = 0
  vi.useFakeTimers({ toFake: ['performance'] })
})
afterEach(() => {
  vi.useRealTimers()
})

const refuse = async (pace: (subject: string) => Promise<void>, subject: string, count: number) => {
  for (let index = 0; index < count; index += 1) await pace(subject)
}

test('fifty refusals are given at once, those after them a hundred a second, and none later than a second', async () => {
  const pace = startPace()
  await refuse(pace, 'flood', 50)
  expect(holds).toEqual([])
  await refuse(pace, 'flood', 300)
  expect(holds.slice(0, 4)).toEqual([1, 10, 20, 30])
  expect(Math.max(...holds)).toBe(1_000)
})

test('another caller is not held, and one that paused is answered at once again', async () => {
  const pace = startPace()
  await refuse(pace, 'flood', 400)
  holds.length = 0
  await refuse(pace, 'quiet', 10)
  expect(holds).toEqual([])
  vi.advanceTimersByTime(1_600)
  await refuse(pace, 'flood', 50)
  expect(holds).toEqual([])
})
