import { afterEach, expect, test, vi } from 'vitest'
import { createRateLimiter, createSharedRateLimiter } from './rate-limit.ts'
import type { AdmittedRequests } from './supervised.ts'

afterEach(() => vi.useRealTimers())

test('processes that share a port count one limit, and a process alone may use all of it', async () => {
  vi.useFakeTimers()
  const clock = { now: () => new Date(0) }
  const listeners: ((requests: AdmittedRequests) => void)[] = []
  const limiters = [0, 1].map((index) =>
    createSharedRateLimiter(createRateLimiter(clock), {
      sendAdmitted(requests) {
        for (const [other, listen] of listeners.entries()) if (other !== index) listen(requests)
      },
      onAdmitted(listener) {
        listeners[index] = listener
      },
    }),
  )
  const takeAll = async (index: number) => {
    let admitted = 0
    while ((await limiters[index]!.take('key', 10)).allowed) admitted += 1
    return admitted
  }
  for (let request = 0; request < 4; request++) await limiters[0]!.take('key', 10)
  vi.advanceTimersByTime(100)
  expect(await takeAll(1)).toBe(6)
  vi.advanceTimersByTime(100)
  expect(await takeAll(0)).toBe(0)
  expect((await limiters[0]!.take('other', 10)).allowed).toBe(true)
  for (const limiter of limiters) await limiter.close()
})
