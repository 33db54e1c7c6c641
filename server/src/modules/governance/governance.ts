import type pg from 'pg'
import { createSteps } from '../../platform/batch.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Db } from '../../platform/db.ts'
import type { Ids } from '../../platform/ids.ts'
import type { Keys } from '../../platform/keys.ts'
import type { Metrics } from '../../platform/metrics.ts'
import type { Notify } from '../../platform/notify.ts'
import { Problem } from '../../platform/problem.ts'
import { createAssessRun } from './assess-run.ts'
import { createBooks } from './book.ts'
import { createRefusals, refusalFields } from './refusals.ts'
import type { Proposal, Refused } from './ruling.ts'

export type GovernanceDeps = {
  db: Db
  pool: Pick<pg.Pool, 'query'>
  clock: Clock
  ids: Ids
  keys: Keys
  notify: Pick<Notify, 'listen'>
  metrics: Metrics
  /** Where our own runs are paid. */
  network: string
  payTo: string
  approvalWindowSeconds: number
  frozen(tenantId: string, agentId: string): Promise<{ reason: string } | undefined>
}

export type Governance = ReturnType<typeof createGovernance>

export function createGovernance(deps: GovernanceDeps) {
  const books = createBooks(deps)
  const step = createSteps(deps.pool, deps.metrics)
  const record = createRefusals({ ...deps, books, record: step('record_refusal') })

  return {
    assess: createAssessRun({ ...deps, books }),

    /** Writes a run's refusal down and gives the answer to it; undefined when it has to be judged anew. */
    async refuse(proposal: Proposal, ruling: Refused): Promise<Problem | undefined> {
      const { caller, kind, requestHash, request } = proposal
      const sessionId = proposal.sessionId === '' ? undefined : proposal.sessionId
      const recorded =
        caller.kind === 'guest'
          ? null
          : await record(caller, { run: { kind, requestHash, request, sessionId } }, ruling)
      if (recorded === undefined) return undefined
      return new Problem(ruling.error, ruling.message, {
        status: 429,
        extra: refusalFields(ruling, recorded),
        ...(recorded?.approval_id && {
          nextAction: `Once POST /api/approvals has approved ${recorded.approval_id}, send the same request with approval_id.`,
        }),
      })
    },
  }
}
