import type pg from 'pg'
import { createSteps } from '../../platform/batch.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Db } from '../../platform/db.ts'
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
import { createApprovals } from './approvals.ts'
import { createAssessRun } from './assess-run.ts'
import type { AssessmentRequest, RefusedAssessment } from './assessment.ts'
import { createBudgets } from './budgets.ts'
import { createClosePreauth } from './close-preauth.ts'
import { createDecisions } from './decisions.ts'
import { createEvaluateActions } from './evaluate-actions.ts'
import { recordRefusalStep } from './governance.steps.ts'
import { createMandates } from './mandates.ts'
import { createOrphanSweep, type RaiseAlert } from './orphaned-preauths.ts'
import { createAuthorize } from './overrides.ts'
import { createPolicies } from './policies.ts'
import { createPreauths } from './preauths.ts'
import { createRefusals, refusalFields } from './refusals.ts'
import { createRulesCache } from './rules-cache.ts'
import { createSimulate } from './simulate.ts'

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
  receipts: Pick<Receipts, 'sign'>
  /** Absent when no chain can be asked. */
  chain: ChainReader | undefined
  publicUrl: () => string
  /** Where and in what our own runs are paid. */
  network: string
  asset: string
  payTo: string
  approvalWindowSeconds: number
  /** After so many seconds without a close a pre-authorisation is escalated. */
  closeSeconds: number
  keyOf(apiKey: string): Promise<{ tenantId: string; keyId: string } | undefined>
  frozen(tenantId: string, agentId: string): Promise<{ reason: string } | undefined>
  raiseAlert: RaiseAlert
  /** Asks the chain about a run's payment and finishes the run if that settles it. */
  driveRun(runId: string): Promise<void>
}

export type Governance = ReturnType<typeof createGovernance>

/** Nobody spends what they may not, and everybody can see why. */
export function createGovernance(deps: GovernanceDeps) {
  const books = createRulesCache(deps)
  const step = createSteps(deps.pool, deps.metrics)
  const record = createRefusals({ ...deps, books, record: step(recordRefusalStep) })
  const policies = createPolicies({ ...deps, books })
  const approvals = createApprovals({ ...deps, books, record })

  return {
    policies,
    simulate: createSimulate({ ...deps, draft: policies.draft }),
    budgets: createBudgets({ ...deps, books }),
    mandates: createMandates({ ...deps, books }),
    preauths: createPreauths({ ...deps, books, record }),
    closePreauth: createClosePreauth(deps),
    approvals,
    authorize: createAuthorize(deps),
    decisions: createDecisions(deps),

    assess: createAssessRun({ ...deps, books }),
    evaluateActions: createEvaluateActions({ ...deps, books }),

    /** Writes a run's refusal down and gives the answer to it; undefined when it has to be judged anew. */
    async refuse(proposal: AssessmentRequest, ruling: RefusedAssessment): Promise<Problem | undefined> {
      const { caller, kind, requestHash } = proposal
      // The tokens are still good: they are nothing to keep in the clear.
      const { preauth_token: _, override_token: __, ...request } = proposal.request
      const sessionId = proposal.sessionId === '' ? undefined : proposal.sessionId
      const subject = { run: { kind, requestHash, request, sessionId } }
      const recorded = caller.kind === 'guest' ? null : await record(caller, subject, ruling)
      if (recorded === undefined) return undefined
      const approvalId = recorded?.approval_id
      const nextAction =
        approvalId && `Once POST /api/approvals has approved ${approvalId}, send the same request with approval_id.`
      return new Problem(ruling.error, ruling.message, {
        status: 429,
        extra: refusalFields(ruling, recorded),
        ...(nextAction && { nextAction }),
      })
    },

    sweepOrphanedPreauths: createOrphanSweep(deps),
    sweepExpiredApprovals: approvals.sweepExpired,
  }
}
