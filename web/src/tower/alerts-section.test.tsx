import { expect, test } from 'vitest'
import { renderText } from '../../test/render.tsx'
import { AlertRows } from './alerts-section.tsx'

const alert = { id: 'alt_1', severity: 'critical', type: 'budget', message: 'Budget used up.', read: false }
const alerts = [
  { ...alert, created_at: '2026-11-15T00:00:00Z' },
  { ...alert, id: 'alt_2', read: true, created_at: '2026-11-15T00:00:00Z' },
] as never

test('an unread alert can be marked as read, by keys that may make changes', () => {
  expect(renderText(<AlertRows alerts={alerts} canControl />).match(/Mark as read/g)).toHaveLength(1)
  expect(renderText(<AlertRows alerts={alerts} canControl={false} />)).not.toContain('Mark as read')
})
