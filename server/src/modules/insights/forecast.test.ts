import fc from 'fast-check'
import { expect, test } from 'vitest'
import { addSample, forecastExhaustion, type Sample } from './forecast.ts'

const start = Date.UTC(2026, 10, 16, 12)
const MINUTE = 60_000
const steady = (count: number, perMinute: bigint): Sample[] =>
  Array.from({ length: count }, (_, n) => [start + n * MINUTE, BigInt(n) * perMinute])
const at = (samples: Sample[]) => new Date(samples.at(-1)![0])

test('an even pace gives an exact forecast with almost no interval', () => {
  const samples = steady(11, 10_000n)
  const forecast = forecastExhaustion(samples, 400_000n, at(samples))!
  expect(forecast.ratePerHourMicro).toBe(600_000n)
  // 100,000 of 400,000 are spent after ten minutes; at 10,000 a minute the rest lasts thirty minutes.
  expect(forecast.exhaustedAt.getTime()).toBe(start + 40 * MINUTE)
  expect(Math.abs(forecast.earliest.getTime() - forecast.exhaustedAt.getTime())).toBeLessThan(1_000)
  expect(Math.abs(forecast.latest!.getTime() - forecast.exhaustedAt.getTime())).toBeLessThan(1_000)
})

test('too little history gives no forecast', () => {
  const now = new Date(start)
  expect(forecastExhaustion([], 1n, now)).toBeUndefined()
  expect(forecastExhaustion(steady(2, 10n), 100n, now)).toBeUndefined()
  expect(forecastExhaustion(steady(5, 0n), 100n, now)).toBeUndefined()
})

test('a burst of six seconds gives no forecast, however much time has passed since', () => {
  const burst: Sample[] = [
    [start, 0n],
    [start + 2_000, 30_000n],
    [start + 4_000, 60_000n],
    [start + 6_000, 90_000n],
  ]
  for (const minutes of [1, 10, 600]) {
    const now = start + minutes * MINUTE
    expect(forecastExhaustion([...burst, [now, 90_000n]], 100_000n, new Date(now))).toBeUndefined()
  }
})

test('a limit that is already reached is forecast for now', () => {
  const samples = steady(5, 100n)
  const now = at(samples)
  expect(forecastExhaustion(samples, 400n, now)).toMatchObject({ exhaustedAt: now, earliest: now, latest: now })
})

test('spending in bursts has a wider interval than the same spending at an even pace', () => {
  const bursts: Sample[] = Array.from({ length: 11 }, (_, n) => [
    start + n * MINUTE,
    n < 5 ? 0n : n < 10 ? 50_000n : 100_000n,
  ])
  const even = forecastExhaustion(steady(11, 10_000n), 1_000_000n, at(bursts))!
  const uneven = forecastExhaustion(bursts, 1_000_000n, at(bursts))!
  expect(uneven.exhaustedAt).toEqual(even.exhaustedAt)
  expect(uneven.earliest.getTime()).toBeLessThan(even.earliest.getTime())
  expect(uneven.latest?.getTime() ?? Number.POSITIVE_INFINITY).toBeGreaterThan(even.latest!.getTime())
})

test('the interval contains the forecast, and a larger limit is never reached earlier', () => {
  const history = fc.array(fc.tuple(fc.integer({ min: 1_000, max: 600_000 }), fc.bigInt(0n, 50_000n)), {
    minLength: 3,
    maxLength: 40,
  })
  fc.assert(
    fc.property(history, fc.bigInt(1n, 10_000_000n), fc.bigInt(0n, 10_000_000n), (steps, remaining, extra) => {
      let time = start
      let used = 0n
      const samples = steps.map(([ms, micro]): Sample => {
        time += ms
        used += micro
        return [time, used]
      })
      const near = forecastExhaustion(samples, used + remaining, new Date(time))
      const far = forecastExhaustion(samples, used + remaining + extra, new Date(time))
      if (!near || !far) return
      expect(near.earliest.getTime()).toBeLessThanOrEqual(near.exhaustedAt.getTime() + 1)
      if (near.latest) expect(near.latest.getTime()).toBeGreaterThanOrEqual(near.exhaustedAt.getTime() - 1)
      expect(far.exhaustedAt.getTime()).toBeGreaterThanOrEqual(near.exhaustedAt.getTime())
      expect(far.earliest.getTime()).toBeGreaterThanOrEqual(near.earliest.getTime() - 1)
    }),
  )
})

test('the interval contains the true time in about nine of ten cases', () => {
  // Simulated purchases at random times and of random size, with a fixed seed.
  let state = 42
  const random = () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return state / 2_147_483_648
  }
  const purchase = () => ({ ms: -Math.log(1 - random()) * 20_000, micro: 5_000 + random() * 20_000 })
  let inside = 0
  const rounds = 400
  for (let round = 0; round < rounds; round += 1) {
    let time = start
    let used = 0
    let samples: Sample[] = [[start, 0n]]
    while (time < start + 60 * MINUTE) {
      const { ms, micro } = purchase()
      time += ms
      used += micro
      samples = addSample(samples, [Math.round(time), BigInt(Math.round(used))])
    }
    const limit = used + 2_000_000
    const forecast = forecastExhaustion(samples, BigInt(Math.round(limit)), new Date(time))!
    while (used < limit) {
      const { ms, micro } = purchase()
      time += ms
      used += micro
    }
    if (time >= forecast.earliest.getTime() && (!forecast.latest || time <= forecast.latest.getTime())) inside += 1
  }
  expect(inside / rounds).toBeGreaterThan(0.82)
  expect(inside / rounds).toBeLessThan(0.98)
})

test('a long history is thinned to a bounded number of samples and keeps its ends', () => {
  let samples: Sample[] = []
  for (let n = 0; n < 5_000; n += 1) samples = addSample(samples, [start + n, BigInt(n)])
  expect(samples.length).toBeLessThanOrEqual(64)
  expect(samples[0]).toEqual([start, 0n])
  expect(samples.at(-1)).toEqual([start + 4_999, 4_999n])
})
