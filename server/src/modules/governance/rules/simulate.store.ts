import { type NotNull, sql } from 'kysely'
import type { Tx } from '../../../platform/db.ts'
import { toPage } from '../../../platform/paging.ts'
import type { AssessmentSummary } from '../assess/assessment.ts'
import { type Merchant, merchantNames, OWN_MERCHANT, type PaymentFacts, type Tags } from '../assess/payment-facts.ts'
import { preauthLane, toPayee } from '../preauths/preauth-terms.ts'
import type { RuleResult } from './rule-result.ts'

export type RecordedOutcome = Pick<RuleResult, 'policy_id' | 'outcome' | 'verdict' | 'mode'>

/** A past decision: its payment, its position in the order of decisions, its rule results and its end. */
export type PastDecision = {
  /** The id of the run or pre-authorisation; its holds are kept under this id. */
  id: string
  runId: string
  facts: PaymentFacts
  decidedSeq: bigint
  endedSeq: bigint | null
  ran: boolean
  /** The result of the payment; null while it has not ended. */
  end: { success: boolean; chargedMicro: bigint } | null
  outcome: string
  /** The different outcomes of its rules; `policy_id` is null unless it is the replaced policy. */
  results: RecordedOutcome[]
  approvalId: string | null
  overrideId: string | null
  /** The pre-authorisation whose holds the run took over. */
  preauthId: string | null
}

/** `replaces`: the policy whose own outcomes are told apart from those of the others. */
export type PastDecisionsQuery = { since?: Date; until?: Date; limit: number; replaces: string | null }

/** The network and address that this service is paid on; rules can match the address too. */
export type ServicePayee = { network: string; payTo: string; isLane(agentId: string): boolean }

/** The newest decisions about runs, loops and pre-authorisations, in their original order. */
export async function readPastDecisions(
  tx: Tx,
  tenantId: string,
  query: PastDecisionsQuery,
  servicePayee: ServicePayee,
): Promise<{ past: PastDecision[]; has_more: boolean }> {
  const [runs, preauths] = await Promise.all([
    readPastRuns(tx, tenantId, query, servicePayee),
    readPastPreauths(tx, tenantId, query, servicePayee),
  ])
  // After their prefix, ids begin with their time, so runs and pre-authorisations sort together.
  const newest = [...runs, ...preauths].sort((a, b) => (sortableTime(b.id) < sortableTime(a.id) ? -1 : 1))
  const { rows, has_more } = toPage(newest, query.limit)
  return { past: rows.sort((a, b) => (a.decidedSeq < b.decidedSeq ? -1 : 1)), has_more }
}

const sortableTime = (id: string) => id.slice(id.indexOf('_') + 1)

