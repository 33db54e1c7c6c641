import type { Mandate } from '@countersign/sdk'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { mayMandate } from '../account/permissions.ts'
import type { SectionProps } from '../account/section-props.ts'
import { ACCOUNT_KEY, api, hasStatus } from '../api.ts'
import { ConfirmButton } from '../components/confirm-button.tsx'
import { CopyButton } from '../components/copy-button.tsx'
import { Field } from '../components/form-fields.tsx'
import { QueryResult } from '../components/query-result.tsx'
import { SaveButton } from '../components/save-button.tsx'
import { type Column, Table } from '../components/table.tsx'
import { Badge, Card, DescriptionList, Id, MutedText, Timestamp } from '../components/ui.tsx'
import { formatUsdc } from '../format.ts'
import { routeHref } from '../route.ts'
import { describeConstraint } from './mandate-draft.ts'
import { describeRemaining, type Remaining, StateBadge, StatementBadge, useRemaining } from './remaining.tsx'

/** One mandate: what it allows, what remains, and what used it. */
export function MandatePage({ me, id }: { me: SectionProps['me']; id: string }) {
  const mandate = useQuery({
    queryKey: [ACCOUNT_KEY, 'mandates', 'one', id],
    queryFn: () => api.get('/api/mandates/{id}', { path: { id } }),
  })
  if (hasStatus(mandate.error, 404) && !mandate.data)
    return (
      <Card title="Not found">
        <MutedText>
          There is no mandate {id} in this organisation. <a href={routeHref(['account', 'mandates'])}>All mandates</a>
        </MutedText>
      </Card>
    )
  return (
    <QueryResult query={mandate}>
      {(data) => (
        <>
          <MandateCard me={me} mandate={data} />
          <RemainingCard id={id} />
          <UsesCard id={id} />
        </>
      )}
    </QueryResult>
  )
}

function MandateCard({ me, mandate }: { me: SectionProps['me']; mandate: Mandate }) {
  const { id, name, agent_id, holder_key_id, constraints, status } = mandate
  return (
    <Card
      title={name}
      note={
        <a href={routeHref(['account', 'mandates'])} className="muted">
          All mandates
        </a>
      }
    >
      <p>
        <StateBadge mandate={mandate} />
      </p>
      <DescriptionList
        items={[
          [
            'Mandate',
            <span key="id">
              <Id value={id} full /> <CopyButton text={id} label="the mandate id" />
            </span>,
          ],
          ['Agent', agent_id ?? 'any agent'],
          ['Held by key', holder_key_id && <Id key="key" value={holder_key_id} full />],
          [
            'Allows',
            constraints.length === 0 ? (
              'anything: it limits nothing'
            ) : (
              <ul key="constraints" className="plain-list">
                {constraints.map((constraint) => (
                  <li key={String(constraint.type)}>{describeConstraint(constraint)}</li>
                ))}
              </ul>
            ),
          ],
          ['Begins', <Timestamp key="starts" at={mandate.starts_at} />],
          ['Expires', <Timestamp key="expires" at={mandate.expires_at} />],
          ['Revoked', mandate.revoked_at && <Timestamp key="revoked" at={mandate.revoked_at} />],
          ['Content hash', <Id key="hash" value={mandate.content_hash} full />],
        ]}
      />
      {!mayMandate(me) ? (
        <MutedText>This API key can view but not make or revoke mandates: it has no mandate scope.</MutedText>
      ) : (
        <div className="row">
          <a className="button secondary" href={routeHref(['account', 'mandates', 'new'], { like: id })}>
            Make one like it
          </a>
          {status === 'active' && <RevokeButton mandate={mandate} />}
        </div>
      )}
    </Card>
  )
}

function RevokeButton({ mandate: { id, name } }: { mandate: Mandate }) {
  const [reason, setReason] = useState('')
  return (
    <ConfirmButton
      action={() =>
        api.post('/api/mandates/{id}/revoke', { path: { id }, body: reason.trim() ? { reason: reason.trim() } : {} })
      }
      title={`Revoke ${name}?`}
      text={
        <>
          <p>Nothing more is allowed under it, and tokens that were given out under it can no longer be used.</p>
          <p>It cannot be brought back.</p>
          <Field label="Reason (optional, kept in the audit trail)">
            {(fieldId) => (
              <input id={fieldId} maxLength={500} value={reason} onChange={({ target }) => setReason(target.value)} />
            )}
          </Field>
        </>
      }
      confirmLabel="Revoke the mandate"
    >
      Revoke
    </ConfirmButton>
  )
}

/** The signed statement about what remains: it can be saved and shown to others, who check it with the public keys. */
function RemainingCard({ id }: { id: string }) {
  const remaining = useRemaining(id)
  const amount = (value: unknown) => (typeof value === 'number' ? formatUsdc(value) : undefined)
  return (
    <Card title="What remains" note="A statement that the service signs">
      <QueryResult query={remaining}>
        {(statement: Remaining) => (
          <>
            <p>
              <strong>{describeRemaining(statement)}</strong> <StatementBadge statement={statement} />
            </p>
            <DescriptionList
              items={[
                ['Spent', amount(statement.spent_usdc)],
                ['Reserved', amount(statement.reserved_usdc)],
                ['Only reported', statement.reported_usdc ? amount(statement.reported_usdc) : undefined],
                ['Next payment', statement.next_allowed_at && <Timestamp key="next" at={statement.next_allowed_at} />],
                ['As of', <Timestamp key="as-of" at={statement.as_of} />],
                ['Signed by', <Id key="key" value={statement.signature.key_id} full />],
              ]}
            />
            <SaveButton name={`mandate-remaining-${id}.json`} value={statement}>
              Save the statement
            </SaveButton>
          </>
        )}
      </QueryResult>
    </Card>
  )
}

type UsedRun = { run_id: string; outcome: string; agent_id: string; price_usdc: number; created_at: string }

function UsesCard({ id }: { id: string }) {
  const runs = useQuery({
    queryKey: [ACCOUNT_KEY, 'runs', 'of-mandate', id],
    queryFn: () => api.get('/api/runs', { query: { mandate_id: id, limit: 10 } }),
  })
  return (
    <Card title="What used it" note={<a href={routeHref(['account', 'runs'], { mandate: id })}>All of them</a>}>
      <QueryResult query={runs}>
        {({ runs: list, has_more }) => (
          <Table
            label="What used the mandate"
            columns={useColumns}
            rows={list}
            rowKey={({ run_id }) => run_id}
            empty={
              has_more
                ? 'None of the newest runs has used it; “All of them” looks at older ones too.'
                : 'Nothing has used it yet.'
            }
          />
        )}
      </QueryResult>
    </Card>
  )
}

const useColumns: Column<UsedRun>[] = [
  {
    name: 'Run',
    render: ({ run_id }) => (
      <a href={routeHref(['account', 'runs', run_id])}>
        <Id value={run_id} />
      </a>
    ),
  },
  {
    name: 'Outcome',
    render: ({ outcome }) => <Badge tone={outcome === 'completed' ? 'success' : 'neutral'}>{outcome}</Badge>,
  },
  { name: 'Agent', render: ({ agent_id }) => agent_id },
  { name: 'Price', render: ({ price_usdc }) => formatUsdc(price_usdc), numeric: true },
  { name: 'When', render: ({ created_at }) => <Timestamp at={created_at} /> },
]
