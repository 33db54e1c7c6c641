import type { Clock } from '../../platform/clock.ts'
import type { Db } from '../../platform/db.ts'
import type { Alerts, Finding } from './alerts.ts'
import { findingOf, readOutlooks, sampleBudgets } from './budget-watch.ts'
import {
  findFailingWebhooks,
  findOrphans,
  findUnknownSettlements,
  findUsersOf,
  type LaneRecord,
  readLaneRecords,
} from './predict.store.ts'

const MOST_AT_ONCE = 500
const WEBHOOK_FAILING_MS = 5 * 60_000
const SETTLEMENT_UNKNOWN_MS = 60_000
const SETTLEMENT_CRITICAL_MS = 10 * 60_000
const LANE_WINDOW_MS = 2 * 3_600_000
const LANE_LEAST_RUNS = 10
const LANE_FAILING_SHARE = 0.2

/**
 * Looks over the service's own rows for what a tenant should know before it hurts. Any number of processes may look at
 * once, and as often as they like: a cause is told once.
 */
export function createPredictions(deps: { db: Db; clock: Clock; alerts: Pick<Alerts, 'raise'> }) {
  const find = async (now: Date): Promise<Finding[]> => {
    const outlooks = await readOutlooks(deps.db, now)
    await sampleBudgets(deps.db, outlooks, now)
    return [
      ...outlooks.flatMap((outlook) => findingOf(outlook, now) ?? []),
      ...(await findOrphans(deps.db, MOST_AT_ONCE)).map(orphanFinding),
      ...(await unknownSettlements(now)).map((row) => settlementFinding(row, now)),
      ...(await findFailingWebhooks(deps.db, before(now, WEBHOOK_FAILING_MS), MOST_AT_ONCE)).map(webhookFinding),
      ...(await degradedLanes(now)),
    ]
  }

  const unknownSettlements = (now: Date) =>
    findUnknownSettlements(
      deps.db,
      before(now, SETTLEMENT_UNKNOWN_MS),
      before(now, SETTLEMENT_CRITICAL_MS),
      MOST_AT_ONCE,
    )

  const degradedLanes = async (now: Date): Promise<Finding[]> => {
    const since = before(now, LANE_WINDOW_MS)
    const findings: Finding[] = []
    for (const lane of (await readLaneRecords(deps.db, since)).filter(isDegraded)) {
      const cause = `lane_degraded:${lane.agent_id}:${now.toISOString().slice(0, 10)}`
      const users = await findUsersOf(deps.db, lane.agent_id, since, cause, MOST_AT_ONCE)
      findings.push(...users.map(({ tenant_id }) => laneFinding(lane, tenant_id, cause)))
    }
    return findings
  }

  return {
    /** Answers how many alerts are new. */
    sweep: async (): Promise<number> => deps.alerts.raise(await find(deps.clock.now())),
  }
}

const before = (now: Date, milliseconds: number) => new Date(now.getTime() - milliseconds)

type Orphan = Awaited<ReturnType<typeof findOrphans>>[number]
const orphanFinding = (row: Orphan): Finding => ({
  tenantId: row.tenant_id,
  severity: 'critical',
  type: 'preauth_orphaned',
  message: `Pre-authorisation ${row.id} of agent '${row.agent_id}' was not closed in time; its hold stays until somebody closes it.`,
  data: {
    preauth_id: row.id,
    run_id: row.run_id,
    agent_id: row.agent_id,
    merchant: row.merchant_id,
    amount: row.amount_micro.toString(),
    escalated_at: row.escalated_at?.toISOString() ?? null,
  },
  cause: `preauth_orphaned:${row.id}`,
})

type Unknown = Awaited<ReturnType<typeof findUnknownSettlements>>[number]
const settlementFinding = (row: Unknown, now: Date): Finding => ({
  tenantId: row.tenant_id,
  severity: now.getTime() - row.created_at.getTime() >= SETTLEMENT_CRITICAL_MS ? 'critical' : 'warning',
  type: 'settlement_unknown',
  message: `It is not known yet whether the payment of run ${row.run_id} arrived; the service keeps asking the chain.`,
  data: { settlement_id: row.id, run_id: row.run_id, amount: row.amount_micro.toString(), attempts: row.attempts },
  cause: `settlement_unknown:${row.id}`,
})

type Failing = Awaited<ReturnType<typeof findFailingWebhooks>>[number]
const webhookFinding = (row: Failing): Finding => {
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

/** With 95 % confidence more than one in five fails: three bad runs of four are not yet an outage. */
function isDegraded({ completed, failed }: LaneRecord): boolean {
  const total = Number(completed + failed)
  if (total < LANE_LEAST_RUNS) return false
  const z = 1.96
  const share = Number(failed) / total
  const centre = share + (z * z) / (2 * total)
  const spread = z * Math.sqrt((share * (1 - share) + (z * z) / (4 * total)) / total)
  return (centre - spread) / (1 + (z * z) / total) > LANE_FAILING_SHARE
}

const laneFinding = (lane: LaneRecord, tenantId: string, cause: string): Finding => ({
  tenantId,
  severity: 'warning',
  type: 'lane_degraded',
  message: `Lane '${lane.agent_id}' is failing: ${lane.failed} of its last ${lane.completed + lane.failed} runs did not complete.`,
  data: { agent_id: lane.agent_id, completed: Number(lane.completed), failed: Number(lane.failed) },
  cause,
})
