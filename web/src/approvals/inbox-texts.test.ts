import { expect, test } from 'vitest'
import { describeDrift, formatBps, type RunQuote, readTradeFacts } from '../trades/trade-facts.ts'
import { formatCountdown } from './countdown.tsx'
import { splitRequest } from './request-content.ts'
import { addCount } from './waiting.tsx'

test('a countdown is a clock, with days before it, and ends', () => {
  expect(formatCountdown(3_723_000)).toBe('01:02:03')
  expect(formatCountdown(86_400_000 + 1)).toBe('1 day 00:00:01')
  expect(formatCountdown(500)).toBe('00:00:01')
  expect(formatCountdown(0)).toBe('expired')
})

test('the count stands before the title once, and goes when nothing waits', () => {
  expect(addCount('Approvals · Countersign', 2)).toBe('(2) Approvals · Countersign')
  expect(addCount('(2) Approvals · Countersign', 3)).toBe('(3) Approvals · Countersign')
  expect(addCount('(2) Approvals · Countersign', 0)).toBe('Approvals · Countersign')
})

test('the task stands apart from the other fields of a request', () => {
  expect(splitRequest({ task: 'Write.', agent_id: 'writer-v1' })).toEqual({
    text: { name: 'Task', value: 'Write.' },
    facts: [],
    rest: JSON.stringify({ agent_id: 'writer-v1' }, null, 2),
  })
  const merchant = { id: 'maps', url: 'https://maps.example', pay_to: '0x1' }
  expect(splitRequest({ merchant, purpose: 'Maps' })).toMatchObject({
    text: null,
    facts: [
      ['Purpose', 'Maps'],
      ['Resource', 'https://maps.example'],
      ['Pays to', '0x1'],
    ],
  })
  expect(splitRequest(null)).toEqual({ text: null, facts: [], rest: null })
})

test('a drift beyond the limit says that the order would be cancelled', () => {
  const drift = (drift_bps: number) => describeDrift({ drift_bps, max_drift_bps: 50 } as RunQuote)
  expect(drift(-10)).toEqual({ text: 'of at most 50 bps', tone: 'success' })
  expect(drift(-40).tone).toBe('warning')
  expect(drift(51)).toEqual({ text: expect.stringContaining('would be cancelled'), tone: 'error' })
})

test('a move that rounds to nothing has no sign', () => {
  expect([formatBps(-0.004), formatBps(-1.5), formatBps(12)]).toEqual(['0 bps', '-1.50 bps', '+12.00 bps'])
})

test('facts of a trade that are null count as absent', () => {
  expect(readTradeFacts({ approval: { basis_bps: null, session: 'open' } as never })).toEqual({ session: 'open' })
  expect(readTradeFacts({ approval: null })).toEqual({})
})
