import { approvalsDue, preauthsDue, reportedClosesDue } from '../modules/governance/due-work.ts'
import { governanceRoutes } from '../modules/governance/governance.routes.ts'
import { createGovernance } from '../modules/governance/governance.ts'
import type { Alerts } from '../modules/insights/alerts.ts'
import type { FrozenAgents } from '../modules/insights/frozen-agents.ts'
import type { ChainReader } from '../modules/payments/facilitator.ts'
import type { Receipts } from '../modules/receipts/receipts.ts'
import type { Tenants } from '../modules/tenants/tenants.ts'
import type { App } from '../platform/http-app.ts'
import type { AppContext } from './context.ts'
import type { Pruning } from './retention.ts'

// Counters of active payers are made again, so they are not deleted every minute.
const EXPOSURE_MS = 3_600_000

export type GovernanceParts = {
  tenants: Tenants
  receipts: Receipts
  alerts: Alerts
  frozen: FrozenAgents
  chain: { reader: ChainReader | undefined; asset: string; payTo: string }
  driveRun(runId: string): Promise<void>
}

/** Composes the governance module: policies, budgets, mandates, pre-authorisations, approvals and overrides. */
export function composeGovernance(context: AppContext, parts: GovernanceParts) {
  const { tenants, receipts, alerts, frozen, chain, driveRun } = parts
  const { config, jobs, ...platform } = context
  const governance = createGovernance({
    ...platform,
    receipts,
    chain: chain.reader,
    network: 'eip155:8453',
    asset: chain.asset,
    payTo: chain.payTo,
    approvalWindowSeconds: config.APPROVAL_WINDOW_SECONDS,
    closeSeconds: config.PREAUTH_CLOSE_SECONDS,
    findApiKey: (apiKey) => tenants.authenticate.key(apiKey),
    findFreeze: frozen.findFrozen,
    raiseAlert: (alert) => alerts.raise([alert]),
    driveRun,
  })
  return {
    ...governance,
    routes: (app: App) => governanceRoutes(app, governance),
    prune(pruning: Pruning) {
      pruning.every('ended-limits-tidy', governance.pruneEndedLimits)
      pruning.every('exposure-limits-tidy', governance.pruneExposureLimits, EXPOSURE_MS)
    },
    start() {
      jobs.everyDue('orphaned-preauths', preauthsDue, () => governance.sweepOrphanedPreauths())
      // Without a chain there is nobody to ask; the checks wait until one is configured.
      if (chain.reader) jobs.everyDue('reported-closes', reportedClosesDue, () => governance.sweepReportedCloses())
      jobs.everyDue('expired-approvals', approvalsDue, () => governance.sweepExpiredApprovals())
    },
  }
}
