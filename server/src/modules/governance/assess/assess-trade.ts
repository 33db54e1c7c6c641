import type { TenantCaller } from '../../../platform/auth-context.ts'
import type { Tx } from '../../../platform/db.ts'
import type { Ids } from '../../../platform/ids.ts'
import type { Keys } from '../../../platform/keys.ts'
import { invalid, unavailable } from '../../../platform/problem.ts'
import { readLineage } from '../../tenants/key-lineage.ts'
import { type ApprovalRule, decryptContent, describeRule, encryptContent } from '../approvals/approval-content.ts'
import { recipientsAddedBy } from '../approvals/messages.store.ts'
import { readCounters } from '../counters/limit-counters.store.ts'
import { toLimitHoldItem } from '../counters/limit-hold-item.ts'
import { readMandate } from '../grants/grants.store.ts'
import { type FindCaller, isAskerActive } from '../grants/self-decision.ts'
import { appliesTo, type IdentityType, type Policy } from '../rules/evaluate-policy.ts'
import { findPolicy } from '../rules/policies.store.ts'
import { type Constraints, velocityConstraints } from '../rules/policy-constraints.ts'
import type { RuleResult } from '../rules/rule-result.ts'
import { readKeys, type TenantRules, toPolicy } from '../rules/rules-cache.store.ts'
import type { RulesCache } from '../rules/rules-cache.ts'
import { assessPayment, toAllowedPayment, toRefusal } from './assess-payment.ts'
import { isAuditRequired, requiredReview, smallestChanges, toCounterNeed } from './assessment-outcome.ts'
import { MAX_ATTEMPTS, shouldAssessAgain, waitBeforeRetry } from './assessment-retry.ts'
import { insertTradeDecision } from './decisions.ts'
import type { Freeze } from './evaluate-rules.ts'
import { agentNames, type PaymentFacts, readSpender, type Tags } from './payment-facts.ts'
import { refusalCode } from './refusals.ts'

/** Who trades: the key's tenant and bonds, and what the request names. */
export type TradeParty = {
  tenantId: string
  keyId: string
  agentId: string | null
  spender: string | null
  team: string | null
  tags: Tags
}

/** What rules read of a trade. */
export type GovernedTrade = {
  party: TradeParty
  /** The instrument's type and symbol; lists of instruments name either. */
  type: string
  symbol: string
  /** The names of the merchant of a spend, the broker of any other trade. */
  payees: readonly string[]
  /** The amount of a spend, the notional of any other trade. */
  amountMicro: bigint
  leverage: number | null
  /** The mandate that the request names; it is used alone. */
  namedMandateId: string | null
  freeze: Freeze | undefined
  at: Date
}

/** What the step `admit_trade` holds. */
export type TradeAdmission = {
  holds: ReturnType<typeof toLimitHoldItem>[]
  needs: ReturnType<typeof toCounterNeed>[]
  locks: string[]
  rulesVersion: bigint
  mandateId: string | null
}

/** The listed results, and what follows from them. */
export type TradeAssessment = {
  results: RuleResult[]
  /** A policy that applied wants the answer to wait until it is in the audit chain. */
  auditRequired: boolean
} & (
  | { outcome: 'pass'; admission: TradeAdmission; separateApprover: boolean }
  /** A rule asks for people; `approvalRule` says which one, in words for them. */
  | { outcome: 'review'; message: string; rule: string; approvalRule: ApprovalRule; approvalsRequired: number }
  | {
      outcome: 'refused'
      error: 'budget_exceeded' | 'policy_blocked'
      message: string
      rule: string
      /** The fields of the refusal beside `policy_results`. */
      fields: Record<string, unknown>
    }
)

/** A policy as the limits of trades read it. */
export type TradingPolicy = {
  id: string
  name: string
  status: string
  mode: string
  identityType: IdentityType
  /** Whether the policy is for this trade. */
  isForTrade: boolean
  contentHash: string
  selectable: boolean
  constraints: Constraints
}

