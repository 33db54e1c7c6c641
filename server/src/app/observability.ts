import type { LogPolicy } from '@countersign/proof'
import { createHttpWitness } from '../adapters/witnesses/http-witness.ts'
import { auditRoutes } from '../modules/audit/audit.routes.ts'
import { createAudit } from '../modules/audit/audit.ts'
import { createAuditLinks } from '../modules/audit/await-audit.ts'
import type { Catalog } from '../modules/catalog/catalog.ts'
import { alertsRoutes } from '../modules/insights/alerts.routes.ts'
import { createAlerts } from '../modules/insights/alerts.ts'
import { createAnalytics } from '../modules/insights/analytics.ts'
import { controlTowerRoutes } from '../modules/insights/control-tower.routes.ts'
import { createControlTower } from '../modules/insights/control-tower.ts'
import { createFrozenAgents } from '../modules/insights/frozen-agents.ts'
import { insightsRoutes } from '../modules/insights/insights.routes.ts'
import { createPredictiveAlerts } from '../modules/insights/predictive-alerts.ts'
import { createRunTotals } from '../modules/insights/run-totals.ts'
import { createSpend } from '../modules/insights/spend.ts'
import { createTowerStreams } from '../modules/insights/tower-stream.ts'
import { createTowerWatch } from '../modules/insights/tower-watch.ts'
import { balances } from '../modules/ledger/ledger.ts'
import { createCheckpointSubmission, type Receipts } from '../modules/receipts/receipts.ts'
import type { Tenants } from '../modules/tenants/tenants.ts'
import { createDeliveryWorker } from '../modules/webhooks/delivery-worker.ts'
import { createDispatcher, DELIVERIES_CHANNEL } from '../modules/webhooks/dispatch.ts'
import { createGuardedAgent } from '../modules/webhooks/guarded-agent.ts'
import { createSender } from '../modules/webhooks/send.ts'
import { webhooksRoutes } from '../modules/webhooks/webhooks.routes.ts'
import { createWebhooks } from '../modules/webhooks/webhooks.ts'
import type { App } from '../platform/http-app.ts'
import { createJournalTask } from '../platform/journal.ts'
import { createSequencer } from '../platform/sequencer.ts'
import type { AppContext } from './context.ts'
import type { Pruning } from './retention.ts'

const DELIVER_MS = 1_000
const PREDICT_MS = 15_000

/** The sequencer with the consumers of the journal (receipt log, audit chains, webhooks, sums), and alerts, analytics and the control tower. */
export function composeObservability(
  context: AppContext,
  parts: { tenants: Tenants; catalog: Catalog; receipts: Receipts; logPolicy: LogPolicy | undefined },
) {
  const { db, pool, clock, ids, keys, log, notifications, idempotency, outbox, jobs } = context
  const { tenants, catalog, receipts, logPolicy } = parts
  const costs = () =>
    Object.fromEntries(
      [...catalog.all(), catalog.fallback()].map((lane) => [lane.agentId, Math.round(lane.estimatedCostUsd * 1e6)]),
    )

  const auditLinks = createAuditLinks({ db, waitMs: context.config.AUDIT_WAIT_MS })
  const audit = createAudit({ db, clock, ids, keys, commitHeads: receipts.issueAuditHeads, getReceipt: receipts.get })
  // Plain http to this machine is allowed during development only.
  const target = { allowLoopback: context.config.NODE_ENV !== 'production' }
  const webhooks = createWebhooks({
    db,
    clock,
    ids,
    keys,
    idempotency,
    audit: outbox.audit,
    planLimit: tenants.planLimit,
    target,
  })
  const agent = createGuardedAgent(target)
  context.onClose(() => agent.close())
  const deliveryWorker = createDeliveryWorker({
    db,
    pool,
    clock,
    keys,
    log,
    send: createSender(agent),
    onDisabled: () => jobs.wake('predictions'),
  })
  context.onClose(deliveryWorker.stop)
  const sequencer = createSequencer({
    db,
    log,
    instance: context.instance,
    tasks: [
      createJournalTask({
        log,
        consumers: [
          receipts.log.consumer,
          audit.chain,
          createDispatcher({ clock, ids }),
          createRunTotals({ clock, costs }),
          balances,
        ],
        shortLivedTables: ['open_runs'],
      }),
      audit.headsTask,
    ],
  })
  context.onClose(sequencer.stop)
  const submission =
    logPolicy &&
    createCheckpointSubmission({
      db,
      clock,
      log,
      instance: context.instance,
      policy: logPolicy,
      transparencyLog: receipts.log,
      send: createHttpWitness(),
    })

  const { requireFeature, hasFeature } = tenants
  const alerts = createAlerts({ db, clock, ids, idempotency, requireFeature, hasFeature })
  const predictions = createPredictiveAlerts({ db, clock, alerts })
  const frozen = createFrozenAgents({ db, clock, notifications })
  const analytics = createAnalytics({ db, clock, costs })
  const controlTower = createControlTower({
    db,
    clock,
    audit: outbox.audit,
    alerts,
    frozen,
    laneNames: () => Object.keys(costs()),
    cheapestRunMicro: () => catalog.priceRange('run').minMicro,
    logCheckpoint: receipts.log.newestCheckpoint,
  })

  return {
    auditLinks,
    alerts,
    frozen,
    sequencer,
    deliveryWorker,
    findWebhookProblem: webhooks.findProblem,
    routes(app: App) {
      auditRoutes(app, audit)
      webhooksRoutes(app, webhooks)
      alertsRoutes(app, alerts)
      insightsRoutes(app, { analytics, spend: createSpend({ db, clock }) })
      controlTowerRoutes(app, controlTower, createTowerStreams(createTowerWatch({ db, log })))
    },
    start(pruning: Pruning) {
      sequencer.start()
      if (submission) jobs.everyDue('log-witnesses', submission.due, submission.sweep)
      notifications.listen(DELIVERIES_CHANNEL, () => jobs.wake('webhooks'))
      jobs.every('webhooks', DELIVER_MS, deliveryWorker.deliverDue)
      pruning.every('webhooks-tidy', async () => (await webhooks.sweep(clock.now())).forgotten)
      jobs.every('predictions', PREDICT_MS, predictions.sweep)
      pruning.every('sessions-tidy', () => tenants.sessions.sweep(clock.now()))
    },
  }
}
