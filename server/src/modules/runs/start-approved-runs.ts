import type { TenantCaller } from '../../platform/auth-context.ts'
import { Problem } from '../../platform/problem.ts'
import type { ApprovedRun, StartRefusal } from '../governance/approvals/approvals.ts'
import type { RefusedAssessment } from '../governance/assess/assessment.ts'
import { ASKER_INACTIVE } from '../governance/grants/self-decision.ts'
import { createExecuteRun } from './execute-run.ts'
import type { PaidRequest } from './paid-request.ts'
import type { RunBody } from './paid-unit.ts'
import type { RunDeps } from './run-deps.ts'

export type StartApprovedRunsDeps = RunDeps & {
  /** Takes approved runs that are due, for the time of a lease. */
  claimApprovedRuns(maxRows: number): Promise<ApprovedRun[]>
  /** Ends an approved run as blocked; its approval lapses. */
  refuseApprovedRun(run: ApprovedRun, refusal: StartRefusal): Promise<void>
  /** Tries an approved run again later. */
  delayApprovedRun(run: ApprovedRun, reason: string, milliseconds: number): Promise<void>
  /** The key that made the request, or its rotated successor; undefined when none of them is active. */
  findCaller(tenantId: string, keyId: string): Promise<TenantCaller | undefined>
}

/** How many of these runs a process works on at once; the others wait in the database. */
const MAX_UNDER_WAY = 16
const RETRY_MS = 30_000

export type StartApprovedRuns = ReturnType<typeof createStartApprovedRuns>

/**
 * Starts runs without a caller: their request is in the database, and they go through `executeRun` as any other. The
 * request is due until transaction A uses its approval, so a process that dies before leaves it to the next, and one that
 * dies after leaves a run like any other. If the caller sends the request at the same time, one of the two is admitted.
 */
export function createStartApprovedRuns(deps: StartApprovedRunsDeps) {
  let underWay = 0

  /** A refusal is thrown instead of recorded: the run that waits has a row already. */
  const executeRun = createExecuteRun({
    ...deps,
    recordRefusal: async (_request, assessment) => {
      throw new AssessmentRefused(assessment)
    },
  })

  const start = async (run: ApprovedRun): Promise<void> => {
    try {
      const caller = await deps.findCaller(run.tenantId, run.keyId)
      if (!caller?.scopes.includes('run')) throw new Problem('policy_blocked', ASKER_INACTIVE, { status: 403 })
      const response = await executeRun(toPaidRequest(deps, run, caller))
      // Of the wallet: it may be filled while the approval lasts.
      if (response.status === 402) await deps.delayApprovedRun(run, JSON.parse(response.body).message, RETRY_MS)
    } catch (error) {
      await handleFailure(run, error)
    }
  }

  const handleFailure = async (run: ApprovedRun, error: unknown) => {
    const refusal = toRefusal(error)
    if (refusal) return deps.refuseApprovedRun(run, refusal)
    if (!(error instanceof Problem)) deps.log.error({ err: error, run_id: run.runId }, 'an approved run did not start')
    await deps.delayApprovedRun(run, 'Something was not available when the run was to start.', RETRY_MS)
  }

  return {
    /** Claims due runs and begins them; it does not wait for their end. */
    async sweep(): Promise<number> {
      const room = MAX_UNDER_WAY - underWay
      const runs = room > 0 ? await deps.claimApprovedRuns(room) : []
      for (const run of runs) {
        underWay += 1
        deps.background.start(run.runId, run.tenantId, () =>
          start(run).finally(() => {
            underWay -= 1
          }),
        )
      }
      return runs.length
    },

    /** Waits for the runs that this process has begun. */
    idle: deps.background.idle,
  }
}

class AssessmentRefused extends Error {
  readonly assessment: RefusedAssessment
  constructor(assessment: RefusedAssessment) {
    super(assessment.message)
    this.assessment = assessment
  }
}

/** Why the run is not to be tried again; undefined when it may start later. */
function toRefusal(error: unknown): StartRefusal | undefined {
  if (error instanceof AssessmentRefused) {
    const { assessment } = error
    return { status: 429, error: assessment.error, reason: assessment.message, assessment }
  }
  if (!(error instanceof Problem) || error.options.retryable || error.options.status >= 500) return undefined
  return { status: error.options.status, error: error.error, code: error.options.code, reason: error.message }
}

function toPaidRequest(deps: Pick<RunDeps, 'ids'>, run: ApprovedRun, caller: TenantCaller): PaidRequest {
  const { requestHash, bodyHash, idempotencyKey, quoteToken, tokens } = run.resend
  return {
    kind: run.kind,
    route: run.kind === 'run' ? '/api/run' : '/api/loop',
    caller,
    body: { ...(run.request as RunBody), ...tokens, approval_id: run.approvalId },
    quoteToken,
    requestHash,
    bodyHash,
    idempotencyKey,
    paid: undefined,
    requestId: deps.ids.next('req'),
    // It is under way in the background already.
    respondAsync: false,
    countPayer: async () => {},
    countAddress: async () => {},
    endTurn: () => {},
  }
}
