import { verifyStatement } from '@countersign/proof'
import type { ApiResponse, Mandate } from '@countersign/sdk'
import { useQuery } from '@tanstack/react-query'
import { ACCOUNT_KEY, api, useJwks } from '../api.ts'
import { Badge, type Tone } from '../components/ui.tsx'
import { formatUsdc, NO_VALUE } from '../format.ts'
import { useNow } from '../now.ts'

export type Remaining = ApiResponse<'/api/mandates/{id}/remaining', 'get'>

export const useRemaining = (id: string) =>
  useQuery({
    queryKey: [ACCOUNT_KEY, 'mandates', 'remaining', id],
    queryFn: () => api.get('/api/mandates/{id}/remaining', { path: { id } }),
    refetchInterval: 60_000,
  })

const stateTones: Record<string, Tone> = {
  active: 'success',
  revoked: 'error',
  expired: 'neutral',
  'not started': 'warning',
}

export function StateBadge({ mandate }: { mandate: Pick<Mandate, 'status' | 'starts_at' | 'expires_at'> }) {
  const state = stateAt(mandate, useNow())
  return <Badge tone={stateTones[state] ?? 'neutral'}>{state}</Badge>
}

export function stateAt(
  { status, starts_at, expires_at }: Pick<Mandate, 'status' | 'starts_at' | 'expires_at'>,
  now: number,
): 'active' | 'revoked' | 'expired' | 'not started' {
  if (status === 'revoked') return 'revoked'
  if (now < Date.parse(starts_at)) return 'not started'
  return now >= Date.parse(expires_at) ? 'expired' : 'active'
}

/** What remains of a mandate's budget, and whether the signature of the statement holds. */
export function RemainingSummary({ id }: { id: string }) {
  const remaining = useRemaining(id)
  if (!remaining.data) return <span className="muted">{NO_VALUE}</span>
  return (
    <>
      {describeRemaining(remaining.data)} <StatementBadge statement={remaining.data} />
    </>
  )
}

export function describeRemaining({ remaining_usdc, limit_usdc, occurrences }: Remaining): string {
  const parts = [
    ...(typeof remaining_usdc === 'number' && typeof limit_usdc === 'number'
      ? [`${formatUsdc(remaining_usdc)} of ${formatUsdc(limit_usdc)}`]
      : []),
    ...(occurrences ? [`${occurrences.remaining} of ${occurrences.limit} payments`] : []),
  ]
  return parts.length === 0 ? 'no total limit' : parts.join(', ')
}

/** Checks the signature in the page, with the keys that the page fetched when it was opened. */
export function StatementBadge({ statement }: { statement: Remaining }) {
  const jwks = useJwks()
  if (!jwks.data) return null
  const { ok } = verifyStatement(statement, { jwks: jwks.data as never, schema: 'mandate-remaining/v1' })
  return ok ? <Badge tone="success">signature valid</Badge> : <Badge tone="error">signature not valid</Badge>
}
