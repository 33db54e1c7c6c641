import { expect, test } from 'vitest'
import { createTestClock } from '../../test/clock.ts'
import { type CircuitBreaker, createCircuitBreaker } from './circuit-breaker.ts'

const openBreaker = (options: { probeTimeoutMs?: number } = {}) => {
  const clock = createTestClock()
  const breaker = createCircuitBreaker({ clock, failureThreshold: 3, coolDownMs: 10_000, ...options })
  for (let n = 0; n < 3; n++) breaker.recordFailure()
  return { breaker, clock }
}

test('it opens after the threshold of failures in a row, and a success starts the count again', () => {
  const breaker = createCircuitBreaker({ clock: createTestClock(), failureThreshold: 3, coolDownMs: 10_000 })
  breaker.recordFailure()
  breaker.recordFailure()
  breaker.recordSuccess()
  breaker.recordFailure()
  breaker.recordFailure()
  expect(breaker.allowsCall()).toBe(true)
  breaker.recordFailure()
  expect(breaker.allowsCall()).toBe(false)
})

const callTimes = (breaker: CircuitBreaker, count: number) => Array.from({ length: count }, () => breaker.allowsCall())

test('after the cool-down two probes are allowed and no third', () => {
  const { breaker, clock } = openBreaker()
  clock.advance(9_999)
  expect(breaker.allowsCall()).toBe(false)
  clock.advance(1)
  expect(callTimes(breaker, 3)).toEqual([true, true, false])
})

test('after the cool-down one probe is allowed for every ten calls that were refused, and 32 at most', () => {
  for (const [refused, probes] of [
    [45, 5],
    [100, 10],
    [10_000, 32],
  ] as const) {
    const { breaker, clock } = openBreaker()
    expect(callTimes(breaker, refused)).not.toContain(true)
    clock.advance(10_000)
    expect(callTimes(breaker, probes)).not.toContain(false)
    expect(breaker.allowsCall()).toBe(false)
  }
})

test('one probe that gets no answer does not keep the breaker open', () => {
  const { breaker, clock } = openBreaker()
  clock.advance(10_000)
  // The first one hangs.
  expect(callTimes(breaker, 2)).toEqual([true, true])
  breaker.recordSuccess()
  expect(callTimes(breaker, 5)).not.toContain(false)
})

test('a probe that succeeds closes the breaker', () => {
  const { breaker, clock } = openBreaker()
  clock.advance(10_000)
  breaker.allowsCall()
  breaker.recordSuccess()
  expect([breaker.allowsCall(), breaker.allowsCall()]).toEqual([true, true])
})

test('a probe that fails opens the breaker for another cool-down', () => {
  const { breaker, clock } = openBreaker()
  clock.advance(10_000)
  breaker.allowsCall()
  clock.advance(500)
  breaker.recordFailure()
  clock.advance(9_999)
  expect(breaker.allowsCall()).toBe(false)
  clock.advance(1)
  expect(breaker.allowsCall()).toBe(true)
})

test('an abandoned probe lets the next call probe at once', () => {
  const { breaker, clock } = openBreaker()
  clock.advance(10_000)
  callTimes(breaker, 2)
  breaker.abandonProbe()
  expect(callTimes(breaker, 2)).toEqual([true, false])
})

test('a probe without an outcome blocks others until its timeout, or indefinitely without a timeout', () => {
  const timed = openBreaker({ probeTimeoutMs: 10_000 })
  timed.clock.advance(10_000)
  callTimes(timed.breaker, 2)
  timed.clock.advance(9_999)
  expect(timed.breaker.allowsCall()).toBe(false)
  timed.clock.advance(1)
  expect(callTimes(timed.breaker, 3)).toEqual([true, true, false])

  const untimed = openBreaker()
  untimed.clock.advance(10_000)
  callTimes(untimed.breaker, 2)
  untimed.clock.advance(24 * 3_600_000)
  expect(untimed.breaker.allowsCall()).toBe(false)
})
