import { sql } from 'kysely'
import { createPaperBroker, type PaperBroker } from '../../src/adapters/brokers/paper/paper-broker.ts'
import type { PaperMarket } from '../../src/adapters/brokers/paper/paper-market.ts'
import { createPaperStore } from '../../src/adapters/brokers/paper/paper-store.ts'
import { createSimulatedMarket } from '../../src/adapters/brokers/paper/simulated-market.ts'
import { lastSession, marketState, nextOpen } from '../../src/modules/basis/calendar.ts'
import type { Broker, RwaReading } from '../../src/modules/brokerage/broker.ts'
import { type Brokerage, type BrokerageDeps, createBrokerage } from '../../src/modules/brokerage/brokerage.ts'
import { cbReceiptsRoutes } from '../../src/modules/brokerage/cb-receipts.routes.ts'
import type { ExecuteStep } from '../../src/modules/brokerage/execute-trade.ts'
import { rhRoutes } from '../../src/modules/brokerage/rh.routes.ts'
import { rhAuthRoutes } from '../../src/modules/brokerage/rh-auth.routes.ts'
import { createRhAuth, type RhAuthSettings, type TokenExchange } from '../../src/modules/brokerage/rh-auth.ts'
import { loadDefaultPolicies, type TenantPolicy } from '../../src/modules/brokerage/trade-policies.ts'
import { createVenues } from '../../src/modules/brokerage/venues.ts'
import { decryptContent, encryptContent } from '../../src/modules/governance/approvals/approval-content.ts'
import type { TradingPolicy } from '../../src/modules/governance/assess/assess-trade.ts'
import { smallestChanges } from '../../src/modules/governance/assess/assessment-outcome.ts'
import { insertTradeDecision } from '../../src/modules/governance/assess/decisions.ts'
import { createReceipts } from '../../src/modules/receipts/receipts.ts'
import type { TenantCaller } from '../../src/platform/auth-context.ts'
import type { Database } from '../../src/platform/db.ts'
import { createHttp } from '../../src/platform/http.ts'
import { createIdempotency } from '../../src/platform/idempotency.ts'
import { createIds } from '../../src/platform/ids.ts'
import { createKeys } from '../../src/platform/keys.ts'
import { createMetrics } from '../../src/platform/metrics.ts'
import { createOutbox } from '../../src/platform/outbox.ts'
import { createRateLimiter } from '../../src/platform/rate-limit.ts'
import { createTestClock } from '../clock.ts'
import { createTestDatabase, silent } from '../harness.ts'
import { readEvents } from '../journal.ts'
import { createManualMarket, e8, type ManualMarket } from './manual-market.ts'

/** A brokerage with its own database, and a clock and a market that the test sets. */
export const calendar = { marketState, nextOpen, lastSession }

/** A Monday, an hour and a half after the open in New York. */
export const OPEN = '2026-11-16T16:00:00.000Z'

export const SYMBOLS = {
  equity: 'AAPL',
  perp: 'BTC-PERP',
  crypto: 'BTC-USD',
  rwa: 'TSLAx',
  earn: 'USDC-EARN',
  spend: 'acme-store',
} as const

/** What was filled in all, added up in units of 10^-8: added up as fractions, three parts of 10 may be 9.999999999999998. */
export const filledQuantity = ({ fills }: { fills: { quantity: number }[] }) =>
  fills.reduce((sum, { quantity }) => sum + Math.round(quantity * 1e8), 0) / 1e8

export type World = Awaited<ReturnType<typeof openWorld>>

type TestPolicy = Omit<TenantPolicy, 'identityType' | 'isForTrade' | 'selectable'> & {
  /** The only agent or key that may use it. */
  agentId?: string
  keyId?: string
}

export type WorldOptions = {
  market?: 'manual' | 'simulated'
  oauth?: Partial<RhAuthSettings>
  exchange?: TokenExchange
  approvalWindowSeconds?: number
  /** Preferred over the paper brokers. */
  brokers?: Broker[]
}

