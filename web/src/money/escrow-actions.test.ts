import type { Escrow } from '@countersign/sdk'
import { expect, test } from 'vitest'
import { describeClock, escrowActions, sideOf } from './escrow-actions.ts'

const now = Date.parse('2026-11-16T12:00:00Z')
const escrow: Escrow = {
  escrow_id: 'esc_1',
  wallet_id: 'wal_1',
  to_wallet_id: 'wal_2',
  run_id: null,
  status: 'held',
  amount: '1000',
  amount_usdc: 0.001,
  memo: null,
  reason: null,
  expires_at: '2026-11-17T12:00:00Z',
  created_at: '2026-11-16T11:00:00Z',
  ended_at: null,
}

test('a side is told by the wallets of the organisation', () => {
  expect(sideOf(escrow, new Set(['wal_1']))).toBe('sent')
  expect(sideOf(escrow, new Set(['wal_2']))).toBe('received')
  expect(sideOf(escrow, new Set(['wal_1', 'wal_2']))).toBe('own')
  expect(sideOf({ ...escrow, to_wallet_id: null }, new Set(['wal_1']))).toBe('sent')
})

test('the sender releases, the recipient gives back, either disputes', () => {
  expect(escrowActions(escrow, 'sent', now)).toEqual(['release', 'dispute'])
  expect(escrowActions(escrow, 'received', now)).toEqual(['refund', 'dispute'])
  expect(escrowActions(escrow, 'own', now)).toEqual(['release', 'refund', 'dispute'])
  expect(escrowActions({ ...escrow, to_wallet_id: null }, 'sent', now)).toEqual(['release', 'refund', 'dispute'])
})

test('a disputed one waits for one side to give way; an ended, expired or run’s one for nobody', () => {
  expect(escrowActions({ ...escrow, status: 'disputed' }, 'sent', now)).toEqual(['release'])
  expect(escrowActions({ ...escrow, status: 'disputed' }, 'received', now + 1e12)).toEqual(['refund'])
  for (const status of ['released', 'refunded', 'expired'] as const)
    expect(escrowActions({ ...escrow, status }, 'own', now)).toEqual([])
  expect(escrowActions({ ...escrow, expires_at: '2026-11-16T12:00:00Z' }, 'own', now)).toEqual([])
  expect(escrowActions({ ...escrow, run_id: 'run_1' }, 'own', now)).toEqual([])
})

test('the clock runs while an escrow is held, and a dispute stops it', () => {
  expect(describeClock(escrow)).toBe('returns')
  expect(describeClock({ ...escrow, status: 'disputed' })).toBe('stopped')
  expect(describeClock({ ...escrow, run_id: 'run_1' })).toBe('run')
  expect(describeClock({ ...escrow, status: 'released' })).toBe('ended')
})
