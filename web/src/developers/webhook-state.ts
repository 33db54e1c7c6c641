import type { ApiResponse } from '@countersign/sdk'
import type { Tone } from '../components/ui.tsx'

export type Webhook = ApiResponse<'/api/webhooks', 'get'>['subscriptions'][number]

/** A webhook that was switched off is not failing, even when its last deliveries did. */
export function describeWebhookState({
  is_active,
  disabled_reason,
  failing_since,
}: Pick<Webhook, 'is_active' | 'disabled_reason' | 'failing_since'>): { tone: Tone; label: string } {
  if (!is_active) return { tone: 'neutral', label: disabled_reason ? `off: ${disabled_reason}` : 'off' }
  return failing_since ? { tone: 'error', label: 'failing' } : { tone: 'success', label: 'active' }
}