export async function openWorld(options: WorldOptions = {}) {
  const testDatabase = await createTestDatabase()
  const database = testDatabase.open(12)
  const clock = createTestClock(OPEN)
  const keys = createKeys({ signing: 's'.repeat(32), encryption: 'e'.repeat(32) })
  const basisReadings = new Map([['TSLAx', createTslaxReading()]])
  const policies = new Map<string, TestPolicy>()
  const frozenAgents = new Set<string>()
  const manualMarket = listInstruments(createManualMarket(calendar))
  const readBasis = async (symbol: string) => {
    const reading = basisReadings.get(symbol)
    return reading && { ...reading, asOf: clock.now() }
  }
  const market =
    options.market === 'simulated'
      ? createSimulatedMarket({ calendar, readBasis, readShare: () => undefined })
      : manualMarket

  const counter = {
    isOn: false,
    async read() {
      const { rows } = await sql<{ spent_micro: bigint; reserved_micro: bigint }>`
        select spent_micro, reserved_micro from limits where scope = ${COUNTER}
      `.execute(database.db)
      return rows[0]
    },
    /** Every trade is held in a counter from now on. */
    async turnOn() {
      counter.isOn = true
      await sql`
        insert into limit_definitions (scope, tenant_id, limit_micro, enforced, thresholds_micro, subject)
        values (${COUNTER}, 'ten_one', ${10n ** 12n}, true, '{}', '{}') on conflict do nothing
      `.execute(database.db)
      await sql`delete from limits where scope = ${COUNTER}`.execute(database.db)
    },
  }

  /** A second process on the same database, with its own ids and workers. */
  const startNode = (
    nodeOptions: { probe?: (step: ExecuteStep) => void; wrapBroker?: (broker: Broker) => Broker } = {},
  ) => {
    const { probe, wrapBroker = (broker) => broker } = nodeOptions
    const { db } = database
    const ids = createIds(clock)
    const outbox = createOutbox(ids)
    const paper = createTestPaperBroker(database, market, clock, 'paper', ['equity', 'perp', 'rwa', 'earn', 'spend'])
    const coinbasePaper = createTestPaperBroker(database, market, clock, 'coinbase-paper', ['crypto'])
    const signer = keys.signer('receipts')
    const receipts = createReceipts({ db, keys, clock, publicUrl: () => 'http://127.0.0.1' })
    const deps: BrokerageDeps = {
      db,
      clock,
      ids,
      venues: createVenues(
        [...(options.brokers ?? []), paper, coinbasePaper].map((broker) => ({
          broker: wrapBroker(broker),
          tenants: 'all',
        })),
      ),
      policies: loadDefaultPolicies(),
      idempotency: createIdempotency({ db, keys, clock }),
      approvalWindowSeconds: options.approvalWindowSeconds,
      governance: {
        findPolicy: async (_tx, { party }, policyId) => {
          const policy = policies.get(policyId)
          if (!policy) return undefined
          const isForAgent = !policy.agentId || policy.agentId === party.agentId
          const isForKey = !policy.keyId || policy.keyId === party.keyId
          const identityType = isForAgent ? 'api_key' : 'agent'
          return { ...policy, identityType, isForTrade: isForAgent && isForKey, selectable: false } as TradingPolicy
        },
        findEnforcedPolicies: async () => [],
        assess: async (_tx, trade) => ({
          outcome: 'pass',
          auditRequired: false,
          results: [],
          separateApprover: false,
          admission: {
            holds: counter.isOn ? [holdIn(COUNTER, trade.amountMicro)] : [],
            needs: [],
            locks: [`limit:${COUNTER}`],
            rulesVersion: 0n,
            mandateId: null,
          },
        }),
        smallestChanges,
        recordDecision: insertTradeDecision,
        recipientsAddedBy: async () => [],
        isAskerActive: async () => true,
        encryptRequest: (request) => encryptContent(keys, { request }),
        decryptRequest: (content) => decryptContent(keys, content).request,
        retryWhileChanging: (_tenantId, work) => work(),
        readParty: ({ tenantId, keyId, team, ...key }, { agentId, spender, tags }) => ({
          tenantId,
          keyId,
          agentId,
          spender: spender ?? key.spender ?? agentId,
          team,
          tags,
        }),
        findFreeze: async ({ agentId, spender }) => {
          const frozen = [agentId, spender].find((name) => name !== null && frozenAgents.has(name))
          return frozen ? { agentId: frozen, reason: 'test' } : undefined
        },
      },
      log: silent,
      contentDays: 30,
      awaitAudit: async () => undefined,
      readBasis,
      wake: () => {},
      probe,
      sign: (bytes) => ({ alg: 'ed25519', keyId: signer.keyId, value: signer.sign(bytes).toString('base64') }),
      emit: outbox.emit,
      audit: outbox.audit,
      queueApprovalMessages: async () => {},
      issueCommitment: async (tx, commitment) => {
        const { row } = receipts.sign({
          receipt_id: commitment.receiptId,
          run_id: commitment.runId,
          loop_id: null,
          issued_at: commitment.issuedAt.toISOString(),
          kind: 'rh_run',
          agent_id: null,
          route: null,
          pricing: null,
          governance: null,
          request_hash: null,
          input_hash: null,
          output_hash: commitment.hash,
          salt: null,
          verification: null,
          settlement: null,
          prev_hash: await receipts.lastHashOfRun(tx, commitment.runId),
          tenant_id: commitment.tenantId,
          payer: null,
        })
        await sql`select issue_receipt(${JSON.stringify(row)}::jsonb)`.execute(tx)
      },
      postLedger: async (tx, posting) => {
        const row = {
          id: ids.next('ltx'),
          tenant_id: posting.tenantId,
          code: posting.code,
          ref: posting.ref,
          created_at: posting.at.toISOString(),
          asset: posting.asset,
          entries: posting.entries.map(({ account, amountMicro }) => ({ account, amount_micro: `${amountMicro}` })),
        }
        await sql`select ledger_direct(${JSON.stringify(row)}::jsonb)`.execute(tx)
      },
      coinbase: {
        brokerIds: ['coinbase', 'coinbase-paper'],
        accounts: (limit) => coinbasePaper.coinbaseAccounts(limit),
      },
      fillTimeoutMs: 0,
    }
    return { brokerage: createBrokerage(deps), paper, coinbasePaper }
  }

  const node = startNode()
  const oauth = createRhAuth({
    db: database.db,
    clock,
    keys,
    settings: {
      clientId: 'client',
      clientSecret: 'secret',
      redirectUri: 'http://127.0.0.1/back',
      authorizeUrl: 'http://127.0.0.1/authorize',
      scope: 'trade',
      mode: 'scaffold',
      ...options.oauth,
    },
    exchange: options.exchange ?? (async () => ({ ok: false, reason: 'unreachable' })),
  })
  let tenantCount = 0
  const app = await serve(clock, node.brokerage, oauth)
  let currentTenant = await addTenant(database, 'ten_one')

  const call = async (method: 'GET' | 'POST', url: string, body?: unknown, headers: Record<string, string> = {}) => {
    const response = await app.inject({
      method,
      url,
      headers: { 'x-api-key': currentTenant, ...headers },
      ...(body !== undefined && { payload: body as object }),
    })
    const text = response.body
    // biome-ignore lint/suspicious/noExplicitAny: tests assert on the response
    const json: any = /^[[{]/.test(text) ? JSON.parse(text) : undefined
    return { status: response.statusCode, body: json, text, headers: response.headers }
  }

  return {
    app,
    clock,
    database,
    db: database.db,
    keys,
    market: manualMarket,
    readings: basisReadings,
    policies,
    frozen: frozenAgents,
    counter,
    tenant: () => currentTenant,
    /** Resets clock and market, and switches to a new tenant. */
    async startNewTenant() {
      tenantCount += 1
      currentTenant = await addTenant(database, `ten_${tenantCount}`)
      clock.set(OPEN)
      listInstruments(manualMarket)
      frozenAgents.clear()
      counter.isOn = false
      basisReadings.set('TSLAx', createTslaxReading())
    },
    async countOrders() {
      const { rows } = await sql<{
        n: bigint
      }>`select count(*) as n from paper_orders where account_id = ${currentTenant}`.execute(database.db)
      return Number(rows[0]!.n)
    },
    ...node,
    startNode,
    call,
    addTenant: (id: string) => addTenant(database, id),
    run: (body: Record<string, unknown>, headers?: Record<string, string>) =>
      call('POST', '/api/rh/run', { tenant_id: currentTenant, side: 'buy', quantity: 1, ...body }, headers),
    approve: (runId: string, body: Record<string, unknown> = {}) =>
      call('POST', '/api/rh/approve', { run_id: runId, ...body }),
    getRun: async (runId: string) => (await call('GET', `/api/rh/runs/${runId}`)).body,
    events: () => readEvents(database.db),
    async close() {
      await app.close()
      await database.close()
      await testDatabase.drop()
    },
  }
}

const COUNTER = 'budget:test'

const holdIn = (scope: string, amountMicro: bigint) => ({
  scope,
  period: 'total',
  amount_micro: amountMicro,
  on_success: 'spend' as const,
  measure: 'money' as const,
  defined: true,
  enforce: true,
  event_id: null,
})

/** In these tests the API key of a tenant is its id. */
async function serve(
  clock: ReturnType<typeof createTestClock>,
  brokerage: Brokerage,
  oauth: ReturnType<typeof createRhAuth>,
) {
  const caller = (tenantId: string): TenantCaller => ({
    kind: 'tenant',
    tenantId,
    keyId: `key_${tenantId}`,
    scopes: ['read', 'run', 'control'],
    spender: null,
    team: null,
    mandateIds: null,
    auth: 'key',
  })
  const app = await createHttp({
    log: silent,
    clock,
    ids: createIds(clock),
    metrics: createMetrics(),
    authenticate: {
      key: async (key) => (key.startsWith('ten_') ? caller(key) : undefined),
      admin: (key) => key === 'the-admin-key',
    },
    limiter: createRateLimiter(clock),
    limits: { anonymousPerMinute: 0, keyPerMinute: 0 },
    publicUrl: () => 'http://127.0.0.1',
  })
  rhRoutes(app, brokerage)
  cbReceiptsRoutes(app, brokerage)
  rhAuthRoutes(app, oauth)
  await app.ready()
  return app
}

function createTestPaperBroker(
  database: Database,
  market: PaperMarket,
  clock: ReturnType<typeof createTestClock>,
  venue: string,
  types: Parameters<typeof createPaperBroker>[0]['types'],
): PaperBroker {
  return createPaperBroker({
    venue,
    types,
    market,
    calendar,
    clock,
    store: createPaperStore(database.db, venue),
    seed: 'seed',
    openingCashMicro: 100_000_000_000n,
  })
}

async function addTenant({ db }: Database, id: string): Promise<string> {
  await sql`insert into tenants (id, org_name, email, created_at, updated_at) values (${id}, 'Test', 'a@b.test', now(), now()) on conflict do nothing`.execute(
    db,
  )
  await sql`insert into api_keys (id, tenant_id, name, prefix, hash, scopes, created_at) values (${`key_${id}`}, ${id}, 'k', 'p', ${id}, '{read,run,control}', now()) on conflict do nothing`.execute(
    db,
  )
  return id
}

const createTslaxReading = (): RwaReading => ({
  symbol: 'TSLAx',
  underlying: 'TSLA',
  chain: 'solana',
  tokenContract: 'XsDoVfqeBukxuZHWhdvWHBhgEHjGNst4MLodqsJHzoB',
  multiplier: 1,
  wrapperPriceE8: e8('390.00'),
  basisBps: 12,
  nearReferenceUsd: 250_000,
  creation: 'open',
  halted: false,
  asOf: new Date(OPEN),
  source: 'basis',
  preview: false,
})

function listInstruments(market: ManualMarket): ManualMarket {
  market.list({ type: 'equity', symbol: 'AAPL' }, '200.00')
  market.list({ type: 'perp', symbol: 'BTC-PERP' }, '60000.00')
  market.list(
    { type: 'crypto', symbol: 'BTC-USD', crypto: { baseAsset: 'BTC', quoteAsset: 'USD', network: 'bitcoin' } },
    '60000.00',
  )
  market.list(
    {
      type: 'rwa',
      symbol: 'TSLAx',
      rwa: {
        underlyingAsset: 'TSLA',
        tokenContract: 'XsDoVfqeBukxuZHWhdvWHBhgEHjGNst4MLodqsJHzoB',
        chain: 'solana',
        multiplier: 1,
      },
    },
    '390.00',
  )
  market.list(
    {
      type: 'earn',
      symbol: 'USDC-EARN',
      sigmaBps: 0,
      takerFeeBps: 0,
      earn: { yieldRateBps: 410, lockDays: 7, earlyExitPenaltyBps: 25, protocol: 'paper-lending' },
    },
    '1.00',
    0,
  )
  market.list(
    {
      type: 'spend',
      symbol: 'acme-store',
      sigmaBps: 0,
      takerFeeBps: 0,
      spend: { merchantId: 'mrc_1', category: 'general', rail: 'paper_usdc' },
    },
    '1.00',
    0,
  )
  // A thin market: any order moves the price, and larger ones fill only in part.
  market.list({ type: 'equity', symbol: 'THIN', advE8: e8('200'), sigmaBps: 2000 }, '10.00')
  return market
}
