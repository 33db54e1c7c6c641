import type pg from 'pg'
import type { AwaitAudit } from '../../platform/audit-link.ts'
import { createSteps } from '../../platform/batch.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Db, Tx } from '../../platform/db.ts'
import type { Idempotency } from '../../platform/idempotency.ts'
import type { Ids } from '../../platform/ids.ts'
import type { Keys } from '../../platform/keys.ts'
import type { Log } from '../../platform/log.ts'
import type { Metrics } from '../../platform/metrics.ts'
import type { Notifications } from '../../platform/notifications.ts'
import type { Outbox } from '../../platform/outbox.ts'
import { Problem } from '../../platform/problem.ts'
import type { ChainReader } from '../payments/facilitator.ts'
import type { Receipts } from '../receipts/receipts.ts'
import type { ApprovalContent } from './approvals/approval-content.ts'
import { createApprovalLinks, type LinkedTrades } from './approvals/approval-links.ts'
import { createApprovals } from './approvals/approvals.ts'
import { createApprovalChannels } from './approvals/channels.ts'
import { createApprovalDecider, findApprovalNotice } from './approvals/linked-approvals.ts'
import { createMessageWorker, type Senders } from './approvals/message-worker.ts'
import { deleteOldMessages, queueApprovalMessages } from './approvals/messages.store.ts'
import { createAssessRun } from './assess/assess-run.ts'
import { createTradeGovernance } from './assess/assess-trade.ts'
import type { AssessmentRequest, RefusedAssessment } from './assess/assessment.ts'
import { createDecisions } from './assess/decisions.ts'
import { createEvaluateActions } from './assess/evaluate-actions.ts'
import type { Freeze } from './assess/evaluate-rules.ts'
import { awaitRefusalAudit, createRefusals, refusalCode, refusalFields } from './assess/refusals.ts'
import { createBudgets } from './counters/budgets.ts'
import {
  groupCounterReads,
  groupSettledReads,
  pruneEndedLimits,
  pruneExposureLimits,
} from './counters/limit-counters.store.ts'
import { recordRefusalStep } from './governance.steps.ts'
import { createAuthorize } from './grants/authorize.ts'
import type { FindCaller } from './grants/self-decision.ts'
import { createMandates } from './mandates/mandates.ts'
import { createClosePreauth } from './preauths/close-preauth.ts'
import { createOrphanSweep, type RaiseAlert } from './preauths/orphaned-preauths.ts'
import { createPreauths } from './preauths/preauths.ts'
import { createSweepReportedCloses } from './preauths/reported-closes.ts'
import { createPolicies } from './rules/policies.ts'
import { createRulesCache } from './rules/rules-cache.ts'
import { createSimulate } from './rules/simulate.ts'

// A counter is read only while its window lasts; it is kept longer for whoever looks into a dispute.
const ENDED_LIMITS_MS = 35 * 24 * 60 * 60 * 1000
const PRUNE_BATCH = 5_000
const MESSAGES_MS = 30 * 24 * 60 * 60 * 1000
// Each is deleted under a lock of its own, of which a transaction has room for some thousands.
const EXPOSURE_BATCH = 500

export type GovernanceDeps = {
  db: Db
  pool: Pick<pg.Pool, 'query'>
  clock: Clock
  ids: Ids
  keys: Keys
  log: Log
  notifications: Pick<Notifications, 'listen'>
  metrics: Metrics
  outbox: Outbox
  idempotency: Idempotency
  receipts: Pick<Receipts, 'sign' | 'findPayerOwner'>
  /** Absent when no chain is configured. */
  chain: ChainReader | undefined
  publicUrl: () => string
  /** The network, asset and address that runs are paid in. */
  network: string
  asset: string
  payTo: string
  approvalWindowSeconds: number
  /** A link ends with its approval, or after this many seconds when that is earlier. */
  linkSeconds: number | undefined
  /** How messages about approvals leave the service. */
  senders: Senders
  /** Refuses an address that leads into the operator's network; the rules are those of webhooks. */
  checkTargetUrl(url: string): string
  /** Trades that wait for an approval, which reach people through the same channels. */
  linkedTrades(): LinkedTrades
  generateSigningSecret(): string
  /** For how many days the request of an approval that ended is kept. */
  contentDays: number
  /** A pre-authorisation that is not closed after this many seconds is escalated. */
  closeSeconds: number
  findApiKey(apiKey: string): Promise<{ tenantId: string; keyId: string } | undefined>
  findFreeze(tenantId: string, agentNames: readonly string[]): Promise<Freeze | undefined>
  /** The key of a stored request, or its rotated successor; undefined when none is active. */
  findCaller: FindCaller
  isLane(agentId: string): boolean
  raiseAlert: RaiseAlert
  awaitAudit: AwaitAudit
  /** Reads a run's payment from the chain and completes the run if it is settled. */
  driveRun(runId: string): Promise<void>
}

export type Governance = ReturnType<typeof createGovernance>

