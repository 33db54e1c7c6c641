import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { createHttpFetch } from '../../src/adapters/prices/http-fetch.ts'
import { basisRoutes } from '../../src/modules/basis/basis.routes.ts'
import { createBasis } from '../../src/modules/basis/basis.ts'
import { type Coverage, loadCoverage } from '../../src/modules/basis/coverage.ts'
import type { PriceSource } from '../../src/modules/basis/price-source.ts'
import { createReceipts } from '../../src/modules/receipts/receipts.ts'
import type { Authenticate } from '../../src/platform/auth-context.ts'
import type { Database } from '../../src/platform/db.ts'
import { createHttp } from '../../src/platform/http.ts'
import { createIds } from '../../src/platform/ids.ts'
import { createKeys } from '../../src/platform/keys.ts'
import { createMetrics } from '../../src/platform/metrics.ts'
import { createRateLimiter } from '../../src/platform/rate-limit.ts'
import { createTestClock, type TestClock } from '../clock.ts'
import { silent } from '../harness.ts'
import { NOW } from './source-responses.ts'
import { createTestSigners } from './test-signers.ts'

export type BasisNode = Awaited<ReturnType<typeof openBasisNode>>

export type BasisNodeOptions = {
  sources?: PriceSource[]
  coverage?: Coverage
  clock?: TestClock
  holder?: string
  metered?: boolean
  /** How long a key takes to look up. */
  keyDelayMs?: number
}

export const VALID_KEY = 'a_valid_key'

/** One process of the service with only the basis API. Emitted events are collected in `events`. */
export async function openBasisNode(database: Database, options: BasisNodeOptions = {}) {
  const clock = options.clock ?? createTestClock(NOW)
  const keys = createKeys({ signing: 's'.repeat(32), encryption: 'e'.repeat(32) })
  const { signers, jwks, addresses } = createTestSigners(keys)
  const events: { type: string; data: Record<string, unknown> }[] = []
  const authenticate: Authenticate = {
    key: async (key) => {
      if (options.keyDelayMs) await sleep(options.keyDelayMs)
      return key === VALID_KEY
        ? {
            kind: 'tenant',
            tenantId: 'ten_1',
            keyId: 'key_1',
            scopes: ['read'],
            spender: null,
            team: null,
            mandateIds: null,
            auth: 'key',
          }
        : undefined
    },
    admin: () => false,
  }
  const receipts = createReceipts({ db: database.db, keys, clock, publicUrl: () => 'https://countersign.test' })
  const basis = createBasis({
    db: database.db,
    clock,
    notifications: { listen() {} },
    coverage: options.coverage ?? loadCoverage(),
    sources: options.sources ?? [],
    fetch: createHttpFetch({ clock, timeoutMs: 2_000 }),
    signers,
    entries: receipts,
    holder: options.holder ?? 'this process',
    emit: async (_tx, event) => void events.push(event),
  })
  const app = await createHttp({
    log: silent,
    clock,
    ids: createIds(clock),
    metrics: createMetrics(),
    authenticate,
    limiter: createRateLimiter(clock),
    limits: { anonymousPerMinute: 0, keyPerMinute: 0 },
    publicUrl: () => 'https://countersign.test',
  })
  basisRoutes(app, {
    basis,
    authenticate,
    metered: options.metered ?? false,
    limits: { anonymousPerMinute: 2, keyPerMinute: 5 },
  })
  const sockets = new Set<Socket>()
  app.server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  await app.ready()
  const get = async (url: string, headers: Record<string, string> = {}) => {
    const response = await app.inject({ method: 'GET', url, headers })
    const isJson = response.headers['content-type']?.toString().includes('json')
    return {
      status: response.statusCode,
      headers: response.headers,
      text: response.body,
      body: isJson ? response.json() : undefined,
    }
  }
  return {
    app,
    basis,
    receipts,
    keys,
    clock,
    events,
    jwks,
    addresses,
    get,
    openSockets: () => [...sockets],
    close: () => app.close(),
  }
}
