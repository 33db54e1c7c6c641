import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { createStripePortal } from './adapters/billing/stripe.ts'
import { openChain } from './adapters/chain/open-chain.ts'
import { createPayeeSigner, toKeyBytes } from './adapters/payouts/payee-key.ts'
import { type EmbeddedPostgres, startEmbeddedPostgres } from './adapters/postgres/embedded.ts'
import { composeBasis } from './app/basis.ts'
import { composeBenchmark } from './app/benchmark.ts'
import { composeBrokerage } from './app/brokerage.ts'
import type { AppContext } from './app/context.ts'
import { composeDiscovery } from './app/discovery.ts'
import { composeDocumentation } from './app/documentation.ts'
import { registerDatabaseGauges, registerGauges, registerHealthGauge, registerLogGauges } from './app/gauges.ts'
import { composeGovernance } from './app/governance.ts'
import { createChainCheck, createClockCheck, createDiskCheck, toPartCheck } from './app/health-checks.ts'
import { openLane } from './app/lanes.ts'
import { composeMcp, indexOperations } from './app/mcp.ts'
import { composeMemory } from './app/memory.ts'
import { composeObservability } from './app/observability.ts'
import { createOfferReceipts } from './app/offer-receipts.ts'
import { openRateLimiter } from './app/rate-limiter.ts'
import { createPruning } from './app/retention.ts'
import { createSignedPayerFinder } from './app/signed-payer.ts'
import { openTracing, traceRun } from './app/tracing.ts'
import { openVerification } from './app/verification.ts'
import { warmUp } from './app/warm-up.ts'
import { catalogRoutes } from './modules/catalog/catalog.routes.ts'
import { createCatalog } from './modules/catalog/catalog.ts'
import { approvedRunsDue } from './modules/governance/due-work.ts'
import { findMandateIds, findPreauth } from './modules/governance/grants/grants.store.ts'
import { checkEnv } from './modules/insights/env-check.ts'
import { healthRoutes } from './modules/insights/health.routes.ts'
import { createHealth } from './modules/insights/health.ts'
import { readTenantUsage } from './modules/insights/usage.ts'
import { escrowsDue, payoutsDue } from './modules/ledger/due-work.ts'
import { createEscrow } from './modules/ledger/escrow.ts'
import { ledgerRoutes } from './modules/ledger/ledger.routes.ts'
import { createLedger } from './modules/ledger/ledger.ts'
import { createPayouts } from './modules/ledger/payouts.ts'
import { createWallets } from './modules/ledger/wallets.ts'
import { developmentRoutes, FAUCET_PATH, facilitatorRoutes } from './modules/payments/dev.routes.ts'
import { paymentsRoutes } from './modules/payments/payments.routes.ts'
import { createPayments } from './modules/payments/payments.ts'
import { createPayoutRail } from './modules/payments/payout-rail.ts'
import { createQuotes } from './modules/payments/quote.ts'
import { createSettlements } from './modules/payments/settlements.ts'
import { receiptsRoutes } from './modules/receipts/receipts.routes.ts'
import { createReceipts } from './modules/receipts/receipts.ts'
import { loadLogPolicy } from './modules/receipts/witness.ts'
import { createRoutingMeasurements } from './modules/routing/measurements.ts'
import { createRouteAdvice } from './modules/routing/route-advice.ts'
import { routingRoutes } from './modules/routing/routing.routes.ts'
import { createRouting } from './modules/routing/routing.ts'
import { createBackgroundRuns } from './modules/runs/background-runs.ts'
import { createCancelRun } from './modules/runs/cancel-run.ts'
import { failedSettlementsDue, runsUnfinished, settlementsDue } from './modules/runs/due-work.ts'
import { createExecuteRun } from './modules/runs/execute-run.ts'
import type { Lane } from './modules/runs/lane.ts'
import type { RunStep } from './modules/runs/paid-unit.ts'
import { probeResponse } from './modules/runs/payment-required.ts'
import { createReconciler } from './modules/runs/reconcile.ts'
import { createRefunds } from './modules/runs/refunds.ts'
import { dropOldRuns, makePartitions } from './modules/runs/retention.ts'
import { createRunEvents } from './modules/runs/run-events.ts'
import { createRunToken } from './modules/runs/run-token.ts'
import { createRunWatch } from './modules/runs/run-watch.ts'
import { runsRoutes } from './modules/runs/runs.routes.ts'
import { createRunReads, createRunSteps, findInstancesOfOpenRuns } from './modules/runs/runs.store.ts'
import { createRuns } from './modules/runs/runs.ts'
import { createStartApprovedRuns } from './modules/runs/start-approved-runs.ts'
import { topUpRoutes } from './modules/runs/top-up.routes.ts'
import { createTopUp } from './modules/runs/top-up.ts'
import { billingRoutes } from './modules/tenants/billing.routes.ts'
import { createBilling } from './modules/tenants/billing.ts'
import { tenantsRoutes } from './modules/tenants/tenants.routes.ts'
import { createTenants } from './modules/tenants/tenants.ts'
import { type Clock, systemClock } from './platform/clock.ts'
import { type Config, usesEmbeddedChain } from './platform/config.ts'
import { openDatabase } from './platform/db.ts'
import { aliasRoutes } from './platform/deprecated-paths.ts'
import { createDrain } from './platform/drain.ts'
import { checkEncryptionKey, finishRotation } from './platform/encryption-canary.ts'
import { createEncryptionRotation } from './platform/encryption-rotation.ts'
import { createFairQueue } from './platform/fair-queue.ts'
import { watchForFullDisk } from './platform/full-disk.ts'
import { createHttp } from './platform/http.ts'
import { createIdempotency } from './platform/idempotency.ts'
import { createIds } from './platform/ids.ts'
import { createInstances } from './platform/instances.ts'
import { createJobs } from './platform/jobs.ts'
import { createKeys } from './platform/keys.ts'
import { createLog, type Log } from './platform/log.ts'
import { createMetrics } from './platform/metrics.ts'
import { createMetricsReader, serveMetrics } from './platform/metrics-access.ts'
import { migrate } from './platform/migrate.ts'
import { createNotifications } from './platform/notifications.ts'
import { operatorRoutes } from './platform/operator.routes.ts'
import { createOutbox } from './platform/outbox.ts'
import { checkPoolLimits } from './platform/pooler.ts'
import { openSecretFolder } from './platform/secrets.ts'
import { staticFileRoutes } from './platform/static-files.ts'
import type { Supervised } from './platform/supervised.ts'
import { noTracing } from './platform/tracing.ts'
import { within } from './platform/within.ts'

