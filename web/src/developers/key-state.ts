import type { ApiResponse } from '@countersign/sdk'
import type { Tone } from '../components/ui.tsx'

export type ApiKey = ApiResponse<'/api/keys', 'get'>['keys'][number]

/** A key that was rotated stays valid until its overlap ends. */
export function describeKeyState(
  { revoked_at, expires_at, replaced_by }: Pick<ApiKey, 'revoked_at' | 'expires_at' | 'replaced_by'>,
  nowMs: number,
): { tone: Tone; label: string; isLive: boolean } {
  if (revoked_at) return { tone: 'neutral', label: 'revoked', isLive: false }
  if (expires_at && Date.parse(expires_at) <= nowMs)
    return { tone: 'neutral', label: replaced_by ? 'replaced' : 'expired', isLive: false }
  return replaced_by
    ? { tone: 'warning', label: 'replaced, still valid', isLive: true }
    : { tone: 'success', label: 'active', isLive: true }
}
