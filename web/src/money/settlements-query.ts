import type { ApiRequest } from '@countersign/sdk'
import { endOfDay, startOfDay } from './days.ts'

type Query = NonNullable<ApiRequest<'/api/settlements', 'get'>['query']>

export const settlementStatuses = [
  'pending',
  'settled',
  'failed',
  'unknown',
  'refunded',
] as const satisfies readonly Query['state'][]
export const settlementMethods = ['x402', 'wallet'] as const satisfies readonly Query['method'][]

/** The filters of the address as the API takes them. */
export function toSettlementsQuery(query: URLSearchParams): Query {
  const text = (name: string) => query.get(name)?.trim() || undefined
  return {
    state: settlementStatuses.find((status) => status === text('status')),
    method: settlementMethods.find((method) => method === text('rail')),
    run_id: text('run'),
    since: startOfDay(text('from'))?.toISOString(),
    until: endOfDay(text('to'))?.toISOString(),
  }
}