/** Decides which payments are allowed, and records why others are refused. */
export function createGovernance(deps: GovernanceDeps) {
  const rulesCache = createRulesCache(deps)
  const readCounters = groupCounterReads(deps.db)
  const step = createSteps(deps.pool, deps.metrics)
  const record = createRefusals({ ...deps, rulesCache, record: step(recordRefusalStep) })
  const policies = createPolicies({ ...deps, rulesCache })
  const approvals = createApprovals({ ...deps, rulesCache, record })
  const approvalDecider = createApprovalDecider(deps, approvals)
  const messageWorker = createMessageWorker({
    ...deps,
    findNotice: async (tx, tenantId, domain, approvalId) =>
      domain === 'core'
        ? findApprovalNotice(tx, tenantId, approvalId)
        : deps.linkedTrades().findNotice(tx, tenantId, approvalId),
  })

  return {
    policies,
    simulate: createSimulate({ ...deps, draft: policies.draft }),
    budgets: createBudgets({ ...deps, rulesCache }),
    mandates: createMandates({ ...deps, rulesCache }),
    preauths: createPreauths({ ...deps, rulesCache, record }),
    closePreauth: createClosePreauth(deps),
    approvals,
    approvalChannels: createApprovalChannels({ ...deps, sendsMail: deps.senders.mail !== undefined }),
    approvalLinks: createApprovalLinks({
      ...deps,
      findDecider: (domain) => (domain === 'core' ? approvalDecider : deps.linkedTrades()),
    }),
    queueTradeMessages: (tx: Tx, tenantId: string, runId: string, at: Date) =>
      queueApprovalMessages(tx, tenantId, 'rh', runId, at),
    messageWorker,
    authorize: createAuthorize(deps),
    decisions: createDecisions(deps),

    trades: createTradeGovernance({ ...deps, rulesCache }),
    assess: createAssessRun({ ...deps, rulesCache, readCounters }),
    evaluateActions: createEvaluateActions({ ...deps, rulesCache, readCounters }),

    /** Records the refusal of a run and returns the error response; undefined when the run has to be assessed again. */
    async refuse(request: AssessmentRequest, assessment: RefusedAssessment): Promise<Problem | undefined> {
      const { caller, kind, requestHash } = request
      const sessionId = request.sessionId === '' ? undefined : request.sessionId
      const paymentMethod: 'wallet' | 'x402' = request.request.payment === undefined ? 'x402' : 'wallet'
      const subject = { run: { kind, requestHash, sessionId, paymentMethod }, content: toRunContent(request) }
      const recordedRefusal = caller.kind === 'guest' ? null : await record(caller, subject, assessment)
      if (recordedRefusal === undefined) return undefined
      const audit =
        caller.kind === 'guest' || recordedRefusal === null
          ? {}
          : await awaitRefusalAudit(deps.awaitAudit, caller, assessment, recordedRefusal)
      const approvalId = recordedRefusal?.approval_id
      const nextAction = approvalId && describeNextAction(approvalId, recordedRefusal.run_id, paymentMethod)
      return new Problem(assessment.error, assessment.message, {
        status: 429,
        code: refusalCode(assessment),
        extra: { ...refusalFields(assessment, recordedRefusal), ...audit },
        ...(nextAction && { nextAction }),
      })
    },

    sweepOrphanedPreauths: createOrphanSweep(deps),
    sweepReportedCloses: createSweepReportedCloses(deps),
    pruneEndedLimits: () =>
      pruneEndedLimits(deps.db, new Date(deps.clock.now().getTime() - ENDED_LIMITS_MS), PRUNE_BATCH),
    readSettledMicro: groupSettledReads(deps.db),
    pruneExposureLimits: () => pruneExposureLimits(deps.db, EXPOSURE_BATCH),
    sweepExpiredApprovals: approvals.sweepExpired,
    pruneMessages: () => deleteOldMessages(deps.db, new Date(deps.clock.now().getTime() - MESSAGES_MS), PRUNE_BATCH),
    pruneApprovalContent: approvals.pruneContent,
  }
}

/** The whole request, with what identifies it; its tokens are kept for the service alone. */
function toRunContent({ request, requestHash, resend }: AssessmentRequest): ApprovalContent {
  const { preauth_token, override_token, approval_id: _, ...shownRequest } = request as RequestTokens
  const tokens = { preauth_token, override_token }
  return { request: shownRequest, ...(resend && { resend: { requestHash, ...resend, tokens } }) }
}

type RequestTokens = Record<string, unknown> & { preauth_token?: string; override_token?: string }

const describeNextAction = (approvalId: string, runId: string, paymentMethod: 'wallet' | 'x402') =>
  paymentMethod === 'wallet'
    ? `Once POST /api/approvals has approved ${approvalId}, the run starts by itself: its answer is at GET /api/runs/${runId}, and the same request with approval_id gets it too.`
    : `Once POST /api/approvals has approved ${approvalId}, send the same request with approval_id and a payment.`
