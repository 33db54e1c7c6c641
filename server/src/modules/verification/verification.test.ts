import { expect, test } from 'vitest'
import { readOutputFormat } from '../../adapters/lanes/offline/brief.ts'
import { createOfflineLane } from '../../adapters/lanes/offline.ts'
import { type VerifyOutputInput, verifyOutput } from './verification.ts'

const TASK =
  'Summarise what the text says about caffeine and sleep:\n\nCaffeine blocks adenosine in the brain. It cost the sleepers 41 minutes a night.'
const GOOD_OUTPUT = 'Caffeine shortens sleep: “It cost the sleepers 41 minutes a night.”'

const input = (overrides: Partial<VerifyOutputInput> = {}): VerifyOutputInput => ({
  agentId: 'researcher-v2',
  task: TASK,
  output: GOOD_OUTPUT,
  mode: 'live',
  ...overrides,
})

const failedChecks = async (overrides: Partial<VerifyOutputInput>) =>
  (await verifyOutput(input(overrides))).checks.filter((check) => !check.passed).map((check) => check.name)

test('a sound answer is verified with grade A and a reason for every check', async () => {
  const result = await verifyOutput(input())
  expect(result).toMatchObject({ verified: true, score: 1, grade: 'A' })
  for (const check of result.checks) expect(check.reason).toMatch(/\.$/)
})

test('an output that says the task was not done is verified, but not with grade A', async () => {
  const lane = createOfflineLane()
  for (const [agentId, task] of [
    ['writer-v1', 'Translate into French: Good morning, the train is late.'],
    ['researcher-v2', 'Who invented the turnstile?'],
    ['coder-v1', 'Write a function that parses dates'],
    ['analyst-v1', 'How large is the average household in Sweden?'],
  ] as const) {
    const signal = AbortSignal.timeout(10_000)
    const laneResult = await lane.execute({ runId: 'r', agentId, task, context: [], deadline: new Date(), signal })
    if (!laneResult.ok) throw new Error(laneResult.message)
    const result = await verifyOutput({ agentId, task, output: laneResult.output, mode: 'offline' })
    expect([agentId, result.verified, result.grade === 'A']).toEqual([agentId, true, false])
    expect(result.checks.find((check) => check.name === 'work_done')?.passed).toBe(false)
  }
})

test('an empty output is never verified', async () => {
  expect(await verifyOutput(input({ output: ' \n—' }))).toMatchObject({ verified: false, grade: 'F' })
})

test('an output that is too long or not text is not verified', async () => {
  expect(await verifyOutput(input({ output: `caffeine sleep ${'x'.repeat(70_000)}` }))).toMatchObject({
    verified: false,
    grade: 'F',
  })
  expect(await failedChecks({ output: `${GOOD_OUTPUT}\0` })).toEqual(['bounded'])
  expect(await failedChecks({ output: `${GOOD_OUTPUT}\ud800` })).toEqual(['bounded'])
})

test('an answer to another question is off task', async () => {
  expect(
    await failedChecks({
      output: 'Mix the flour with sugar, knead the dough and bake it in the oven until golden.',
    }),
  ).toEqual(['on_task'])
})

test('a refusal is not an answer', async () => {
  expect(await failedChecks({ output: "I'm sorry, but I can't help with caffeine or sleep text." })).toContain(
    'answered',
  )
})

test('a wrong equation fails, unless it is quoted from the task or from memory', async () => {
  const wrong = { agentId: 'writer-v1', output: 'The office sold 12 + 30 = 52 chairs this week.' }
  expect(await failedChecks({ ...wrong, task: 'Write a line: the office sold 12 and 30 chairs.' })).toContain(
    'recomputed',
  )
  const quoting = 'Proofread: The office sold 12 + 30 = 52 chairs this week.'
  expect(await failedChecks({ ...wrong, task: quoting })).not.toContain('recomputed')
  const context = ['12 + 30 = 52']
  expect(await failedChecks({ ...wrong, task: 'Write a line about chairs.', context })).not.toContain('recomputed')
})

test('an invented quotation fails the check', async () => {
  expect(
    await failedChecks({ output: 'The text says caffeine and sleep: “It saved the sleepers two hours every night.”' }),
  ).toEqual(['grounded'])
})

test('a quotation from memory counts as a quotation from the input', async () => {
  const output = 'On caffeine and sleep you said “I drink six cups every morning.”'
  expect(await failedChecks({ output, context: ['I drink six cups every morning.'] })).toEqual([])
  expect(await failedChecks({ output })).toEqual(['grounded'])
})

test('a writer lane may quote invented speech', async () => {
  expect(
    await failedChecks({
      agentId: 'writer-v1',
      output: 'Caffeine and sleep: “Nobody in this house will ever rest again.”',
    }),
  ).toEqual([])
})

test('requested JSON, lists and word limits are checked', async () => {
  const task = 'Return JSON with the sleep minutes lost to caffeine'
  expect(await failedChecks({ task, output: '{"minutes": 41, "cause": "caffeine sleep"}' })).toEqual([])
  expect(
    await failedChecks({ task, output: '{"summary": "Forty-one minutes of sleep went to caffeine", "minutes": 41}' }),
  ).toEqual([])
  expect(await failedChecks({ task, output: '```json\n{"minutes": 41, "note": "caffeine sleep"}\n```' })).toEqual([])
  expect(await failedChecks({ task, output: 'Sure! {"minutes lost to caffeine and too little sleep": 41.' })).toEqual([
    'asked_for',
  ])
  expect(await failedChecks({ task: 'caffeine and sleep as bullet points', output: 'Caffeine costs sleep.' })).toEqual([
    'asked_for',
  ])
  expect(
    await failedChecks({ task: 'caffeine and sleep in no more than 10 words', output: 'caffeine sleep '.repeat(8) }),
  ).toEqual(['asked_for'])
})

test('a task that only mentions JSON does not request it', async () => {
  const output = 'Plain words about JSON fields, parsing, passwords, cities and rent.'
  const keepsFormat = async (task: string) =>
    !(await failedChecks({ agentId: 'coder-v1', task, output })).includes('asked_for')
  for (const task of MENTIONS_JSON)
    expect([task, await keepsFormat(task), readOutputFormat(task).form]).toEqual([task, true, 'markdown'])
  for (const task of REQUESTS_JSON)
    expect([task, await keepsFormat(task), readOutputFormat(task).form]).toEqual([task, false, 'json'])
})

const MENTIONS_JSON = [
  'Why does my API return JSON with null fields?',
  'Parse this JSON object and explain it.',
  'What can go wrong in JSON parsing?',
  'Does fetch produce JSON by itself?',
]
const REQUESTS_JSON = [
  'Return JSON only. Should we rent?',
  'Reply in JSON: I forgot my password',
  'Summarise as JSON with keys a and b',
  'List three cities, return valid JSON.',
  'Please give me the result as JSON',
  'Answer in JSON format',
  'Count the words.\nOutput a JSON object.',
]

test('an offline output that cannot be repeated is not verified', async () => {
  expect(await verifyOutput(input({ mode: 'offline', reexecute: async () => GOOD_OUTPUT }))).toMatchObject({
    verified: true,
    grade: 'A',
  })
  expect(await verifyOutput(input({ mode: 'offline', reexecute: async () => `${GOOD_OUTPUT} ` }))).toMatchObject({
    verified: false,
    grade: 'F',
  })
})

test('a task in a script without spaces is not marked off task', async () => {
  expect(await failedChecks({ task: '咖啡?', output: 'コーヒー' })).toEqual([])
})
