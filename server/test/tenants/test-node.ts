import { findMandateIds } from '../../src/modules/governance/grants/grants.store.ts'
import { alertsRoutes } from '../../src/modules/insights/alerts.routes.ts'
import { createAlerts } from '../../src/modules/insights/alerts.ts'
import { createAnalytics } from '../../src/modules/insights/analytics.ts'
import { controlTowerRoutes } from '../../src/modules/insights/control-tower.routes.ts'
import { createControlTower } from '../../src/modules/insights/control-tower.ts'
import { checkEnv } from '../../src/modules/insights/env-check.ts'
import { createFrozenAgents } from '../../src/modules/insights/frozen-agents.ts'
import { healthRoutes } from '../../src/modules/insights/health.routes.ts'
import { createHealth, type DependencyState } from '../../src/modules/insights/health.ts'
import { insightsRoutes } from '../../src/modules/insights/insights.routes.ts'
import { createPredictiveAlerts } from '../../src/modules/insights/predictive-alerts.ts'
import { createRunTotals } from '../../src/modules/insights/run-totals.ts'
import { createSpend } from '../../src/modules/insights/spend.ts'
import { createTowerStreams } from '../../src/modules/insights/tower-stream.ts'
import { createTowerWatch } from '../../src/modules/insights/tower-watch.ts'
import { readTenantUsage } from '../../src/modules/insights/usage.ts'
import { billingRoutes } from '../../src/modules/tenants/billing.routes.ts'
import { type BillingPortal, createBilling } from '../../src/modules/tenants/billing.ts'
import { tenantsRoutes } from '../../src/modules/tenants/tenants.routes.ts'
import { createTenants } from '../../src/modules/tenants/tenants.ts'
import { createDeliveryWorker } from '../../src/modules/webhooks/delivery-worker.ts'
import { createDispatcher } from '../../src/modules/webhooks/dispatch.ts'
import { createGuardedAgent, type ResolveAll } from '../../src/modules/webhooks/guarded-agent.ts'
import { createSender } from '../../src/modules/webhooks/send.ts'
import { webhooksRoutes } from '../../src/modules/webhooks/webhooks.routes.ts'
import { createWebhooks } from '../../src/modules/webhooks/webhooks.ts'
import { type Config, readConfig, type SettingName } from '../../src/platform/config.ts'
import type { Database } from '../../src/platform/db.ts'
import { createHttp } from '../../src/platform/http.ts'
import { createIdempotency } from '../../src/platform/idempotency.ts'
import { createIds } from '../../src/platform/ids.ts'
import { createJournalTask } from '../../src/platform/journal.ts'
import { createKeys } from '../../src/platform/keys.ts'
import { createLog } from '../../src/platform/log.ts'
import { createMetrics } from '../../src/platform/metrics.ts'
import { createNotifications } from '../../src/platform/notifications.ts'
import { createOutbox } from '../../src/platform/outbox.ts'
import { createRateLimiter } from '../../src/platform/rate-limit.ts'
import { createSequencer } from '../../src/platform/sequencer.ts'
import { createTestClock } from '../clock.ts'

export const ADMIN_KEY = 'an operator key of the tests'

export type Node = Awaited<ReturnType<typeof openNode>>

/** The cost of a run by lane, in micro-dollars. */
const laneCosts = () => ({ 'writer-v1': 2_000, 'coder-v1': 7_000 })

type NodeOptions = {
  config?: Config
  generatedSecretLengths?: Map<SettingName, number>
  parts?: { redis: DependencyState; supabase: DependencyState }
  resolveAll?: ResolveAll
  timeoutMs?: number
  portal?: BillingPortal
}