async function readPastRuns(
  tx: Tx,
  tenantId: string,
  { since, until, limit, replaces }: PastDecisionsQuery,
  servicePayee: ServicePayee,
): Promise<PastDecision[]> {
  let query = tx
    .selectFrom('runs')
    .select([
      'id',
      'kind',
      'action',
      'agent_id',
      'state',
      'outcome',
      'price_micro',
      'created_at',
      'decided_seq',
      'ended_seq',
    ])
    // Without the trace and the task, which may be large.
    .select([
      sql<Omit<AssessmentSummary, 'policy_applied'>>`(terms->'ruling') - 'policy_applied'`.as('ruling'),
      sql<RecordedOutcome[]>`recorded_outcomes(tenant_id, terms->'ruling', ${replaces})`.as('results'),
      sql<string | null>`request->>'session_id'`.as('session_id'),
    ])
    .where('tenant_id', '=', tenantId)
    .where('kind', 'in', ['run', 'loop'])
    .where('decided_seq', 'is not', null)
    .$narrowType<{
      id: NotNull
      kind: NotNull
      action: NotNull
      agent_id: NotNull
      state: NotNull
      outcome: NotNull
      price_micro: NotNull
      created_at: NotNull
    }>()
  if (since) query = query.where('created_at', '>=', since)
  if (until) query = query.where('created_at', '<=', until)
  const rows = await query
    .orderBy('id', 'desc')
    .limit(limit + 1)
    .execute()
  return rows.map((row) => {
    const assessment = row.ruling
    return {
      id: row.id,
      runId: row.id,
      facts: {
        kind: row.kind as 'run' | 'loop',
        action: row.action,
        agentId: row.agent_id,
        lane: row.agent_id,
        spender: assessment.spender ?? null,
        team: assessment.team ?? null,
        keyId: assessment.asked_by ?? null,
        tags: assessment.tags ?? {},
        mandateId: assessment.mandate_id ?? null,
        amountMicro: row.price_micro,
        merchants: [assessment.merchant ?? OWN_MERCHANT, servicePayee.payTo.toLowerCase()],
        network: servicePayee.network,
        sessionId: row.session_id,
        at: new Date(assessment.decided_at ?? row.created_at),
        preauthorised: (assessment.preauth_id ?? null) !== null,
      },
      decidedSeq: row.decided_seq!,
      endedSeq: row.ended_seq,
      ran: ['executing', 'settling', 'completed', 'failed'].includes(row.state),
      end:
        row.state === 'completed'
          ? { success: true, chargedMicro: row.price_micro }
          : row.state === 'failed'
            ? { success: false, chargedMicro: 0n }
            : null,
      outcome: row.outcome,
      results: row.results,
      // Members that are null are left out of an ended run.
      approvalId: assessment.approval_id ?? null,
      overrideId: assessment.override_id ?? null,
      preauthId: assessment.preauth_id ?? null,
    }
  })
}

async function readPastPreauths(
  tx: Tx,
  tenantId: string,
  { since, until, limit, replaces }: PastDecisionsQuery,
  servicePayee: ServicePayee,
): Promise<PastDecision[]> {
  let query = tx
    .selectFrom('preauths')
    .select(['id', 'run_id', 'agent_id', 'amount_micro', 'merchant', 'network', 'issued_at', 'created_at', 'asked_by'])
    .select(['spender', 'team', 'tags', 'mandate_id'])
    .select(['decided_seq', 'ended_seq', 'status', 'close_outcome', 'charged_micro', 'approval_id', 'override_id'])
    .select(
      sql<
        RecordedOutcome[]
      >`recorded_outcomes(tenant_id, jsonb_build_object('policy_applied', policy_results), ${replaces})`.as('results'),
    )
    .where('tenant_id', '=', tenantId)
  if (since) query = query.where('created_at', '>=', since)
  if (until) query = query.where('created_at', '<=', until)
  const rows = await query
    .orderBy('id', 'desc')
    .limit(limit + 1)
    .execute()
  return rows.map((row) => ({
    id: row.id,
    runId: row.run_id,
    facts: {
      kind: 'preauth' as const,
      action: 'pre-auth',
      agentId: row.agent_id,
      lane: preauthLane({ agentId: row.agent_id, merchant: row.merchant as Merchant }, servicePayee),
      spender: row.spender ?? row.agent_id,
      team: row.team,
      keyId: row.asked_by,
      tags: (row.tags ?? {}) as Tags,
      mandateId: row.mandate_id,
      amountMicro: row.amount_micro,
      merchants: merchantNames(toPayee(row.merchant as Merchant, servicePayee.payTo)),
      payTo: toPayee(row.merchant as Merchant, servicePayee.payTo).pay_to ?? null,
      network: row.network,
      sessionId: null,
      at: row.issued_at ?? row.created_at,
      preauthorised: true,
    },
    decidedSeq: row.decided_seq!,
    endedSeq: row.ended_seq,
    ran: ['open', 'in_use', 'escalated', 'closed'].includes(row.status),
    end:
      row.status === 'closed' ? { success: row.close_outcome === 'settled', chargedMicro: row.charged_micro! } : null,
    outcome: row.status,
    results: row.results,
    approvalId: row.approval_id,
    overrideId: row.override_id,
    preauthId: null,
  }))
}
