import type { Approval } from '@countersign/sdk'
import type { ReactNode, Ref } from 'react'
import { useLanes } from '../api.ts'
import { CopyButton } from '../components/copy-button.tsx'
import { Badge, DescriptionList, Id, MutedText, TextBlock, Timestamp } from '../components/ui.tsx'
import { formatUsdc } from '../format.ts'
import { routeHref } from '../route.ts'
import { InstrumentCard } from '../trades/instrument-card.tsx'
import { Countdown } from './countdown.tsx'
import type { Outcome } from './decide.ts'
import { type DecisionControls, DecisionForm } from './decision-form.tsx'
import { describeNormal, type InboxItem, isNewTarget } from './inbox-item.ts'
import { splitRequest } from './request-content.ts'

/** One approval of the core or of the brokerage: what is asked, why, what is normal, and the decision. */
export function ApprovalCard({
  item,
  canControl,
  onOutcome,
  onLeave,
  controls,
}: {
  item: InboxItem
  canControl: boolean
  onOutcome: (outcome: Outcome) => void
  onLeave?: () => void
  controls?: Ref<DecisionControls>
}) {
  const isPending = item.status === 'pending'
  return (
    <article className="approval" aria-label={`Approval ${item.id}`}>
      <header>
        <h3>
          {item.title} <span className="approval-amount">{formatUsdc(item.amountUsdc)}</span>
        </h3>
        <p className="approval-state">
          <Badge tone={item.tone}>{item.state}</Badge>{' '}
          <Badge tone="neutral">{item.domain === 'core' ? 'payment' : `trade, ${item.run.mode}`}</Badge>{' '}
          {isPending && item.expiresAt && (
            <span>
              <Countdown until={item.expiresAt} /> left
            </span>
          )}
        </p>
      </header>
      {isPending &&
        (canControl ? (
          <DecisionForm
            key={item.id}
            items={[item]}
            onOutcome={onOutcome}
            {...(onLeave && { onLeave })}
            {...(controls && { controls })}
          />
        ) : (
          <MutedText>This API key can view approvals but not decide them: that takes the scope control.</MutedText>
        ))}
      <Decisions item={item} />
      <Part title="What is asked">
        {item.domain === 'core' ? <RequestContent item={item} /> : <TradeContent item={item} />}
      </Part>
      <Part title="Which rule asks">
        <p>{item.rule.sentence}</p>
        <RuleFacts rule={item.rule} />
        {item.domain === 'core' && <FurtherReasons approval={item.approval} />}
      </Part>
      <Part title="What is normal for this spender">
        <p>
          {isNewTarget(item) && (
            <>
              <Badge tone="warning">new</Badge>{' '}
            </>
          )}
          {describeNormal(item)}
        </p>
      </Part>
      <Part title="What happens next">
        <p>{item.next}</p>
      </Part>
      <DescriptionList
        items={[
          [
            item.domain === 'core' ? 'Approval' : 'Trade',
            <span key="id">
              <Id value={item.id} full /> <CopyButton text={item.id} label="the id" />
            </span>,
          ],
          ['Run', item.domain === 'core' && item.approval.preauth_id === null && <RunLink id={item.approval.run_id} />],
          ['Pre-authorisation', item.domain === 'core' && item.approval.preauth_id],
          ['Trade page', item.domain === 'brokerage' && <TradeLink id={item.id} />],
          ['Spender', item.spender],
          ['Team', item.team],
          ['Requested by', <Id key="by" value={item.requestedBy} full />],
          ['Requested', <Timestamp key="at" at={item.createdAt} />],
          ['Expires', item.expiresAt && <Timestamp key="until" at={item.expiresAt} />],
          ['Approvals', `${item.votes.given} of ${item.votes.required}`],
        ]}
      />
    </article>
  )
}

const Part = ({ title, children }: { title: string; children: ReactNode }) => (
  <section className="approval-part" aria-label={title}>
    <h4>{title}</h4>
    {children}
  </section>
)

const RunLink = ({ id }: { id: string }) => (
  <a href={routeHref(['account', 'runs', id])}>
    <Id value={id} />
  </a>
)

const PolicyLink = ({ id, name }: { id: string; name: string }) => (
  <a href={routeHref(['account', 'policies', id])}>{name}</a>
)

const TradeLink = ({ id }: { id: string }) => (
  <a href={routeHref(['account', 'trades', id])}>
    <Id value={id} />
  </a>
)