export type TradeGovernanceDeps = {
  ids: Ids
  keys: Pick<Keys, 'encrypt' | 'decrypt'>
  rulesCache: RulesCache
  findFreeze(tenantId: string, agentNames: readonly string[]): Promise<Freeze | undefined>
  findCaller: FindCaller
}

export type TradeGovernance = ReturnType<typeof createTradeGovernance>

/** What the brokerage needs of governance. Every function that takes `tx` reads in the transaction that stores the run. */
export const createTradeGovernance = (deps: TradeGovernanceDeps) => ({
  readParty(
    caller: TenantCaller,
    { agentId, spender, tags }: { agentId: string | null; spender: string | undefined; tags: Tags },
  ): TradeParty {
    const { tenantId, keyId, team } = caller
    return { tenantId, keyId, agentId, spender: readSpender(caller, spender, agentId), team, tags }
  },

  /** The freeze that stops this party, if one does. */
  findFreeze: (party: Pick<TradeParty, 'tenantId' | 'agentId' | 'spender'>): Promise<Freeze | undefined> =>
    deps.findFreeze(party.tenantId, agentNames(party)),

  /** Whether the key that asked, or its rotated successor, may still act. */
  isAskerActive: (tenantId: string, keyId: string): Promise<boolean> => isAskerActive(deps.findCaller, tenantId, keyId),

  /** Undefined when the tenant has no policy with this id. */
  async findPolicy(tx: Tx, trade: GovernedTrade, policyId: string): Promise<TradingPolicy | undefined> {
    const { tenantId } = trade.party
    const row = await findPolicy(tx, tenantId, policyId)
    return row && toTradingPolicy(toPolicy(row, readLineage(await readKeys(tx, tenantId))), row.status, trade)
  },

  /** The policies in mode `enforce` that are for this trade. */
  async findEnforcedPolicies(tx: Tx, trade: GovernedTrade): Promise<TradingPolicy[]> {
    const { tenantId, keyId } = trade.party
    const { policies } = await deps.rulesCache.get(tenantId, keyId, tx)
    return policies
      .filter((policy) => policy.mode === 'enforce')
      .map((policy) => toTradingPolicy(policy, 'active', trade))
      .filter(({ isForTrade }) => isForTrade)
  },

  /**
   * Judges the trade by mandates, freezes, budgets and what the policies deny. Limits of policies apply to a trade only
   * where its own limits come from the policy: the brokerage checks those of one trade, and the trade counts in the limits
   * by day, month and minute of the policies in `limitPolicyIds`. `approval`: so many people have approved the trade.
   */
  async assess(
    tx: Tx,
    trade: GovernedTrade,
    limitPolicyIds: readonly string[],
    approval?: { id: string; votes: number },
  ): Promise<TradeAssessment> {
    const { tenantId, keyId } = trade.party
    const namedMandate = trade.namedMandateId === null ? null : await readMandate(tx, tenantId, trade.namedMandateId)
    if (namedMandate === undefined) throw invalid(`There is no mandate '${trade.namedMandateId}'.`)
    const rules = await deps.rulesCache.get(tenantId, keyId, tx)
    const assessment = await assessPayment((counters, at) => readCounters(tx, counters, at), {
      rules: rulesForTrades(rules, new Set(limitPolicyIds)),
      facts: tradeFacts(trade),
      requestedPolicies: { policies: [] },
      namedMandate,
      heldScopes: new Set(),
      freeze: trade.freeze,
      // A trade is not approved by its hash: its run is the approval.
      actionHash: '',
      grants: { approval },
    })
    const auditRequired = isAuditRequired(assessment.evaluation)
    if (!assessment.decidingResult) {
      const { results, holds, needs, rulesVersion, mandateId } = toAllowedPayment(deps.ids, assessment)
      const locks = [...holds, ...needs].map(({ scope }) => `limit:${scope}`)
      const admission = {
        holds: holds.map(toLimitHoldItem),
        needs: needs.map(toCounterNeed),
        locks,
        rulesVersion,
        mandateId,
      }
      const review = requiredReview(assessment.evaluation, assessment.evaluation.results)
      return { outcome: 'pass', results, auditRequired, admission, separateApprover: review?.separateApprover ?? false }
    }
    const refusal = toRefusal(assessment)
    const { results, error, message, review } = refusal
    const { rule } = assessment.decidingResult
    if (review) {
      const { approvalsRequired } = review
      const approvalRule = describeRule(refusal)
      return { outcome: 'review', results, auditRequired, message, rule, approvalRule, approvalsRequired }
    }
    const { policy_id, budget_id, mandate_id, field_required } = assessment.decidingResult
    const code = refusalCode(refusal)
    const fields = {
      ...(code && { code, field_required }),
      decided_by: { policy_id, budget_id: budget_id ?? null, mandate_id: mandate_id ?? null, rule },
      smallest_change: smallestChanges(assessment.results),
    }
    return { outcome: 'refused', results, auditRequired, error, message, rule, fields }
  },

  /** One suggested change for each rule that refused the trade. */
  smallestChanges,

  /** The decision about a trade that is refused or waits. */
  recordDecision: insertTradeDecision,

  /** The recipients of channels that count as the same identity as these keys, because one of them added them. */
  recipientsAddedBy,

  /** The request of a trade that waits is stored as that of any approval. */
  encryptRequest: (request: Record<string, unknown>): string => encryptContent(deps.keys, { request }),
  decryptRequest: (content: string): Record<string, unknown> => decryptContent(deps.keys, content).request,

  /** Calls `work` again while rules or limits change between its assessment and its holds. */
  async retryWhileChanging<T>(tenantId: string, work: () => Promise<T>): Promise<T> {
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
      try {
        return await work()
      } catch (error) {
        if (!shouldAssessAgain(error)) throw error
        deps.rulesCache.invalidate(tenantId)
        await waitBeforeRetry(attempt)
      }
    }
    throw unavailable('The limits of this trade keep changing; nothing was held and no order was sent.', 1)
  },
})

