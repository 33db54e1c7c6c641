import type { Answer, Ask } from '@countersign/sdk'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useId, useState } from 'react'
import { useAction } from '../parts/action.tsx'
import { Choice, Filters } from '../parts/fields.tsx'
import { usdc } from '../parts/format.ts'
import { Loaded } from '../parts/loaded.tsx'
import { Pager, usePages } from '../parts/pages.tsx'
import { Bad, Card, Facts, Id, Mark, Soft, type Tone, When } from '../parts/parts.tsx'
import { go, link } from '../route.ts'
import { ACCOUNT, service } from '../service.ts'
import { mayControl, type PartProps } from './account-page.tsx'

type Approval = Answer<'/api/approvals', 'get'>['approvals'][number]
type Query = NonNullable<Ask<'/api/approvals', 'get'>['query']>
type Decision = Ask<'/api/approvals', 'post'>['body']['decision']

const statuses = ['pending', 'approved', 'rejected', 'all'] as const satisfies readonly Query['status'][]
const tones: Record<string, Tone> = { pending: 'warn', approved: 'good', rejected: 'bad' }

export function ApprovalsPart({ me, route }: PartProps) {
  const status = (route.query.get('status') ?? 'pending') as NonNullable<Query['status']>
  const pages = usePages(status)
  const approvals = useQuery({
    queryKey: [ACCOUNT, 'approvals', status, pages.cursor],
    queryFn: () => service.get('/api/approvals', { query: { status, limit: 20, cursor: pages.cursor } }),
    placeholderData: keepPreviousData,
  })
  return (
    <Card title="Approvals" note="What a policy wants a person to decide">
      <Filters key={status} apply={(values) => go(link(['account', 'approvals'], values))}>
        <Choice label="Status" name="status" value={status} options={statuses} />
      </Filters>
      <Loaded query={approvals}>
        {({ approvals: list, next_cursor }) => (
          <>
            {list.length === 0 && (
              <p className="soft empty">{status === 'pending' ? 'Nothing waits for you.' : 'There are none.'}</p>
            )}
            <ul className="cards">
              {list.map((approval) => (
                <li key={approval.id}>
                  <ApprovalView approval={approval} may={mayControl(me)} />
                </li>
              ))}
            </ul>
            <Pager pages={pages} next={next_cursor} />
          </>
        )}
      </Loaded>
    </Card>
  )
}

function ApprovalView({ approval, may }: { approval: Approval; may: boolean }) {
  return (
    <article aria-label={`Approval ${approval.id}`}>
      <p>
        <Mark tone={tones[approval.status] ?? 'plain'}>{approval.resolution ?? approval.status}</Mark>{' '}
        <strong>
          {approval.action} by {approval.agent_id}: {usdc(approval.amount_usdc)} to {approval.merchant}
        </strong>
      </p>
      <p>{approval.reason}</p>
      <Facts
        facts={[
          ['Approval', <Id key="id" value={approval.id} full />],
          ['Run', <Id key="run" value={approval.run_id} full />],
          ['Asked by', <Id key="by" value={approval.requested_by} full />],
          ['Asked', <When key="at" at={approval.created_at} />],
          ['Decide before', <When key="until" at={approval.expires_at} />],
          ['Approvals', `${approval.approvals.length} of ${approval.approvals_required}`],
          ...riskFacts(approval),
        ]}
      />
      {approval.status === 'pending' &&
        (may ? <Decide approval={approval} /> : <Soft>This key may look but not decide.</Soft>)}
    </article>
  )
}

/** What the summary adds to the fields above it; a finding speaks through its reason. */
function riskFacts({ risk_summary, ...approval }: Approval): [string, string][] {
  return Object.entries(risk_summary as Record<string, unknown>).flatMap(([name, value]): [string, string][] => {
    if (value === null || name in approval || name === 'asked_at') return []
    const text = Array.isArray(value) ? value.map(textOf).join(' ') : textOf(value)
    return text ? [[sentenceCase(name), text]] : []
  })
}

const textOf = (value: unknown): string => {
  const reason = (value as { reason?: unknown } | null)?.reason
  if (typeof reason === 'string') return reason
  return typeof value === 'string' ? value : JSON.stringify(value)
}

const sentenceCase = (name: string) => `${name[0]!.toUpperCase()}${name.slice(1).replaceAll('_', ' ')}`

/** The decision carries the hash of the action that was read, so that nothing else can be approved by it. */
function Decide({ approval }: { approval: Approval }) {
  const [reason, setReason] = useState('')
  const reasonId = useId()
  const resolve = useAction((decision: Decision) =>
    service.post('/api/approvals', {
      body: {
        approval_id: approval.id,
        decision,
        action_hash: approval.action_hash,
        ...(reason.trim() && { reason: reason.trim() }),
      },
    }),
  )
  return (
    <div className="filters">
      <div className="field">
        <label htmlFor={reasonId}>Reason (optional)</label>
        <input id={reasonId} value={reason} maxLength={500} onChange={(event) => setReason(event.target.value)} />
      </div>
      <button type="button" disabled={resolve.isPending} onClick={() => resolve.mutate('approve')}>
        Approve
      </button>
      <button type="button" className="danger" disabled={resolve.isPending} onClick={() => resolve.mutate('reject')}>
        Reject
      </button>
      {resolve.error && <Bad>{resolve.error.message}</Bad>}
    </div>
  )
}
