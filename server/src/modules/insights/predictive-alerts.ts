import type { Clock } from '../../platform/clock.ts'
import type { Db } from '../../platform/db.ts'
import { wilsonInterval } from '../../platform/wilson.ts'
import type { Alerts, Finding } from './alerts.ts'
import { readOutlooks, sampleBudgets, toBudgetFinding } from './budget-watch.ts'
import {
  findFailingWebhooks,
  findLaneUsers,
  findOrphanedPreauths,
  findUnknownSettlements,
  type LaneOutcomes,
  readLaneOutcomes,
} from './predictive-alerts.store.ts'

const MAX_PER_SWEEP = 500
const WEBHOOK_FAILING_MS = 5 * 60_000
const SETTLEMENT_UNKNOWN_MS = 60_000
const SETTLEMENT_CRITICAL_MS = 10 * 60_000
const LANE_WINDOW_MS = 2 * 3_600_000
const LANE_MIN_RUNS = 10
const LANE_FAILING_SHARE = 0.2

/**
 * Searches the database for conditions a tenant should know of early: budgets about to run out, orphaned
 * pre-authorisations, unknown settlements, failing webhooks and degraded lanes. Any number of processes may sweep at once
 * and as often as they like: one cause raises one alert.
 */
export function createPredictiveAlerts(deps: { db: Db; clock: Clock; alerts: Pick<Alerts, 'raise'> }) {
  const collectFindings = async (now: Date): Promise<Finding[]> => {
    const outlooks = await readOutlooks(deps.db, now)
    await sampleBudgets(deps.db, outlooks, now)
    return [
      ...outlooks.flatMap((outlook) => toBudgetFinding(outlook, now) ?? []),
      ...(await findOrphanedPreauths(deps.db, MAX_PER_SWEEP)).map(toOrphanFinding),
      ...(await readUnknownSettlements(now)).map((row) => toSettlementFinding(row, now)),
      ...(await findFailingWebhooks(deps.db, msBefore(now, WEBHOOK_FAILING_MS), MAX_PER_SWEEP)).map(toWebhookFinding),
      ...(await findDegradedLanes(now)),
    ]
  }

  const readUnknownSettlements = (now: Date) =>
    findUnknownSettlements(
      deps.db,
      msBefore(now, SETTLEMENT_UNKNOWN_MS),
      msBefore(now, SETTLEMENT_CRITICAL_MS),
      MAX_PER_SWEEP,
    )

  const findDegradedLanes = async (now: Date): Promise<Finding[]> => {
    const since = msBefore(now, LANE_WINDOW_MS)
    const findings: Finding[] = []
    for (const lane of (await readLaneOutcomes(deps.db, since)).filter(isDegraded)) {
      const cause = `lane_degraded:${lane.agent_id}:${now.toISOString().slice(0, 10)}`
      const users = await findLaneUsers(deps.db, lane.agent_id, since, cause, MAX_PER_SWEEP)
      findings.push(...users.map(({ tenant_id }) => toLaneFinding(lane, tenant_id, cause)))
    }
    return findings
  }

  return {
    /** Returns the number of new alerts. */
    sweep: async (): Promise<number> => deps.alerts.raise(await collectFindings(deps.clock.now())),
  }
}

const msBefore = (now: Date, milliseconds: number) => new Date(now.getTime() - milliseconds)

/** Who spends, in the data of an alert about a payment. */
const payerOf = ({ spender, team, tags }: { spender: string | null; team: string | null; tags: unknown }) => ({
  spender,
  team,
  tags: tags ?? {},
})

type OrphanedPreauth = Awaited<ReturnType<typeof findOrphanedPreauths>>[number]
const toOrphanFinding = (row: OrphanedPreauth): Finding => ({
  tenantId: row.tenant_id,
  severity: 'critical',
  type: 'preauth_orphaned',
  message: `Pre-authorisation ${row.id} of agent '${row.agent_id}' was not closed in time; its hold stays until it is closed.`,
  data: {
    preauth_id: row.id,
    run_id: row.run_id,
    agent_id: row.agent_id,
    ...payerOf(row),
    merchant: row.merchant_id,
    amount: row.amount_micro.toString(),
    escalated_at: row.escalated_at?.toISOString() ?? null,
  },
  cause: `preauth_orphaned:${row.id}`,
})

type UnknownSettlement = Awaited<ReturnType<typeof findUnknownSettlements>>[number]
const toSettlementFinding = (row: UnknownSettlement, now: Date): Finding => ({
  tenantId: row.tenant_id,
  severity: now.getTime() - row.created_at.getTime() >= SETTLEMENT_CRITICAL_MS ? 'critical' : 'warning',
  type: 'settlement_unknown',
  message: `It is not known yet whether the payment of run ${row.run_id} arrived; the service keeps asking the chain.`,
  data: {
    settlement_id: row.id,
    run_id: row.run_id,
    agent_id: row.agent_id,
    ...payerOf(row),
    amount: row.amount_micro.toString(),
    attempts: row.attempts,
  },
  cause: `settlement_unknown:${row.id}`,
})

type FailingWebhook = Awaited<ReturnType<typeof findFailingWebhooks>>[number]
const toWebhookFinding = (row: FailingWebhook): Finding => {
  const data = { webhook_id: row.id, url: row.url, failures: row.failures, disabled_reason: row.disabled_reason }
  if (row.disabled_at)
    return {
      tenantId: row.tenant_id,
      severity: 'critical',
      type: 'webhook_disabled',
      message:
        row.disabled_reason === 'gone'
          ? `Webhook ${row.id} was switched off: its target answered 410.`
          : `Webhook ${row.id} was switched off: its target failed for about a day.`,
      data,
      cause: row.cause,
    }
  return {
    tenantId: row.tenant_id,
    severity: 'warning',
    type: 'webhook_failing',
    message: `Webhook ${row.id} has been failing since ${row.failing_since!.toISOString()}.`,
    data,
    cause: row.cause,
  }
}

/** With 95 % confidence more than one run in five fails: three failures in four runs are not yet an outage. */
function isDegraded({ completed, failed }: LaneOutcomes): boolean {
  const total = Number(completed + failed)
  if (total < LANE_MIN_RUNS) return false
  return wilsonInterval(Number(failed) / total, total).low > LANE_FAILING_SHARE
}

const toLaneFinding = (lane: LaneOutcomes, tenantId: string, cause: string): Finding => ({
  tenantId,
  severity: 'warning',
  type: 'lane_degraded',
  message: `Lane '${lane.agent_id}' is failing: ${lane.failed} of its last ${lane.completed + lane.failed} runs did not complete.`,
  data: { agent_id: lane.agent_id, completed: Number(lane.completed), failed: Number(lane.failed) },
  cause,
})
