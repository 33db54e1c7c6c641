import type { App } from '../../platform/http-app.ts'
import { approvalsRoutes } from './approvals.routes.ts'
import { authorizeRoutes } from './authorize.routes.ts'
import { budgetsRoutes } from './budgets.routes.ts'
import { decisionsRoutes } from './decisions.routes.ts'
import type { Governance } from './governance.ts'
import { mandatesRoutes } from './mandates.routes.ts'
import { policiesRoutes } from './policies.routes.ts'
import { preauthsRoutes } from './preauths.routes.ts'

export function governanceRoutes(app: App, governance: Governance) {
  policiesRoutes(app, governance)
  budgetsRoutes(app, governance.budgets)
  mandatesRoutes(app, governance.mandates)
  preauthsRoutes(app, governance)
  authorizeRoutes(app, governance.authorize)
  approvalsRoutes(app, governance.approvals)
  decisionsRoutes(app, governance.decisions)
}
