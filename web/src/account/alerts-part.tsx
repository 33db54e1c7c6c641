import type { Answer, Ask } from '@countersign/sdk'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { ActionButton } from '../parts/action.tsx'
import { Choice, Filters } from '../parts/fields.tsx'
import { Loaded } from '../parts/loaded.tsx'
import { Pager, usePages } from '../parts/pages.tsx'
import { Card, Mark, Soft, type Tone, When } from '../parts/parts.tsx'
import { type Column, Table } from '../parts/table.tsx'
import { go, link } from '../route.ts'
import { ACCOUNT, service } from '../service.ts'
import { mayControl, type PartProps } from './account-page.tsx'

type Alert = Answer<'/api/control-tower', 'get'>['alerts'][number]
type Query = NonNullable<Ask<'/api/predictive/alerts', 'get'>['query']>

const severities = ['critical', 'warning', 'info'] as const satisfies readonly Query['severity'][]
const tones: Record<Alert['severity'], Tone> = { critical: 'bad', warning: 'warn', info: 'plain' }

/** Reading alerts is a feature of some plans: the plan is asked first, so that nothing is asked for in vain. */
export function AlertsPart(props: PartProps) {
  const plan = useQuery({ queryKey: [ACCOUNT, 'plan'], queryFn: () => service.get('/api/me/plan') })
  return (
    <Card title="Alerts">
      <Loaded query={plan}>
        {({ plan: name, features }) =>
          (features as Record<string, unknown>).predictive_alerts === true ? (
            <AlertList {...props} />
          ) : (
            <Soft>The plan ‘{name}’ does not include predictive alerts. The control tower shows the newest ones.</Soft>
          )
        }
      </Loaded>
    </Card>
  )
}

function AlertList({ me, route }: PartProps) {
  const severity = (route.query.get('severity') ?? undefined) as Query['severity']
  const pages = usePages(severity ?? '')
  const alerts = useQuery({
    queryKey: [ACCOUNT, 'alerts', severity, pages.cursor],
    queryFn: () => service.get('/api/predictive/alerts', { query: { severity, limit: 25, cursor: pages.cursor } }),
    placeholderData: keepPreviousData,
  })
  return (
    <>
      <Filters key={severity} apply={(values) => go(link(['account', 'alerts'], values))}>
        <Choice label="Severity" name="severity" value={severity} options={severities} all="any severity" />
      </Filters>
      <Loaded query={alerts}>
        {({ alerts: list, next_cursor }) => (
          <>
            <AlertRows alerts={list} may={mayControl(me)} />
            <Pager pages={pages} next={next_cursor} />
          </>
        )}
      </Loaded>
    </>
  )
}

export const AlertRows = ({ alerts, may }: { alerts: Alert[]; may: boolean }) => (
  <Table
    label="Alerts"
    columns={may ? [...columns, readColumn] : columns}
    rows={alerts}
    rowKey={({ id }) => id}
    empty="No alerts."
  />
)

const columns: Column<Alert>[] = [
  { name: 'Severity', show: ({ severity }) => <Mark tone={tones[severity]}>{severity}</Mark> },
  { name: 'Type', show: ({ type }) => type },
  { name: 'Message', show: ({ message }) => message, wide: true },
  { name: 'When', show: ({ created_at }) => <When at={created_at} /> },
]

const readColumn: Column<Alert> = {
  name: 'Read',
  show: ({ id, read }) =>
    read ? (
      'read'
    ) : (
      <ActionButton className="quiet" act={() => service.patch('/api/predictive/alerts', { body: { id } })}>
        Mark as read
      </ActionButton>
    ),
}
