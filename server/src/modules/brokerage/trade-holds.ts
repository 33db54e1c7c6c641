import { callStepWithLocks } from '../../platform/batch.ts'
import type { Tx } from '../../platform/db.ts'
import type { TradeAssessment } from '../governance/assess/assess-trade.ts'
import type { StoredHold } from '../governance/counters/counted-by.ts'
import type { RuleResult } from '../governance/rules/rule-result.ts'
import { admitTradeStep, settleTradeStep } from './brokerage.steps.ts'
import type { TradeRun } from './trade-run-record.ts'

/**
 * Holds what the trade may spend in every counter that applies, in the row of its run. It is called in the transaction
 * after which the order may be sent: the one that admits the run, or the one that approves it.
 */
export async function holdForTrade(
  tx: Tx,
  run: TradeRun,
  { admission, results }: Extract<TradeAssessment, { outcome: 'pass' }>,
  at: Date,
): Promise<TradeRun> {
  const input = {
    run_id: run.id,
    tenant_id: run.tenantId,
    at: at.toISOString(),
    rules_version: admission.rulesVersion.toString(),
    holds: admission.holds,
    needs: admission.needs,
    mandate_id: admission.mandateId,
    policy_results: results,
  }
  const answer = await callStepWithLocks(tx, admitTradeStep, input, admission.locks)
  return {
    ...run,
    mandateId: admission.mandateId,
    holds: answer.holds as StoredHold[],
    policyResults: answer.policy_results as RuleResult[],
  }
}

/** Ends the holds of a run when its outcome is recorded: `spentMicro` was filled, null when nothing was. */
export async function settleHolds(tx: Tx, run: TradeRun, spentMicro: bigint | null): Promise<void> {
  if (run.holds.length === 0) return
  const input = { run_id: run.id, spent_micro: spentMicro?.toString() ?? null }
  await callStepWithLocks(tx, settleTradeStep, input, holdLocks([run]))
}

/** The locks of the counters in which these runs hold something. */
export const holdLocks = (runs: readonly Pick<TradeRun, 'holds'>[]): string[] =>
  runs.flatMap((run) => run.holds.map(({ scope }) => `limit:${scope}`))
