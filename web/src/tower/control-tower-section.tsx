import { useQuery } from '@tanstack/react-query'
import { mayControl } from '../account/permissions.ts'
import type { SectionProps } from '../account/section-props.ts'
import { ACCOUNT_KEY, api } from '../api.ts'
import { QueryResult } from '../components/query-result.tsx'
import { Card, Timestamp } from '../components/ui.tsx'
import { routeHref } from '../route.ts'
import { AlertRows } from './alerts-section.tsx'
import { BudgetOutlooks } from './budget-outlooks.tsx'
import { DecisionsCard, NewestRunsCard, PreauthsCard } from './current-activity.tsx'
import { DeliveriesCard, SelfApprovedCard } from './figure-lists.tsx'
import { FrozenAgentsCard } from './frozen-agents.tsx'
import { type Tile, toTiles } from './tower-tiles.ts'

export function ControlTowerSection({ me, route }: SectionProps) {
  const [, part] = route.segments
  const canControl = mayControl(me)
  if (part === 'budgets')
    return (
      <>
        <BackLink />
        <BudgetOutlooks onlyAtRisk={route.query.get('at_risk') === 'true'} />
      </>
    )
  if (part === 'deliveries') return <DeliveriesCard back={<BackLink />} />
  if (part === 'self-approved') return <SelfApprovedCard back={<BackLink />} />
  if (part === 'frozen')
    return (
      <>
        <BackLink />
        <FrozenAgentsCard canControl={canControl} />
      </>
    )
  return <Overview canControl={canControl} />
}

const BackLink = () => (
  <p>
    <a href={routeHref(['account', 'tower'])}>← Control tower</a>
  </p>
)

function Overview({ canControl }: { canControl: boolean }) {
  const tower = useQuery({ queryKey: [ACCOUNT_KEY, 'tower'], queryFn: () => api.get('/api/control-tower') })
  return (
    <>
      <Card title="Now" note={tower.data && <Timestamp at={tower.data.as_of} />}>
        <QueryResult query={tower}>{(view) => <TileList tiles={toTiles(view)} />}</QueryResult>
      </Card>
      <div className="tower-columns">
        <DecisionsCard />
        <NewestRunsCard />
      </div>
      <BudgetOutlooks onlyAtRisk={false} />
      <PreauthsCard />
      <Card title="Latest alerts" note={<a href={routeHref(['account', 'alerts'])}>All alerts</a>}>
        <QueryResult query={tower}>{({ alerts }) => <AlertRows alerts={alerts} canControl={canControl} />}</QueryResult>
      </Card>
      <FrozenAgentsCard canControl={canControl} />
      <Card title="Log" note={<a href={routeHref(['overview'])}>The public log</a>}>
        <QueryResult query={tower}>{({ log_checkpoint }) => <LogState checkpoint={log_checkpoint} />}</QueryResult>
      </Card>
    </>
  )
}

const TileList = ({ tiles }: { tiles: Tile[] }) => (
  <ul className="tiles">
    {tiles.map(({ name, value, note, tone, href }) => (
      <li key={name}>
        <a className={`tile ${tone ?? ''}`} href={href}>
          <span className="tile-name">{name}</span>
          <span className="tile-value">{value}</span>
          {note && <span className="tile-note">{note}</span>}
        </a>
      </li>
    ))}
  </ul>
)

/** The second line of a checkpoint is the number of entries. */
const LogState = ({ checkpoint }: { checkpoint: string | null }) => {
  const size = checkpoint?.split('\n')[1]
  return (
    <p className="muted">
      {size === undefined
        ? 'The log is empty. The receipt of the first run will be its first entry.'
        : `The newest checkpoint covers ${Number(size).toLocaleString('en-US')} entries.`}
    </p>
  )
}
