import type { ApiRequest } from '@countersign/sdk'

export type ReceiptQuery = NonNullable<ApiRequest<'/api/receipts', 'get'>['query']>

/** A lane in the URL stays selectable even when it is no longer listed. */
export const listLaneNames = (lanes: readonly { agent_id: string }[], selected: string | undefined): string[] => [
  ...new Set([...lanes.map(({ agent_id }) => agent_id), 'default', ...(selected ? [selected] : [])]),
]

const DAY_MS = 86_400_000

/** Date filters cover whole days: `until` is the end of the selected day. */
export function toReceiptQuery(query: URLSearchParams): ReceiptQuery {
  const readText = (name: string) => query.get(name) || undefined
  const readDay = (name: string, offsetMs: number) => {
    const at = Date.parse(`${query.get(name)}T00:00:00Z`)
    return Number.isNaN(at) ? undefined : new Date(at + offsetMs).toISOString()
  }
  return {
    kind: readText('kind') as ReceiptQuery['kind'],
    agent_id: readText('agent_id'),
    run_id: readText('run_id'),
    payer: readText('payer'),
    since: readDay('since', 0),
    until: readDay('until', DAY_MS),
  }
}
