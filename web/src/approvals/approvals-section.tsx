import type { ApiRequest } from '@countersign/sdk'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useId, useState } from 'react'
import { mayControl } from '../account/permissions.ts'
import type { SectionProps } from '../account/section-props.ts'
import { ACCOUNT_KEY, api } from '../api.ts'
import { useAction } from '../components/action-button.tsx'
import { FilterForm, Select } from '../components/form-fields.tsx'
import { Pager, usePagination } from '../components/pagination.tsx'
import { QueryResult } from '../components/query-result.tsx'
import { Badge, Card, DescriptionList, ErrorMessage, Id, MutedText, Timestamp, type Tone } from '../components/ui.tsx'
import { formatUsdc } from '../format.ts'
import { navigate, routeHref } from '../route.ts'
import { type Approval, type Decision, toDecisionBody, toRiskFacts } from './approval-decision.ts'

type Query = NonNullable<ApiRequest<'/api/approvals', 'get'>['query']>

const statuses = ['pending', 'approved', 'rejected', 'all'] as const satisfies readonly Query['status'][]
const tones: Record<string, Tone> = { pending: 'warning', approved: 'success', rejected: 'error' }

export function ApprovalsSection({ me, route }: SectionProps) {
  const status = (route.query.get('status') ?? 'pending') as NonNullable<Query['status']>
  const pagination = usePagination(status)
  const approvals = useQuery({
    queryKey: [ACCOUNT_KEY, 'approvals', status, pagination.cursor],
    queryFn: () => api.get('/api/approvals', { query: { status, limit: 20, cursor: pagination.cursor } }),
    placeholderData: keepPreviousData,
  })
  return (
    <Card title="Approvals" note="Actions that a policy holds for review by a person">
      <FilterForm key={status} onApply={(values) => navigate(routeHref(['account', 'approvals'], values))}>
        <Select label="Status" name="status" value={status} options={statuses} />
      </FilterForm>
      <QueryResult query={approvals}>
        {({ approvals: approvalList, next_cursor }) => (
          <>
            {approvalList.length === 0 && (
              <p className="muted empty">{status === 'pending' ? 'No pending approvals.' : 'No approvals.'}</p>
            )}
            <ul className="cards">
              {approvalList.map((approval) => (
                <li key={approval.id}>
                  <ApprovalDetails approval={approval} canControl={mayControl(me)} />
                </li>
              ))}
            </ul>
            <Pager pagination={pagination} next={next_cursor} />
          </>
        )}
      </QueryResult>
    </Card>
  )
}

function ApprovalDetails({ approval, canControl }: { approval: Approval; canControl: boolean }) {
  return (
    <article aria-label={`Approval ${approval.id}`}>
      <p>
        <Badge tone={tones[approval.status] ?? 'neutral'}>{approval.resolution ?? approval.status}</Badge>{' '}
        <strong>
          {approval.action} by {approval.agent_id}: {formatUsdc(approval.amount_usdc)} to {approval.merchant}
        </strong>
      </p>
      <p>{approval.reason}</p>
      <DescriptionList
        items={[
          ['Approval', <Id key="id" value={approval.id} full />],
          ['Run', <Id key="run" value={approval.run_id} full />],
          ['Requested by', <Id key="by" value={approval.requested_by} full />],
          ['Requested', <Timestamp key="at" at={approval.created_at} />],
          ['Expires', <Timestamp key="until" at={approval.expires_at} />],
          ['Approvals', `${approval.approvals.length} of ${approval.approvals_required}`],
          ...toRiskFacts(approval),
        ]}
      />
      {approval.status === 'pending' &&
        (canControl ? (
          <DecisionForm approval={approval} />
        ) : (
          <MutedText>This API key can view approvals but not decide them.</MutedText>
        ))}
    </article>
  )
}

function DecisionForm({ approval }: { approval: Approval }) {
  const [reason, setReason] = useState('')
  const reasonId = useId()
  const resolveApproval = useAction((decision: Decision) =>
    api.post('/api/approvals', { body: toDecisionBody(approval, decision, reason) }),
  )
  return (
    <div className="filters">
      <div className="field">
        <label htmlFor={reasonId}>Reason (optional)</label>
        <input id={reasonId} value={reason} maxLength={500} onChange={(event) => setReason(event.target.value)} />
      </div>
      <button type="button" disabled={resolveApproval.isPending} onClick={() => resolveApproval.mutate('approve')}>
        Approve
      </button>
      <button
        type="button"
        className="danger"
        disabled={resolveApproval.isPending}
        onClick={() => resolveApproval.mutate('reject')}
      >
        Reject
      </button>
      {resolveApproval.error && <ErrorMessage>{resolveApproval.error.message}</ErrorMessage>}
    </div>
  )
}