/** Who decided, when and why; and what became of it. */
function Decisions({ item }: { item: InboxItem }) {
  const isUsed = item.domain === 'core' ? item.approval.used_at !== null : item.status === 'approved'
  if (item.decisions.length === 0 && item.status === 'pending') return null
  return (
    <Part title="Decisions">
      {item.decisions.length === 0 && <p>Nobody decided: it expired.</p>}
      <ul className="plain-list">
        {item.decisions.map((vote) => (
          <li key={`${vote.who} ${vote.at}`}>
            <Badge tone={vote.decision === 'approve' ? 'success' : 'error'}>
              {vote.decision === 'approve' ? 'approved' : 'rejected'}
            </Badge>{' '}
            by <Id value={vote.who} />, <Timestamp at={vote.at} />
            {vote.reason && <q className="vote-reason">{vote.reason}</q>}
          </li>
        ))}
      </ul>
      {item.isSelfApproved && <MutedText>Whoever asked has approved it: it is the only key that may decide.</MutedText>}
      {isUsed && item.domain === 'core' && item.approval.preauth_id === null && (
        <p>
          It is used by the run <RunLink id={item.approval.run_id} />.
        </p>
      )}
      {isUsed && item.domain === 'brokerage' && (
        <p>
          What became of it: <TradeLink id={item.id} />.
        </p>
      )}
    </Part>
  )
}

function RuleFacts({ rule }: { rule: InboxItem['rule'] }) {
  const { policy_id, name, version, constraint, limit, asked } = rule
  return (
    <DescriptionList
      items={[
        [
          'Policy or budget',
          policy_id === null ? name : <PolicyLink key="policy" id={policy_id} name={name ?? policy_id} />,
        ],
        ['Version', version],
        ['Constraint', constraint && <code>{constraint}</code>],
        ['Limit', describeValue(limit)],
        ['Asked', describeValue(asked)],
      ]}
    />
  )
}

/** Several rules may ask, and others warn; and a policy may want another key than the one that asked. */
function FurtherReasons({ approval }: { approval: Approval }) {
  const { because = [], warnings = [] } = approval.risk_summary as Partial<Record<string, { reason: string }[]>>
  const reasons = [...(because.length > 1 ? because : []), ...warnings].map(({ reason }) => reason)
  return (
    <>
      {reasons.length > 0 && (
        <ul aria-label="Further reasons">
          {[...new Set(reasons)].map((reason) => (
            <li key={reason}>{reason}</li>
          ))}
        </ul>
      )}
      {approval.separate_approver && <p>Another key than the one that asked has to approve it.</p>}
    </>
  )
}

const describeValue = (value: unknown): string | undefined =>
  value === undefined || value === null ? undefined : typeof value === 'object' ? JSON.stringify(value) : String(value)

function RequestContent({ item }: { item: InboxItem & { domain: 'core' } }) {
  const { approval } = item
  const { text, facts, rest } = splitRequest(approval.request)
  return (
    <>
      <DescriptionList
        items={[
          ['Action', approval.action],
          [approval.preauth_id === null ? 'Lane' : 'Agent', approval.agent_id],
          ['Merchant', approval.merchant],
          ['Amount', formatUsdc(approval.amount_usdc)],
          ['Price now', approval.preauth_id === null && <LanePrice item={item} />],
          ...facts,
        ]}
      />
      {approval.request === undefined && <MutedText>Only keys with the scope control see the request.</MutedText>}
      {approval.request === null && <MutedText>The request is no longer kept.</MutedText>}
      {text && (
        <>
          <h5>{text.name}</h5>
          <TextBlock label={`Text of the ${text.name.toLowerCase()}`}>{text.value}</TextBlock>
        </>
      )}
      {rest && (
        <details>
          <summary>The rest of the request</summary>
          <TextBlock label="The rest of the request as JSON">{rest}</TextBlock>
        </details>
      )}
    </>
  )
}

/** What the lane costs now, beside what it cost when it was asked for. */
function LanePrice({ item }: { item: InboxItem & { domain: 'core' } }) {
  const lane = useLanes().data?.agents.find(({ agent_id }) => agent_id === item.approval.agent_id)
  if (!lane) return null
  // A loop costs what the lane costs, a run that and the fee.
  const priceNow = item.approval.action === 'loop' ? lane.base_price_usdc : lane.price_usdc
  return priceNow === item.amountUsdc ? (
    <>{formatUsdc(priceNow)}, unchanged since asked</>
  ) : (
    <Badge tone="warning">
      {formatUsdc(item.amountUsdc)} when asked, {formatUsdc(priceNow)} now
    </Badge>
  )
}

function TradeContent({ item }: { item: InboxItem & { domain: 'brokerage' } }) {
  const { facts, rest } = splitRequest(item.run.request)
  return (
    <>
      <InstrumentCard run={item.run} />
      <DescriptionList items={facts} />
      {item.run.request === undefined && <MutedText>Only keys with the scope control see the request.</MutedText>}
      {rest && (
        <details>
          <summary>The request as it was sent</summary>
          <TextBlock label="The request as JSON">{rest}</TextBlock>
        </details>
      )}
    </>
  )
}
