import { expect, test } from 'vitest'
import { chooseLane, type Priority, type RoutableLane } from './choose-lane.ts'
import type { LaneMeasurement } from './measurements.ts'
import type { Router } from './model.ts'
import { createRouting } from './routing.ts'

const LANES: RoutableLane[] = [
  { agentId: 'comedian-v1', category: 'entertainment', tier: 'starter', priceMicro: 10_000n, status: 'active' },
  { agentId: 'writer-v1', category: 'content', tier: 'standard', priceMicro: 13_000n, status: 'active' },
  { agentId: 'support-v1', category: 'support', tier: 'standard', priceMicro: 11_000n, status: 'active' },
  { agentId: 'analyst-v1', category: 'analysis', tier: 'pro', priceMicro: 25_000n, status: 'active' },
  { agentId: 'coder-v1', category: 'code', tier: 'expert', priceMicro: 25_000n, status: 'active' },
  { agentId: 'strategist-v1', category: 'strategy', tier: 'expert', priceMicro: 25_000n, status: 'active' },
  { agentId: 'researcher-v2', category: 'research', tier: 'expert', priceMicro: 23_000n, status: 'active' },
  { agentId: 'default', category: 'fallback', tier: 'starter', priceMicro: 10_000n, status: 'active' },
]

const routing = createRouting({ catalog: { all: () => LANES.slice(0, 7), fallback: () => LANES[7]! } })
const choose = (task: string, request: Omit<Parameters<typeof routing.choose>[0], 'task'> = {}) =>
  routing.choose({ task, ...request })

test('a clear task goes to its lane, with signals and a reason against every other lane', () => {
  const choice = choose('Write a Python function that parses a CSV file and returns the rows as dicts')
  expect(choice).toMatchObject({
    agentId: 'coder-v1',
    priceMicro: 25_000n,
    posture: 'confident',
    routingVersion: routing.version,
  })
  expect(choice.reason).toMatch(/^Clearly code work/)
  expect(choice.signals.length).toBeGreaterThan(0)
  expect(choice.alternatives.map((alternative) => alternative.agent_id).sort()).toEqual(
    LANES.map((lane) => lane.agentId)
      .filter((id) => id !== 'coder-v1')
      .sort(),
  )
  for (const alternative of choice.alternatives) expect(alternative.why_not).toMatch(/\.$/)
})

test('a vague task goes to the fallback lane', () => {
  for (const task of ['hello', 'asdf', 'do the thing', '???'])
    expect(choose(task)).toMatchObject({ agentId: 'default', posture: 'fallback', priceMicro: 10_000n })
})

test('an explicit lane is used, and an unknown one is reported', () => {
  expect(choose('Tell me a joke', { agentId: 'analyst-v1' })).toMatchObject({
    agentId: 'analyst-v1',
    posture: 'explicit',
    priceMicro: 25_000n,
  })
  expect(choose('Tell me a joke', { agentId: 'default' })).toMatchObject({ agentId: 'default', posture: 'explicit' })
  expect(choose('Tell me a joke', { agentId: 'plumber-v9' })).toMatchObject({ agentId: null, problem: 'unknown_agent' })
})

test('a cost limit is kept: the best lane within it is chosen, and the alternatives say what was excluded', () => {
  const choice = choose('Debug this TypeScript compile error in my function', {
    constraints: { maxCostMicro: 13_000n },
  })
  expect(choice.agentId).not.toBe('coder-v1')
  expect(choice).toMatchObject({ posture: 'constrained' })
  expect(choice.alternatives.find((alternative) => alternative.agent_id === 'coder-v1')?.why_not).toBe(
    'It costs 0.025 USDC, above the limit of 0.013.',
  )
})

test('a limit below every price chooses nothing', () => {
  expect(choose('Debug this', { constraints: { maxCostMicro: 9_999n } })).toMatchObject({
    agentId: null,
    problem: 'no_lane_fits',
  })
  expect(choose('Debug this', { agentId: 'coder-v1', constraints: { maxCostMicro: 20_000n } })).toMatchObject({
    agentId: null,
    problem: 'no_lane_fits',
  })
})

test('a category restricts the choice to its lanes', () => {
  expect(choose('Tell me a joke', { constraints: { category: 'research' } })).toMatchObject({
    agentId: 'researcher-v2',
  })
  expect(choose('Tell me a joke', { constraints: { category: 'fallback' } })).toMatchObject({ agentId: 'default' })
  expect(choose('Tell me a joke', { constraints: { category: 'astrology' } })).toMatchObject({ agentId: null })
})

test('a priority never selects a lane that cannot do the task', () => {
  const task = 'Fix the failing unit test in my Rust parser'
  for (const priority of ['cheapest', 'balanced', 'quality', 'fastest'] as const) {
    expect(choose(task, { constraints: { priority } })).toMatchObject({ agentId: 'coder-v1' })
  }
})

test('a paused lane is not chosen', () => {
  const lanes = LANES.map((lane) => (lane.agentId === 'coder-v1' ? { ...lane, status: 'paused' } : lane))
  expect(routing.choose({ task: 'Fix the failing unit test in my Rust parser' }, lanes)).toMatchObject({
    posture: 'constrained',
  })
})

