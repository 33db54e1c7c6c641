import { expect, test } from 'vitest'
import { rubricOf, weighJudgement } from './judge.ts'
import { createVerification } from './verification.ts'

const TASK = 'Summarise: "The mill was built in 1874 and burned down in 1911."'
const OUTPUT = 'The mill was built in 1874 and burned down in 1911.'
const criteria = rubricOf('researcher-v2')
const weigh = (answer: unknown) =>
  weighJudgement(typeof answer === 'string' ? answer : JSON.stringify(answer), criteria, { task: TASK, output: OUTPUT })
const failure = { criterion: 'source_kept', quoted_from: 'output', quotation: 'built in 1874' }
const UNUSABLE = { applies: false }

test('a judge fails an output with a criterion of the rubric and a passage that stands in the output or in the task', () => {
  expect(weigh({ failures: [failure] })).toEqual({ applies: true, fault: 'source_kept' })
  expect(weigh({ failures: [{ ...failure, quoted_from: 'task', quotation: 'burned down' }] })).toMatchObject({
    fault: 'source_kept',
  })
  expect(weigh({ failures: [] })).toEqual({ applies: true })
})

test('a judge that quotes what is not there decides nothing, not even with its other failures', () => {
  expect(weigh({ failures: [{ ...failure, quotation: 'built in 1999' }] })).toEqual(UNUSABLE)
  expect(
    weigh({ failures: [failure, { ...failure, criterion: 'answers_task', quotation: 'nowhere at all' }] }),
  ).toEqual(UNUSABLE)
  expect(weigh({ failures: [{ ...failure, quotation: '' }] })).toEqual(UNUSABLE)
  expect(weigh({ failures: [{ ...failure, quotation: 'the' }] })).toEqual(UNUSABLE)
})

test('a judge that fails every criterion decides nothing', () => {
  const failures = criteria.map(({ name }) => ({ ...failure, criterion: name }))
  expect(weigh({ failures })).toEqual(UNUSABLE)
})

test('an answer of another form decides nothing', () => {
  for (const answer of [
    'PASS',
    '',
    '[]',
    'null',
    '{"failures": "none"}',
    '```json\n{"failures": []}\n```',
    { failures: [{ ...failure, criterion: 'price' }] },
    { failures: [failure, failure] },
    { failures: [failure], verdict: 'fail' },
    { failures: [{ ...failure, quoted_from: 'memory' }] },
    { failures: [{ criterion: 'source_kept' }] },
    { failures: [null] },
    `{"failures": []}${' '.repeat(9_000)}`,
  ])
    expect([answer, weigh(answer)]).toEqual([answer, UNUSABLE])
})

test('a judge cannot raise a verdict: it is not even asked about an output that has failed', async () => {
  let questions = 0
  const judge = async () => {
    questions++
    return {
      text: '{"failures": []}',
      provider: 'p',
      model: 'm',
      usage: { inputTokens: 1, outputTokens: 1, costUsd: 0 },
    }
  }
  const input = { agentId: 'default', task: 'What is the capital of France?', mode: 'live' as const }
  const refused = await createVerification({ judge })({ ...input, output: "I'm sorry, but I can't help with that." })
  expect([refused.verified, questions]).toEqual([false, 0])
  const answered = await createVerification({ judge })({ ...input, output: 'Paris is the capital of France.' })
  expect([answered.verified, questions]).toEqual([true, 1])
})

test('a judge is never asked about the work of an offline lane, and one that throws decides nothing', async () => {
  const judge = () => Promise.reject(new Error('gone'))
  const input = {
    agentId: 'default',
    task: 'What is the capital of France?',
    output: 'Paris is the capital of France.',
  }
  expect((await createVerification({ judge })({ ...input, mode: 'offline' })).verified).toBe(true)
  const { verified, checks } = await createVerification({ judge })({ ...input, mode: 'live' })
  expect(verified).toBe(true)
  expect(checks.at(-1)).toMatchObject({ name: 'model_judge', passed: true, weight: 0 })
})
