import { expect, test } from 'vitest'
import { type Run, timeOfId, toTimeline } from './run-timeline.ts'
import { toRunsCsv, toRunsQuery } from './runs-section.tsx'

const id = '01a1e495-5b63-7253-b86d-c2ae70f039e0'
const run = (change: Partial<Run> = {}): Run => ({
  run_id: `run_${id}`,
  outcome: 'completed',
  action: 'run',
  agent_id: 'comedian-v1',
  price_usdc: 0.01,
  created_at: '2026-11-16T13:39:15.939Z',
  finished_at: '2026-11-16T13:39:16.521Z',
  receipt_url: '/api/receipts/rcpt_1',
  answer: null,
  ...change,
})
const completed = {
  route: { agent_id: 'comedian-v1', confidence: 0.93, reason: 'Asks for a joke.' },
  policy_applied: [{ reason: 'Below 1 USDC.' }],
  execution: { model: 'offline-comedian-4', latency_ms: 29, fallbacks: [] },
  verification: {
    verification_id: 'ver_01a1e495-5bb9-7746-aab3-42ab1d230326',
    verified: true,
    grade: 'A',
    checks: [{ name: 'present', passed: true, reason: 'There is an answer.' }],
  },
  settlement: { settlement_id: `stl_${id}`, status: 'settled', method: 'x402', payer: '0xabc', transaction: '0xdef' },
  receipt: {
    receipt_id: 'rcpt_1',
    issued_at: '2026-11-16T13:39:16.411Z',
    governance: { mandate_id: 'man_1' },
    log: null,
  },
}
const show = (shown: Run) => toTimeline(shown).map(({ name, tone, text }) => `${name} ${tone} ${text}`)

test('a completed run shows every step with its time', () => {
  const steps = toTimeline(run({ answer: { status: 200, body: completed } }))
  expect(steps.map(({ name }) => name)).toEqual([
    'Route',
    'Policy',
    'Payment',
    'Work',
    'Verification',
    'Settlement',
    'Receipt',
    'Log',
  ])
  expect(steps[0]!.facts).toEqual(['Asks for a joke.', 'Confidence 93 %'])
  expect(steps[1]!.facts).toEqual(['Below 1 USDC.', 'Under the mandate man_1'])
  expect(steps[3]).toMatchObject({ text: 'Done by offline-comedian-4 in 29 ms', at: '2026-11-16T13:39:16.025Z' })
  expect(steps[7]).toMatchObject({ tone: 'neutral', text: 'Waits for its place in the public log' })
})

test('a refused run ends at the policy, and an open one at the work', () => {
  const body = { decision: 'blocked', message: 'Over the budget.', policy_results: [{ reason: 'Budget all: 0 left.' }] }
  const refused = run({ outcome: 'blocked', receipt_url: null, answer: { status: 429, body } })
  expect(show(refused)).toEqual(['Route success To comedian-v1', 'Policy error Refused; nothing was charged'])
  expect(toTimeline(refused)[1]!.facts).toEqual(['Over the budget.', 'Budget all: 0 left.'])
  expect(show(run({ outcome: 'escalated', answer: { status: 429, body } })).at(-1)).toBe(
    'Policy warning A person has to decide',
  )
  expect(show(run({ outcome: 'pending' })).at(-1)).toBe('Work neutral Under way')
})

test('an output that was refused, taken all the same or not checked says so', () => {
  const verified = (verification: object) =>
    show(run({ answer: { status: 200, body: { ...completed, verification } } })).find((step) =>
      step.startsWith('Verification'),
    )
  expect(verified({ verified: false, checks: [] })).toBe('Verification error Failed; nothing was charged')
  expect(verified({ verified: false, accepted_unverified: true })).toContain('taken all the same')
  expect(verified({ verified: null })).toBe('Verification neutral Skipped, as asked')
})

test('an id that has no time in it has none', () => {
  expect(timeOfId(`run_${id}`)).toBe('2026-11-16T13:39:15.939Z')
  for (const other of ['run_1', '', undefined, 'run_01a1e495-5b63-4253-b86d-c2ae70f039e0'])
    expect(timeOfId(other)).toBeNull()
})

test('filters of the address that the API would refuse are left out', () => {
  const query = (text: string) => toRunsQuery(new URLSearchParams(text))
  expect(query('outcome=nonsense&min=-1&max=much&from=never&spender= ')).toEqual(query(''))
  expect(query('outcome=blocked&lane=coder-v1&tag=a:b&min=0.5')).toMatchObject({
    outcome: 'blocked',
    agent_id: 'coder-v1',
    tag: 'a:b',
    min_usdc: 0.5,
  })
})

test('the CSV has a line for each run and no formula', () => {
  const { answer: _, ...row } = run({ spender: '=cmd()', tags: { a: 'b' } })
  expect(toRunsCsv([row]).split('\r\n')[1]).toBe(
    `run_${id},completed,run,comedian-v1,0.01,'=cmd(),,"{""a"":""b""}",2026-11-16T13:39:15.939Z,2026-11-16T13:39:16.521Z,rcpt_1`,
  )
})
