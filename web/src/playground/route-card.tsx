import type { RouteResponse } from '@countersign/sdk'
import { Table } from '../components/table.tsx'
import { Badge, Card, DescriptionList, Id } from '../components/ui.tsx'
import { formatPercent, formatUsdc, NO_VALUE } from '../format.ts'

const postures: Record<RouteResponse['posture'], string> = {
  explicit: 'named by you',
  confident: 'clear from the text',
  leaning: 'probable',
  constrained: 'narrowed by a limit',
  fallback: 'the task is too vague for a lane of its own',
}
const MAX_SIGNALS = 8

/** Why this lane, in the words of the router, and why not the others. */
export const RouteCard = ({ route }: { route: RouteResponse }) => (
  <Card
    title="Which lane, and why"
    note={
      <Badge tone={route.decision === 'blocked' ? 'error' : 'neutral'}>
        governance: {route.decision.replaceAll('_', ' ')}
      </Badge>
    }
  >
    <DescriptionList
      items={[
        ['Lane', route.recommended_agent_id && <Id value={route.recommended_agent_id} full />],
        ['Because', route.reason],
        [
          'How sure',
          route.posture === 'explicit'
            ? undefined
            : `${postures[route.posture]}, right ${formatPercent(route.confidence)} of the time`,
        ],
        [
          'What spoke for it',
          route.posture !== 'explicit' && route.signals.length > 0 && (
            <ul className="signals">
              {route.signals.slice(0, MAX_SIGNALS).map(({ name, weight }) => (
                <li key={name}>
                  {name} <span className="muted">{weight.toFixed(2)}</span>
                </li>
              ))}
            </ul>
          ),
        ],
        ['Governance', route.decision_reason],
      ]}
    />
    {route.alternatives.length > 0 && (
      <details>
        <summary>Why not another lane</summary>
        <Table
          label="Other lanes"
          columns={[
            { name: 'Lane', render: ({ agent_id }) => <Id value={agent_id} /> },
            { name: 'Price', render: ({ price_usdc }) => formatUsdc(price_usdc), numeric: true },
            { name: 'Why not', render: ({ why_not }) => why_not || NO_VALUE, wide: true },
          ]}
          rows={route.alternatives}
          rowKey={({ agent_id }) => agent_id}
          empty="There is no other lane."
        />
      </details>
    )}
  </Card>
)
