import type { App } from '../../platform/http-app.ts'
import type { Log } from '../../platform/log.ts'
import { approvalPageRoutes } from './approvals/approval-page.routes.ts'
import { approvalsRoutes } from './approvals/approvals.routes.ts'
import { approvalChannelsRoutes } from './approvals/channels.routes.ts'
import { decisionsRoutes } from './assess/decisions.routes.ts'
import { budgetsRoutes } from './counters/budgets.routes.ts'
import type { Governance } from './governance.ts'
import { authorizeRoutes } from './grants/authorize.routes.ts'
import { mandatesRoutes } from './mandates/mandates.routes.ts'
import { preauthsRoutes } from './preauths/preauths.routes.ts'
import { policiesRoutes } from './rules/policies.routes.ts'

export function governanceRoutes(app: App, governance: Governance, log: Pick<Log, 'error'>) {
  policiesRoutes(app, governance)
  budgetsRoutes(app, governance.budgets)
  mandatesRoutes(app, governance.mandates)
  preauthsRoutes(app, governance)
  authorizeRoutes(app, governance.authorize)
  approvalsRoutes(app, governance.approvals)
  approvalChannelsRoutes(app, governance.approvalChannels)
  approvalPageRoutes(app, governance.approvalLinks, log)
  decisionsRoutes(app, governance.decisions)
}