/** The composition root: with `app/` the only code that imports both modules and adapters. */
export type Overrides = {
  /** A `work` process does the background work and serves no requests. */
  role?: 'serve' | 'work'
  /** Set in a process of `serve --workers`: the supervisor runs the embedded database and chain. */
  supervised?: Supervised | undefined
  /** Called as soon as the embedded database runs: a process that is told to stop while it starts stops it too. */
  onDatabase?: (postgres: EmbeddedPostgres) => void
  clock?: Clock
  log?: Log
  lane?: Lane
  /** Called after each step of a run; crash tests kill the process there. */
  probe?: (step: RunStep | 'mined') => void
  /** How many steps may share a commit; benchmarks vary it. */
  maxBatch?: number
}

export type Service = Awaited<ReturnType<typeof createService>>

const DEAD_INSTANCES_MS = 10_000
const PARTITIONS_MS = 3_600_000
const ROTATION_MS = 10_000
/** A part that does not close in this time is left, so that the parts below it are closed. */
const CLOSE_TIMEOUT_MS = 10_000
// A request waits for the database most of the time, so more of them than connections are under way.
const REQUESTS_PER_CONNECTION = 3
/** What one caller has under way while nobody else is about: its runs share larger batches. */
const REQUESTS_ALONE = 6.4
/** Requests of one caller at a time while others are about: its burst then leaves most of each turn of the event loop to them. */
const REQUESTS_BESIDE_OTHERS = 4

