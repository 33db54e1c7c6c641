import { expect, test } from 'vitest'
import { approvalDeadline, computeApprovalWindow } from './approval-window.ts'

const now = new Date('2026-11-16T16:00:00Z')
const openSession = { session: 'open', nextOpen: null, now } as const

test('the window depends on the instrument type and the leverage, unless the operator sets one', () => {
  const windowMinutes = (
    input: Pick<Parameters<typeof computeApprovalWindow>[0], 'type' | 'leverageE2' | 'overrideSeconds'>,
  ) => (computeApprovalWindow({ ...openSession, ...input }).expiresAt.getTime() - now.getTime()) / 60_000
  expect(windowMinutes({ type: 'equity', leverageE2: null })).toBe(1440)
  expect(windowMinutes({ type: 'perp', leverageE2: 100n })).toBe(5)
  expect(windowMinutes({ type: 'rwa', leverageE2: 200n })).toBe(5)
  expect(windowMinutes({ type: 'equity', leverageE2: null, overrideSeconds: 60 })).toBe(1)
})

test('a closed session limits the execution to a quarter of an hour after the open', () => {
  const nextOpen = new Date('2026-11-16T14:30:00Z')
  const window = computeApprovalWindow({
    type: 'equity',
    leverageE2: null,
    session: 'holiday',
    nextOpen,
    now: new Date('2026-11-16T10:00:00Z'),
  })
  expect(window.executeBy.toISOString()).toBe('2026-11-16T14:45:00.000Z')
  expect(window.expiresAt.toISOString()).toBe('2026-11-17T10:00:00.000Z')
  expect(approvalDeadline(window)).toEqual(window.executeBy)
})
