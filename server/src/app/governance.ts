import { governanceRoutes } from '../modules/governance/governance.routes.ts'
import { createGovernance } from '../modules/governance/governance.ts'
import type { Alerts } from '../modules/insights/alerts.ts'
import type { FrozenAgents } from '../modules/insights/frozen-agents.ts'
import type { ChainReader } from '../modules/payments/facilitator.ts'
import type { Receipts } from '../modules/receipts/receipts.ts'
import type { Tenants } from '../modules/tenants/tenants.ts'
import type { App } from '../platform/http-app.ts'
import type { AppContext } from './context.ts'

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
    start() {
      jobs.every('orphaned-preauths', 1_000, () => governance.sweepOrphanedPreauths())
      jobs.every('expired-approvals', 1_000, () => governance.sweepExpiredApprovals())
    },
  }
}
