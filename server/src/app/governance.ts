import { createSmtpMailer } from '../adapters/mail/smtp.ts'
import type { LinkedTrades } from '../modules/governance/approvals/approval-links.ts'
import type { Senders } from '../modules/governance/approvals/message-worker.ts'
import { approvalsDue, messagesDue, preauthsDue, reportedClosesDue } from '../modules/governance/due-work.ts'
import { governanceRoutes } from '../modules/governance/governance.routes.ts'
import { createGovernance } from '../modules/governance/governance.ts'
import type { Alerts } from '../modules/insights/alerts.ts'
import type { FrozenAgents } from '../modules/insights/frozen-agents.ts'
import type { ChainReader } from '../modules/payments/facilitator.ts'
import type { Receipts } from '../modules/receipts/receipts.ts'
import type { Tenants } from '../modules/tenants/tenants.ts'
import { createGuardedAgent } from '../modules/webhooks/guarded-agent.ts'
import { createPostJson, createSender, type Outcome } from '../modules/webhooks/send.ts'
import { generateSigningSecret } from '../modules/webhooks/sign.ts'
import { checkTargetUrl, type TargetRules } from '../modules/webhooks/target-url.ts'
import type { AwaitAudit } from '../platform/audit-link.ts'
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
  isLane(agentId: string): boolean
  chain: { reader: ChainReader | undefined; asset: string; payTo: string }
  awaitAudit: AwaitAudit
  driveRun(runId: string): Promise<void>
  linkedTrades(): LinkedTrades
}

/** Composes the governance module: policies, budgets, mandates, pre-authorisations, approvals and overrides. */
export function composeGovernance(context: AppContext, parts: GovernanceParts) {
  const { tenants, receipts, alerts, frozen, isLane, chain, awaitAudit, driveRun, linkedTrades } = parts
  const { config, jobs, ...platform } = context
  // Plain http to this machine is allowed during development only.
  const target = { allowLoopback: config.NODE_ENV !== 'production' }
  const governance = createGovernance({
    ...platform,
    linkSeconds: config.APPROVAL_LINK_SECONDS,
    senders: openSenders(context, target),
    checkTargetUrl: (url) => checkTargetUrl(url, target),
    generateSigningSecret,
    linkedTrades,
    receipts,
    chain: chain.reader,
    network: 'eip155:8453',
    asset: chain.asset,
    payTo: chain.payTo,
    approvalWindowSeconds: config.APPROVAL_WINDOW_SECONDS,
    contentDays: config.APPROVAL_CONTENT_DAYS,
    closeSeconds: config.PREAUTH_CLOSE_SECONDS,
    findApiKey: (apiKey) => tenants.authenticate.key(apiKey),
    findFreeze: frozen.findFrozen,
    findCaller: tenants.findCaller,
    isLane,
    raiseAlert: (alert) => alerts.raise([alert]),
    awaitAudit,
    driveRun,
  })
  context.onClose(governance.messageWorker.stop)
  return {
    ...governance,
    routes: (app: App) => governanceRoutes(app, governance, context.log),
    prune(pruning: Pruning) {
      pruning.every('approval-messages-tidy', governance.pruneMessages)
      pruning.every('approval-content-tidy', governance.pruneApprovalContent)
      pruning.every('ended-limits-tidy', governance.pruneEndedLimits)
      pruning.every('exposure-limits-tidy', governance.pruneExposureLimits, EXPOSURE_MS)
    },
    start() {
      jobs.everyDue('orphaned-preauths', preauthsDue, () => governance.sweepOrphanedPreauths())
      // Without a chain there is nobody to ask; the checks wait until one is configured.
      if (chain.reader) jobs.everyDue('reported-closes', reportedClosesDue, () => governance.sweepReportedCloses())
      jobs.everyDue('expired-approvals', approvalsDue, () => governance.sweepExpiredApprovals())
      jobs.everyDue('approval-messages', messagesDue, governance.messageWorker.deliverDue)
    },
  }
}

/** How messages about approvals leave the service: by the operator's mail server, or to addresses that webhooks may use. */
function openSenders({ config, onClose }: AppContext, target: TargetRules): Senders {
  const agent = createGuardedAgent(target)
  onClose(() => agent.close())
  const post = createPostJson(agent)
  const send = createSender(agent)
  const { SMTP_URL: url, SMTP_FROM: from } = config
  return {
    mail: url && from ? createSmtpMailer({ url, from }) : undefined,
    slack: async (url, body, signal) => toSendOutcome(await post({ url, body }, signal)),
    webhook: async (url, message, secret, signal) =>
      toSendOutcome(await send({ url, message, secrets: [secret] }, signal)),
  }
}

/** 410 says that the receiver is gone for good. */
const toSendOutcome = ({ ok, error, status }: Outcome) => ({ ok, error, permanent: status === 410 })