/** One process of the service with tenants, webhooks and insights: it has its own caches and listening connection. */
export async function openNode(database: Database, options: NodeOptions = {}) {
  const clock = createTestClock()
  const ids = createIds(clock)
  const log = createLog('silent')
  const keys = createKeys({ signing: 's'.repeat(32), encryption: 'e'.repeat(32) })
  const notifications = await createNotifications(database, ids.next('ins'), log)
  const outbox = createOutbox(ids)
  const idempotency = createIdempotency({ db: database.db, keys, clock })
  const tenants = createTenants({
    db: database.db,
    clock,
    ids,
    keys,
    notifications,
    idempotency,
    adminKey: ADMIN_KEY,
    keyPerMinute: 600,
    publicUrl: () => 'https://countersign.test',
    emit: outbox.emit,
    audit: outbox.audit,
    usage: (tenantId, since) => readTenantUsage(database.db, tenantId, since),
    findMandateIds,
  })
  const webhooks = createWebhooks({
    db: database.db,
    clock,
    ids,
    keys,
    idempotency,
    audit: outbox.audit,
    planLimit: tenants.planLimit,
    target: { allowLoopback: true },
  })
  const agent = createGuardedAgent({ allowLoopback: true }, options.resolveAll)
  const deliveryWorker = createDeliveryWorker({
    db: database.db,
    pool: database.pool,
    clock,
    keys,
    log,
    send: createSender(agent, options.timeoutMs),
    random: () => 0.5,
  })
  const sequencer = createSequencer({
    db: database.db,
    log,
    instance: ids.next('ins'),
    tasks: [
      createJournalTask({
        log,
        consumers: [createDispatcher({ clock, ids }), createRunTotals({ clock, costs: laneCosts })],
      }),
    ],
    leaseMs: 60_000,
  })
  const alerts = createAlerts({
    db: database.db,
    clock,
    ids,
    idempotency,
    requireFeature: tenants.requireFeature,
    hasFeature: tenants.hasFeature,
  })
  const predictions = createPredictiveAlerts({ db: database.db, clock, alerts })
  const frozen = createFrozenAgents({ db: database.db, clock, notifications })
  const analytics = createAnalytics({ db: database.db, clock, costs: laneCosts })
  const controlTower = createControlTower({
    db: database.db,
    clock,
    audit: outbox.audit,
    alerts,
    frozen,
    laneNames: () => Object.keys(laneCosts()),
    cheapestRunMicro: () => 10_000n,
    logCheckpoint: async () => 'a checkpoint',
  })
  const app = await createHttp({
    log,
    clock,
    ids,
    metrics: createMetrics(),
    authenticate: tenants.authenticate,
    limiter: createRateLimiter(clock),
    limits: { anonymousPerMinute: 0, keyPerMinute: 0 },
    publicUrl: () => 'https://countersign.test',
  })
  const parts = options.parts ?? { redis: 'not_configured' as const, supabase: 'embedded' as const }
  const health = createHealth({ checks: { redis: async () => parts.redis, supabase: async () => parts.supabase } })
  const config = options.config ?? readConfig({})
  tenantsRoutes(app, tenants)
  billingRoutes(app, {
    billing: createBilling({ db: database.db, portal: options.portal, publicUrl: () => 'https://countersign.test' }),
    tenants,
  })
  webhooksRoutes(app, webhooks)
  alertsRoutes(app, alerts)
  insightsRoutes(app, { analytics, spend: createSpend({ db: database.db, clock }) })
  controlTowerRoutes(app, controlTower, createTowerStreams(createTowerWatch({ db: database.db, log })))
  healthRoutes(app, {
    health,
    envCheck: async () => ({
      ...checkEnv(config, options.generatedSecretLengths ?? new Map()),
      encryption_rotation: { state: 'none', remaining: {} },
    }),
  })
  await app.ready()
  return {
    app,
    clock,
    ids,
    keys,
    tenants,
    idempotency,
    outbox,
    parts,
    webhooks,
    deliveryWorker,
    sequencer,
    alerts,
    predictions,
    frozen,
    /** Dispatches committed events and attempts every due delivery once. */
    async tick() {
      await sequencer.runOnce()
      await deliveryWorker.deliverDue()
      await deliveryWorker.idle()
    },
    async close() {
      await deliveryWorker.stop()
      await agent.close()
      await sequencer.stop()
      await app.close()
      await notifications.close()
    },
  }
}

type RequestOptions = { key?: string; admin?: boolean; headers?: Record<string, string> }

export async function sendRequest(
  node: Pick<Node, 'app'>,
  route: string,
  body?: unknown,
  options: RequestOptions = {},
) {
  const [method, url] = route.split(' ') as ['GET', string]
  const response = await node.app.inject({
    method,
    url,
    headers: {
      ...(options.key && { 'x-api-key': options.key }),
      ...(options.admin && { 'x-admin-key': ADMIN_KEY }),
      ...options.headers,
    },
    ...(body !== undefined && { payload: body as object }),
  })
  return { status: response.statusCode, body: response.json(), text: response.body, headers: response.headers }
}

export async function onboard(node: Pick<Node, 'app'>, orgName = 'Acme') {
  const { body } = await sendRequest(node, 'POST /api/onboard', { org_name: orgName, email: 'owner@acme.test' })
  return body as { tenant_id: string; api_key: string; key_prefix: string }
}
