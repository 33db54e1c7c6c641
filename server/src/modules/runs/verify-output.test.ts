import { expect, test } from 'vitest'
import { readWish } from '../../adapters/lanes/offline/brief.ts'
import { createOfflineLane } from '../../adapters/lanes/offline.ts'
import { type VerifyOutputInput, verifyOutput } from './verify-output.ts'

const TASK =
  'Summarise what the text says about caffeine and sleep:\n\nCaffeine blocks adenosine in the brain. It cost the sleepers 41 minutes a night.'
const GOOD = 'Caffeine shortens sleep: “It cost the sleepers 41 minutes a night.”'

const input = (over: Partial<VerifyOutputInput> = {}): VerifyOutputInput => ({
  agentId: 'researcher-v2',
  task: TASK,
  output: GOOD,
  mode: 'live',
  ...over,
})

const failed = async (over: Partial<VerifyOutputInput>) =>
  (await verifyOutput(input(over))).checks.filter((check) => !check.passed).map((check) => check.name)

test('a sound answer is verified with grade A and a reason for every check', async () => {
  const result = await verifyOutput(input())
  expect(result).toMatchObject({ verified: true, score: 1, grade: 'A' })
  for (const check of result.checks) expect(check.reason).toMatch(/\.$/)
})

test('an answer that says it is something else than what was asked for is honest, and no A', async () => {
  const lane = createOfflineLane()
  for (const [agentId, task] of [
    ['writer-v1', 'Translate into French: Good morning, the train is late.'],
    ['researcher-v2', 'Who invented the turnstile?'],
    ['coder-v1', 'Write a function that parses dates'],
    ['analyst-v1', 'How large is the average household in Sweden?'],
  ] as const) {
    const signal = AbortSignal.timeout(10_000)
    const done = await lane.execute({ runId: 'r', agentId, task, context: [], deadline: new Date(), signal })
    if (!done.ok) throw new Error(done.message)
    const result = await verifyOutput({ agentId, task, output: done.output, mode: 'offline' })
    expect([agentId, result.verified, result.grade === 'A']).toEqual([agentId, true, false])
    expect(result.checks.find((check) => check.name === 'answered')?.passed).toBe(false)
  }
})

test('an empty output is never verified', async () => {
  expect(await verifyOutput(input({ output: ' \n—' }))).toMatchObject({ verified: false, grade: 'F' })
})

test('an endless output and one that is not text are not verified', async () => {
  expect(await verifyOutput(input({ output: `caffeine sleep ${'x'.repeat(70_000)}` }))).toMatchObject({
    verified: false,
    grade: 'F',
  })
  expect(await failed({ output: `${GOOD}\0` })).toEqual(['bounded'])
  expect(await failed({ output: `${GOOD}\ud800` })).toEqual(['bounded'])
})

test('an answer to another question is off task', async () => {
  expect(await failed({ output: 'Paris is the capital of France.' })).toEqual(['on_task'])
})

test('a refusal is not an answer', async () => {
  expect(await failed({ output: "I'm sorry, but I can't help with caffeine or sleep text." })).toContain('answered')
})

test('an invented quotation is found', async () => {
  expect(
    await failed({ output: 'The text says caffeine and sleep: “It saved the sleepers two hours every night.”' }),
  ).toEqual(['quotes_exist'])
})

test('a quotation from memory counts as the input', async () => {
  const output = 'On caffeine and sleep you said “I drink six cups every morning.”'
  expect(await failed({ output, context: ['I drink six cups every morning.'] })).toEqual([])
  expect(await failed({ output })).toEqual(['quotes_exist'])
})

test('a writer may let a character speak', async () => {
  expect(
    await failed({ agentId: 'writer-v1', output: 'Caffeine and sleep: “Nobody in this house will ever rest again.”' }),
  ).toEqual([])
})

test('JSON, lists and word limits that were asked for are checked', async () => {
  const task = 'Return JSON with the sleep minutes lost to caffeine'
  expect(await failed({ task, output: '{"minutes": 41, "cause": "caffeine sleep"}' })).toEqual([])
  expect(
    await failed({ task, output: '{"summary": "Forty-one minutes of sleep went to caffeine", "minutes": 41}' }),
  ).toEqual([])
  expect(await failed({ task, output: '```json\n{"minutes": 41, "note": "caffeine sleep"}\n```' })).toEqual([])
  expect(await failed({ task, output: 'Sure! {"minutes lost to caffeine and too little sleep": 41' })).toEqual([
    'format_kept',
  ])
  expect(await failed({ task: 'caffeine and sleep as bullet points', output: 'Caffeine costs sleep.' })).toEqual([
    'format_kept',
  ])
  expect(
    await failed({ task: 'caffeine and sleep in no more than 10 words', output: 'caffeine sleep '.repeat(8) }),
  ).toEqual(['format_kept'])
})

test('a task that speaks of JSON does not ask for it', async () => {
  const output = 'Plain words about JSON fields, parsing, passwords, cities and rent.'
  const kept = async (task: string) => !(await failed({ agentId: 'coder-v1', task, output })).includes('format_kept')
  for (const task of SPEAKS_OF_JSON)
    expect([task, await kept(task), readWish(task).form]).toEqual([task, true, 'markdown'])
  for (const task of WANTS_JSON) expect([task, await kept(task), readWish(task).form]).toEqual([task, false, 'json'])
})

const SPEAKS_OF_JSON = [
  'Why does my API return JSON with null fields?',
  'Parse this JSON object and explain it.',
  'What can go wrong in JSON parsing?',
  'Does fetch produce JSON by itself?',
]
const WANTS_JSON = [
  'Return JSON only. Should we rent?',
  'Reply in JSON: I forgot my password',
  'Summarise as JSON with keys a and b',
  'List three cities, return valid JSON.',
  'Please give me the result as JSON',
  'Answer in JSON format',
  'Count the words.\nOutput a JSON object.',
]

test('an offline output that cannot be repeated is not verified', async () => {
  expect(await verifyOutput(input({ mode: 'offline', reexecute: async () => GOOD }))).toMatchObject({
    verified: true,
    grade: 'A',
  })
  expect(await verifyOutput(input({ mode: 'offline', reexecute: async () => `${GOOD} ` }))).toMatchObject({
    verified: false,
    grade: 'F',
  })
})

test('a judge lowers a grade by degree, and one that is away changes nothing', async () => {
  const harsh = await verifyOutput(input({ judge: async () => ({ score: 0.1, reason: 'Thin.' }) }))
  expect(harsh.score).toBeLessThan(0.8)
  expect(harsh.checks.at(-1)).toMatchObject({ name: 'model_judge', passed: false, reason: 'Thin.' })
  const away = await verifyOutput(input({ judge: () => Promise.reject(new Error('gone')) }))
  expect(away).toMatchObject({ verified: true, score: 1 })
  const lying = await verifyOutput(input({ judge: async () => ({ score: Number.NaN, reason: 'x' }) }))
  expect(lying.score).toBeLessThan(0.8)
})

test('a task in a script without spaces between words is not called off task', async () => {
  expect(await failed({ task: '咖啡?', output: 'コーヒー' })).toEqual([])
})
