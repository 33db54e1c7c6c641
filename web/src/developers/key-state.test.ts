import { expect, test } from 'vitest'
import { describeKeyState } from './key-state.ts'

const NOW = Date.parse('2026-11-16T12:00:00Z')
const key = { revoked_at: null, expires_at: null, replaced_by: null }
const later = '2026-11-17T00:00:00Z'
const earlier = '2026-11-16T11:59:59Z'

test('a key is live until it is revoked or expires', () => {
  expect(describeKeyState(key, NOW)).toMatchObject({ label: 'active', isLive: true })
  expect(describeKeyState({ ...key, expires_at: later }, NOW)).toMatchObject({ label: 'active', isLive: true })
  expect(describeKeyState({ ...key, expires_at: earlier }, NOW)).toMatchObject({ label: 'expired', isLive: false })
  expect(describeKeyState({ ...key, revoked_at: earlier }, NOW)).toMatchObject({ label: 'revoked', isLive: false })
})

test('a rotated key is valid during its overlap only', () => {
  const rotated = { ...key, replaced_by: 'key_2' }
  expect(describeKeyState({ ...rotated, expires_at: later }, NOW)).toMatchObject({ tone: 'warning', isLive: true })
  expect(describeKeyState({ ...rotated, expires_at: earlier }, NOW)).toMatchObject({ label: 'replaced', isLive: false })
})