test('the same task gives the same choice', () => {
  const task = 'Compare the evidence on cold showers and immunity'
  expect(choose(task)).toEqual(choose(task))
})

/** More than one lane is likely, so that a priority has something to choose from. */
const TORN_TASK = 'Write a blog article that analyzes the trend of our numbers'

const measurement = (agent_id: string, values: Partial<LaneMeasurement> = {}): LaneMeasurement => ({
  agent_id,
  median_ms: 100,
  runs: 50,
  success_low: 9000,
  receipts: 50,
  ...values,
})

const chooseBy = (priority: Priority, lanes: readonly LaneMeasurement[] | undefined, task = TORN_TASK) =>
  chooseLane(tornRouter, { task, constraints: { priority } }, LANES, lanes && { version: 'abc', lanes })

/** Says that two lanes are nearly equally likely and a third is not, whatever the task is. */
const tornRouter: Router = {
  version: 'linear-2.test',
  threshold: 0.2,
  predict: () => ({
    scores: [
      { agentId: 'writer-v1', probability: 0.5 },
      { agentId: 'analyst-v1', probability: 0.4 },
      { agentId: 'comedian-v1', probability: 0.1 },
    ],
    signals: [],
  }),
  logits: () => [],
}

test('fastest takes the lowest measured latency of the likely lanes, quality the verified success rate, and the reason says so', () => {
  const lanes = [
    measurement('writer-v1', { median_ms: 900, success_low: 6000 }),
    measurement('analyst-v1', { median_ms: 41, success_low: 9500 }),
    measurement('comedian-v1', { median_ms: 1, success_low: 9999 }),
  ]
  const fastest = chooseBy('fastest', lanes)
  expect(fastest).toMatchObject({ agentId: 'analyst-v1', routingVersion: 'linear-2.test+abc' })
  expect(fastest.reason).toContain(
    "'fastest' was asked for: of 'writer-v1', 'analyst-v1' it has the lowest median latency, 41 ms over 50 runs.",
  )
  const quality = chooseBy('quality', lanes)
  expect(quality).toMatchObject({ agentId: 'analyst-v1', routingVersion: 'linear-2.test+abc' })
  expect(quality.reason).toContain('at least 95.0 % over 50 receipts')
  // The better fit outweighs a small difference in the success rate.
  expect(
    chooseBy('quality', [measurement('writer-v1'), measurement('analyst-v1', { success_low: 9100 })]),
  ).toMatchObject({
    agentId: 'writer-v1',
  })
})

test('cheapest takes the lowest price of the likely lanes and never a cheaper lane that does not fit', () => {
  const choice = chooseBy('cheapest', undefined)
  expect(choice).toMatchObject({ agentId: 'writer-v1', routingVersion: 'linear-2.test' })
  expect(choice.reason).toContain(
    "'cheapest' was asked for: of 'writer-v1', 'analyst-v1' it has the lowest price, 0.013 USDC.",
  )
})

test('a lane measured on fewer than ten runs does not win by them', () => {
  const few = measurement('analyst-v1', { median_ms: 1, runs: 9, success_low: 9999, receipts: 9 })
  for (const priority of ['fastest', 'quality'] as const) {
    const choice = chooseBy(priority, [measurement('writer-v1'), few])
    expect(choice.agentId).toBe('writer-v1')
    expect(choice.reason).toContain('fewer than two have been measured')
  }
  expect(chooseBy('fastest', undefined)).toMatchObject({ agentId: 'writer-v1', routingVersion: 'linear-2.test' })
})

test('the request is found wherever it stands in a long text', () => {
  const story = 'The river rose by three metres and the old mill stood in the water. We had breakfast and went on. '
  for (const [before, after] of [
    [0, 80],
    [40, 40],
    [80, 0],
  ] as const) {
    const task = `${story.repeat(before)}Please write a Python function that parses a CSV file. ${story.repeat(after)}`
    expect(choose(task)).toMatchObject({ agentId: 'coder-v1' })
  }
})

test('a run gets its lane, the record of the choice and the alternatives within its limit', () => {
  const route = routing.routeRun('Tell me a joke about tax forms', { max_cost_usdc: 0.02 })
  expect(route.agentId).toBe('comedian-v1')
  expect(route.route).toMatchObject({ agent_id: 'comedian-v1', routing_version: routing.version })
  expect(route.alternatives.map((alternative) => alternative.agentId)).toContain('writer-v1')
  expect(route.alternatives.some((alternative) => alternative.agentId === 'coder-v1')).toBe(false)
})

test('a run whose own limit excludes every lane is refused as over budget, before anything is charged', () => {
  expect(() => routing.routeRun('Tell me a joke', { max_cost_usdc: 0.001 })).toThrow(/at most 0.001 USDC/)
  expect(() => routing.routeRun('Tell me a joke', { max_cost_usdc: 0.0000001 })).toThrow(/six decimals/)
  // A limit that no lane meets is a budget refusal; an unknown category is an invalid request.
  expect(() => routing.routeRun('Tell me a joke', { category: 'juggling' })).toThrow(
    expect.objectContaining({ error: 'invalid_request', options: expect.objectContaining({ status: 400 }) }),
  )
  expect(routing.routeRun('Tell me a joke', { category: 'fallback' }).agentId).toBe('default')
})