export async function createService(config: Config, overrides: Overrides = {}) {
  const clock = overrides.clock ?? systemClock
  const log = overrides.log ?? createLog(config.LOG_LEVEL)
  const probe = overrides.probe ?? (() => {})
  const ids = createIds(clock)
  const { supervised } = overrides
  const metrics = createMetrics(supervised?.name)
  const instance = randomBytes(12).toString('hex')
  const dataDir = resolve(config.COUNTERSIGN_DATA_DIR)
  mkdirSync(dataDir, { recursive: true, mode: 0o700 })
  const secrets = openSecretFolder(dataDir)
  const adminKey = config.ADMIN_KEY ?? secrets.readOrCreateFor('ADMIN_KEY')
  const signing = config.SIGNING_KEY ?? secrets.readOrCreateFor('SIGNING_KEY')
  const encryption = config.ENCRYPTION_KEY ?? secrets.readOrCreateFor('ENCRYPTION_KEY')
  const keys = createKeys({
    signing,
    encryption,
    previousSigning: config.SIGNING_KEY_PREVIOUS,
    previousEncryption: config.ENCRYPTION_KEY_PREVIOUS,
  })
  let address = `http://${config.HOST}:${config.PORT}`
  const publicUrl = () => config.PUBLIC_URL ?? address

  // Parts are closed in the opposite order of opening, also when the start fails half-way.
  const closers: (() => Promise<unknown>)[] = []
  let stopDatabase: () => Promise<unknown> = async () => {}
  const logFailure = (error: unknown) => log.warn({ err: error }, 'a component could not be closed')
  const close = async () => {
    for (const closer of closers.splice(0).reverse()) await within(CLOSE_TIMEOUT_MS, closer()).catch(logFailure)
    // Not under the time limit: a server that writes its last checkpoint has one of its own.
    await stopDatabase().catch(logFailure)
  }
  const drain = createDrain()

  const assemble = async () => {
    let postgres: EmbeddedPostgres | undefined
    if (!config.DATABASE_URL && !supervised) {
      postgres = await startEmbeddedPostgres({ dataDir, log })
      stopDatabase = postgres.stop
      overrides.onDatabase?.(postgres)
    }
    const database = openDatabase(config.DATABASE_URL ?? supervised?.connection ?? postgres!.connection, {
      max: config.DATABASE_POOL,
      log,
      direct: config.DATABASE_DIRECT_URL,
      statementTimeoutMs: config.DATABASE_STATEMENT_TIMEOUT_MS,
      lockTimeoutMs: config.DATABASE_LOCK_TIMEOUT_MS,
      // The embedded server has no other one to wait for.
      onUnknownCommit: () => metrics.unknownCommits.inc(),
      syncReplication: config.DATABASE_URL ? config.DATABASE_SYNC_REPLICATION : 'off',
    })
    closers.push(database.close)
    const { db, pool } = database
    const fullDisk = watchForFullDisk(pool)
    const jobs = createJobs({ db, clock, log }, metrics)
    const { warnings, tenantReads } = await migrate(database, { log })
    for (const warning of warnings) log.warn(warning)
    await checkPoolLimits(pool, log)
    if (tenantReads.ok) database.secureReads()
    else log.warn({ reason: tenantReads.reason }, 'tenants read without row-level security; see docs/operations.md')
    await checkEncryptionKey(pool, keys)
    const encryptionRotation = createEncryptionRotation({ pool, keys, log, clock, finish: finishRotation })
    const notifications = await createNotifications(database, instance, log)
    closers.push(notifications.close)
    const instances = await createInstances({
      id: instance,
      session: notifications,
      log,
      beatMs: config.INSTANCE_BEAT_MS,
      graceMs: config.INSTANCE_GRACE_MS,
    })
    closers.push(instances.close)

    const chain = await openChain({
      config,
      database,
      clock,
      log,
      secrets,
      keys,
      instances,
      mayOwn: overrides.role !== 'work' && !supervised,
      senderShare: supervised?.senderShare,
      onMined: () => probe('mined'),
    })
    closers.push(chain.close)
    const { asset, payTo } = chain

    const outbox = createOutbox(ids)
    const idempotency = createIdempotency({
      db,
      keys,
      clock,
      queue: createFairQueue({ slots: Math.max(2, Math.floor(config.DATABASE_POOL / 2)) }),
    })
    const tenants = createTenants({
      db,
      clock,
      ids,
      keys,
      notifications,
      idempotency,
      adminKey,
      cell: config.CELL,
      keyPerMinute: config.RATE_LIMIT_KEY_PER_MINUTE,
      publicUrl,
      emit: outbox.emit,
      audit: outbox.audit,
      usage: (tenantId, since) => readTenantUsage(db, tenantId, since),
      findMandateIds,
    })
    const context: AppContext = {
      config,
      db,
      pool,
      clock,
      ids,
      keys,
      log,
      metrics,
      jobs,
      notifications,
      outbox,
      idempotency,
      instance,
      instances,
      publicUrl,
      onClose: (closer) => void closers.push(closer),
    }
    const catalog = await createCatalog({
      db,
      clock,
      notifications,
      settlement: { network: 'eip155:8453', asset, payTo },
    })
    const logPolicy = loadLogPolicy(config.LOG_POLICY)
    const receipts = createReceipts({
      db,
      keys,
      clock,
      publicUrl,
      logName: config.LOG_NAME,
      witnesses: config.LOG_WITNESSES,
      policy: logPolicy,
      findTransfers: chain.reader?.transfers,
      previousLogSigners: [keys.previousSigner('log')].filter((signer) => signer !== undefined),
    })
    await receipts.open()
    const observe = composeObservability(context, { tenants, catalog, receipts, logPolicy })
    const basis = await composeBasis(context, receipts)
    const memory = composeMemory(context)
    const quotes = createQuotes({ signer: keys.signer('quotes'), clock, ids, cell: config.CELL })
    const payments = createPayments({
      facilitator: chain.facilitator,
      chain: chain.reader,
      quotes,
      clock,
      asset,
      payTo,
      deadlineSeconds: config.RUN_DEADLINE_SECONDS,
      isDevelopmentChain: chain.dev !== undefined,
    })
    const governance = composeGovernance(context, {
      tenants,
      receipts,
      alerts: observe.alerts,
      frozen: observe.frozen,
      isLane: (agentId) => catalog.find(agentId) !== undefined,
      chain: { reader: chain.reader, asset, payTo },
      awaitAudit: observe.auditLinks.awaitLink,
      driveRun: (runId) => reconciler.settleNow(runId),
      linkedTrades: () => brokerage.brokerage.linkedTrades,
    })
    const measurements = await createRoutingMeasurements({ db, clock, notifications })
    const routing = createRouting({ catalog, measurements })
    const ledger = createLedger({ db, ids })
    const custody = { address: payTo, network: 'eip155:8453', asset }
    const wallets = createWallets({ db, clock, ids, idempotency, audit: outbox.audit, custody })
    const escrow = createEscrow({ db, clock, ids, idempotency, audit: outbox.audit })

    const tracing = await openTracing(context)
    const runWatch = createRunWatch({ db, log })
    const background = createBackgroundRuns({ slots: config.MAX_RUNS_UNDER_WAY, watch: runWatch, log })
    const runDeps = traceRun(tracing, {
      db,
      steps: createRunSteps(pool, metrics, overrides.maxBatch),
      reads: createRunReads(db),
      clock,
      ids,
      log,
      metrics,
      instance,
      findDeadInstances: instances.findDead,
      publicUrl,
      deadlineSeconds: config.RUN_DEADLINE_SECONDS,
      background,
      runToken: createRunToken(keys),
      exposureMicro: BigInt(config.PAYER_EXPOSURE_USDC) * 1_000_000n,
      readSettledMicro: governance.readSettledMicro,
      findLane: catalog.find,
      laneIds: () => catalog.all().map(({ agentId }) => agentId),
      pricingVersion: catalog.version,
      priceRange: catalog.priceRange,
      chooseLane: routing.routeRun,
      assess: governance.assess,
      recordRefusal: governance.refuse,
      findRunOfApproval: governance.approvals.findRunOf,
      evaluateActions: governance.evaluateActions,
      payments,
      findWallet: wallets.findBalance,
      offerReceipt: createOfferReceipts(receipts, clock),
      memory: memory.memory,
      lane: overrides.lane ?? (await openLane(config, catalog, clock, tracing)),
      verify: await openVerification(config),
      receipts,
      awaitAudit: observe.auditLinks.awaitLink,
      afterStep: probe,
    })
    const brokerage = composeBrokerage(context, {
      awaitAudit: observe.auditLinks.awaitLink,
      basis: basis.basis,
      governance,
      ledger,
      receipts,
    })
    const executeRun = createExecuteRun(runDeps)
    const reconciler = createReconciler(runDeps)
    const startApprovedRuns = createStartApprovedRuns({
      ...runDeps,
      claimApprovedRuns: governance.approvals.claimRuns,
      refuseApprovedRun: governance.approvals.refuseRun,
      delayApprovedRun: governance.approvals.delayRun,
      findCaller: tenants.findCaller,
    })
    const settlements = createSettlements({
      db,
      asset: chain.asset,
      drive: reconciler.settleNow,
      runOfPreauth: async (tenantId, preauthId) => (await findPreauth(db, tenantId, preauthId))?.run_id,
    })
    const payeeKeys = usesEmbeddedChain(config)
      ? [keys.evmKey('payee')]
      : (config.FACILITATOR_PRIVATE_KEY ?? []).map(toKeyBytes)
    const rail = createPayoutRail({
      facilitator: chain.facilitator,
      chain: chain.reader,
      clock,
      asset,
      payTo,
      sign: createPayeeSigner(payTo, payeeKeys),
    })
    const refunds = createRefunds({ ...runDeps, receipts, automatic: rail.automatic })
    const payouts = createPayouts({ db, clock, ids, log, idempotency, rail, finishRefund: refunds.finishRefund })

    const limits = {
      anonymousPerMinute: config.RATE_LIMIT_ANON_PER_MINUTE,
      keyPerMinute: config.RATE_LIMIT_KEY_PER_MINUTE,
    }
    const runQueue = createFairQueue({ slots: config.MAX_RUNS_UNDER_WAY })
    const benchmark = composeBenchmark(context, {
      lane: runDeps.lane,
      catalog,
      verify: runDeps.verify,
      isIdle: runQueue.isIdle,
    })
    const { limiter, redisState } = await openRateLimiter({ ...context, supervised })
    const app = await createHttp({
      log,
      clock,
      ids,
      metrics,
      authenticate: tenants.authenticate,
      limiter,
      queues: {
        runs: runQueue,
        requests: createFairQueue({
          slots: REQUESTS_PER_CONNECTION * config.DATABASE_POOL,
          maxBesideOthers: REQUESTS_BESIDE_OTHERS,
          maxAlone: REQUESTS_ALONE * config.DATABASE_POOL,
        }),
      },
      trustProxy: config.TRUST_PROXY,
      limits,
      findSignedPayer: createSignedPayerFinder(asset),
      publicUrl,
      drain,
      tracesRequests: tracing !== noTracing,
    })
    closers.push(() => app.close())
    const operations = indexOperations(app)
    tracing.traceRequests(app)

    const generatedSecretLengths = new Map([
      ['ADMIN_KEY', adminKey.length],
      ['SIGNING_KEY', signing.length],
      ['ENCRYPTION_KEY', encryption.length],
      ['PAY_TO_ADDRESS', payTo.length],
    ] as const)
    const databaseState = async () => {
      await pool.query('select 1')
      return config.DATABASE_URL ? ('ok' as const) : ('embedded' as const)
    }
    const { findProblem: findFacilitatorProblem } = chain.facilitator
    const { findProblem: findModelProblem } = runDeps.lane
    const health = createHealth({
      checks: { supabase: databaseState, redis: redisState },
      parts: {
        disk: createDiskCheck({ fullDisk, dataDir: config.DATABASE_URL || supervised ? undefined : dataDir }),
        ...(findFacilitatorProblem && { facilitator: toPartCheck(findFacilitatorProblem) }),
        ...(config.CHAIN_RPC_URL && chain.reader && { chain: createChainCheck(chain.reader) }),
        ...(findModelProblem && { models: toPartCheck(findModelProblem) }),
        webhooks: toPartCheck(observe.findWebhookProblem),
        clock: createClockCheck(pool),
      },
      clock,
      processes: () => supervised?.counts(),
      logQuorum: logPolicy && receipts.log.quorum,
      waitsForStandby: config.DATABASE_URL ? database.readReplication : undefined,
      isDraining: drain.isDraining,
    })
    healthRoutes(app, {
      health,
      envCheck: async () => ({
        ...checkEnv(config, config.NODE_ENV === 'production' ? new Map() : generatedSecretLengths),
        encryption_rotation: await encryptionRotation.progress(),
      }),
    })
    registerGauges(context, encryptionRotation)
    registerHealthGauge(context, health)
    registerDatabaseGauges(context, database, { isEmbedded: !config.DATABASE_URL })
    registerLogGauges(context, receipts.log, { hasPolicy: logPolicy !== undefined })
    const readMetrics = createMetricsReader(metrics, supervised)
    operatorRoutes(app, metrics, readMetrics, {
      token: config.METRICS_TOKEN,
      port: config.METRICS_PORT,
      isProduction: config.NODE_ENV === 'production',
    })
    const hasDevelopmentRoutes = chain.dev !== undefined && config.NODE_ENV !== 'production'
    // A person gets the start page; programs get the documentation, as before there was one.
    app.get('/', { config: { unmetered: true } }, async (request, reply) => {
      const isBrowser = request.headers.accept?.includes('text/html') === true && existsSync(findDashboard())
      return reply.header('vary', 'accept').redirect(isBrowser ? '/dashboard' : '/docs')
    })
    composeDocumentation(app, publicUrl)
    staticFileRoutes(app, {
      base: '/dashboard',
      folder: findDashboard(),
      index: 'index.html',
      everyPath: true,
    })
    catalogRoutes(app, catalog, clock)
    tenantsRoutes(app, tenants, {
      perHour: limits.anonymousPerMinute === 0 ? 0 : config.RATE_LIMIT_ONBOARD_PER_HOUR,
      invitation: config.ONBOARD_INVITATION,
      faucet: hasDevelopmentRoutes ? FAUCET_PATH : undefined,
    })
    billingRoutes(app, { billing: createBilling({ db, portal: stripePortal(config), publicUrl }), tenants })
    runsRoutes(app, {
      runs: createRuns({ db, findAudit: observe.auditLinks.find, runToken: runDeps.runToken }),
      executeRun,
      cancelRun: createCancelRun(runDeps),
      events: createRunEvents(runWatch),
      answerProbe: (kind, requestId) => probeResponse(runDeps, kind, requestId),
      limits: { payerPerMinute: limits.keyPerMinute },
      priceRange: catalog.priceRange,
    })
    paymentsRoutes(app, settlements)
    ledgerRoutes(app, { ledger, wallets, escrow, payouts })
    topUpRoutes(app, createTopUp(runDeps))
    receiptsRoutes(app, receipts)
    routingRoutes(
      app,
      createRouteAdvice({
        routing,
        catalog,
        assess: governance.assess,
        issueQuote: quotes.issue,
        laneMode: () => runDeps.lane.mode,
      }),
    )
    observe.routes(app)
    governance.routes(app)
    memory.routes(app)
    benchmark.routes(app)
    basis.routes(app, tenants.authenticate, limits)
    composeDiscovery(context, {
      app,
      catalog,
      settlement: { network: 'eip155:8453', asset, payTo },
      runDeps,
      tools: () => mcp.tools,
    })
    brokerage.routes(app)
    const mcp = composeMcp(context, { app, operations, authenticate: tenants.authenticate })
    aliasRoutes(app, { '/api/settlement': '/api/settle', '/api/onboarding': '/api/onboard' })
    if (chain.dev) {
      const { facilitator, ...development } = chain.dev
      if (hasDevelopmentRoutes) developmentRoutes(app, { ...development, asset, network: 'eip155:8453' })
      facilitatorRoutes(app, facilitator)
    }

    return {
      app,
      readMetrics,
      db,
      database,
      jobs,
      postgres,
      chain,
      catalog,
      idempotency,
      encryptionRotation,
      reconciler,
      /** The row of a dead process stays until its runs and its chain are taken over. */
      removeDeadInstances: () =>
        instances.removeDead(async () => [...(await findInstancesOfOpenRuns(db)), ...(await chain.findHolder())]),
      background,
      startApprovedRuns,
      sequencer: observe.sequencer,
      observe,
      governance,
      basis,
      brokerage,
      memory,
      benchmark,
      warmUp: () => warmUp({ chooseLane: (task) => routing.routeRun(task, undefined), mode: runDeps.lane.mode }),
      measurements,
      ledger,
      escrow,
      refunds,
      payouts,
    }
  }

  const shutdownDeadline = () => performance.now() + config.SHUTDOWN_SECONDS * 1000
  const closeParts = async (parts: Awaited<ReturnType<typeof assemble>>, deadline: number) => {
    parts.benchmark.stop()
    await drain.closeConnections(parts.app, deadline).catch(logFailure)
    // A sweep claims its work for a time, so that another process continues what is left here.
    const stopWork = parts.jobs.stop().then(parts.background.idle)
    await within(Math.max(deadline - performance.now(), CLOSE_TIMEOUT_MS), stopWork).catch(logFailure)
    await close()
  }

  try {
    const parts = await assemble()
    return {
      ...parts,
      config,
      secrets,
      dataDir,
      instance,
      adminKey,
      publicUrl,
      /** Where METRICS_PORT serves the metrics, once the service listens. */
      metricsUrl: undefined as string | undefined,
      /** Listens, starts the background work and returns the address. */
      async listen(): Promise<string> {
        address = (await parts.app.listen({ host: config.HOST, port: config.PORT })).replace('[::1]', '127.0.0.1')
        await parts.chain.announce()
        if (config.METRICS_PORT !== undefined) {
          const server = await serveMetrics({
            host: config.HOST,
            port: config.METRICS_PORT,
            token: config.METRICS_TOKEN,
            contentType: metrics.registry.contentType,
            read: parts.readMetrics,
          })
          closers.push(server.close)
          this.metricsUrl = server.url
        }
        if (config.BACKGROUND_WORK === 'on') this.work()
        return address
      },
      /** Starts the background work; any number of processes may do it at once. */
      work() {
        const { jobs } = parts
        jobs.everyDue('settlements', settlementsDue, parts.reconciler.sweepSettlements)
        jobs.everyDue('orphaned-runs', runsUnfinished, parts.reconciler.sweepOrphans)
        jobs.every('dead-instances', DEAD_INSTANCES_MS, parts.removeDeadInstances)
        jobs.everyDue('approved-runs', approvedRunsDue, parts.startApprovedRuns.sweep)
        jobs.everyDue('given-up-payments', failedSettlementsDue, parts.refunds.sweepFailedPayments)
        jobs.everyDue('payouts', payoutsDue, parts.payouts.sweep)
        jobs.everyDue('escrows', escrowsDue, parts.escrow.sweepExpired)
        const pruning = createPruning(parts, parts.sequencer)
        pruning.every('run-keys-tidy', parts.reconciler.sweepKeys)
        pruning.every('unanswered-tidy', parts.reconciler.sweepUnanswered)
        pruning.every('partitions', () => makePartitions(parts.db, clock.now()), PARTITIONS_MS)
        pruning.every('runs-tidy', () => dropOldRuns(parts.db, config.RUN_RETENTION_DAYS, clock.now()), PARTITIONS_MS)
        pruning.every('answers-tidy', () => parts.idempotency.sweep(clock.now()))
        if (config.ENCRYPTION_KEY_PREVIOUS)
          pruning.every('encryption-rotation', parts.encryptionRotation.sweep, ROTATION_MS)
        jobs.wake('orphaned-runs')
        parts.observe.start(pruning)
        parts.governance.start()
        parts.governance.prune(pruning)
        parts.basis.start(pruning)
        parts.brokerage.start(pruning)
        parts.memory.start(pruning)
        parts.benchmark.start()
        parts.measurements.start(jobs)
      },
      /** Finishes what is under way or hands it over, within SHUTDOWN_SECONDS, and closes everything. */
      async stop() {
        const deadline = shutdownDeadline()
        await drain.run(parts.app, deadline)
        await closeParts(parts, deadline)
      },
      /** Closes everything without notice. */
      close: () => closeParts(parts, shutdownDeadline()),
    }
  } catch (error) {
    await close()
    throw error
  }
}

const stripePortal = ({ STRIPE_SECRET_KEY: secretKey, STRIPE_API_URL: apiUrl }: Config) =>
  secretKey ? createStripePortal({ secretKey, apiUrl }) : undefined

/** The npm package has the built dashboard beside its code; the repository has it in web/. */
function findDashboard(): string {
  const packaged = join(import.meta.dirname, 'web')
  return existsSync(packaged) ? packaged : join(import.meta.dirname, '../../web/dist')
}
