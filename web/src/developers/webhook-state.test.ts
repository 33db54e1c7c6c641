import { expect, test } from 'vitest'
import { describeWebhookState } from './webhook-state.ts'

const active = { is_active: true, disabled_reason: null, failing_since: null }

test('an active webhook is failing as long as failing_since is set', () => {
  expect(describeWebhookState(active)).toEqual({ tone: 'success', label: 'active' })
  expect(describeWebhookState({ ...active, failing_since: '2026-11-15T00:00:00Z' })).toEqual({
    tone: 'error',
    label: 'failing',
  })
})

test('a webhook that is off shows why, and is not failing', () => {
  const inactiveWebhook = { ...active, is_active: false, failing_since: '2026-11-15T00:00:00Z' }
  expect(describeWebhookState(inactiveWebhook)).toEqual({ tone: 'neutral', label: 'off' })
  expect(describeWebhookState({ ...inactiveWebhook, disabled_reason: 'gone' })).toEqual({
    tone: 'neutral',
    label: 'off: gone',
  })
})