const toTradingPolicy = (policy: Policy, status: string, trade: GovernedTrade): TradingPolicy => ({
  id: policy.id,
  name: policy.name,
  status,
  mode: policy.mode,
  identityType: policy.identity_type,
  // Limits of a policy replace those of the default, so a policy for an agent is for the spender alone.
  isForTrade: appliesTo(policy, { ...tradeFacts(trade), agentId: trade.party.spender }),
  contentHash: policy.content_hash,
  selectable: policy.selectable ?? false,
  constraints: policy.constraints,
})

const tradeFacts = ({ party, type, symbol, payees, amountMicro, leverage, at }: GovernedTrade): PaymentFacts => ({
  kind: 'trade',
  action: 'trade',
  agentId: party.agentId,
  lane: null,
  spender: party.spender,
  team: party.team,
  keyId: party.keyId,
  tags: party.tags,
  amountMicro,
  merchants: payees,
  network: null,
  sessionId: null,
  at,
  // A spend pays a merchant, which a pre-authorisation could do instead; any other trade needs none.
  preauthorised: type !== 'spend',
  instrument: type,
  symbol,
  ...(leverage !== null && { leverage }),
  notionalMicro: amountMicro,
})

/** Limits of one payment, which a trade has from the policy that its limits come from. */
const LIMITS_OF_ONE_TRADE = [
  'max_per_run_usdc',
  'max_notional_usdc',
  'max_leverage',
  'require_approval_above_usdc',
] as const satisfies (keyof Constraints)[]

function rulesForTrades(rules: TenantRules, limitPolicyIds: ReadonlySet<string>): TenantRules {
  const counted = Object.keys(velocityConstraints)
  const isIgnored = (policy: Policy, name: string) =>
    (LIMITS_OF_ONE_TRADE as readonly string[]).includes(name) ||
    (counted.includes(name) && !limitPolicyIds.has(policy.id))
  const policies = rules.policies.map((policy) => ({
    ...policy,
    constraints: Object.fromEntries(
      Object.entries(policy.constraints).filter(([name]) => !isIgnored(policy, name)),
    ) as Constraints,
  }))
  return { ...rules, policies }
}
