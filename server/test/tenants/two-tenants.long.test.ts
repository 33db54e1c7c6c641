import { afterAll, beforeAll, expect, test } from 'vitest'
import { sha256 } from '../../src/platform/canonical.ts'
import { startService, type TestService } from '../harness.ts'
import { openReceiver, type Receiver } from '../webhooks/receiver.ts'
import { listRoutes, type RouteDescription, sampleValue } from './openapi-samples.ts'

/**
 * Two tenants and every route of the OpenAPI document. The victim creates rows with a secret word wherever it can; the
 * intruder then sends the victim's ids to every route, in every path, query and body.
 */
const SECRET_WORD = 'zanzibar7261'

let service: TestService
let receiver: Receiver
let victim: { tenantId: string; headers: Record<string, string> }
let intruder: { tenantId: string; headers: Record<string, string> }
let routes: RouteDescription[]
let ids: string[]

beforeAll(async () => {
  service = await startService()
  receiver = await openReceiver()
  victim = await service.onboard(SECRET_WORD)
  intruder = await service.onboard('Intruder')
  const { body } = await service.get('/openapi.json')
  // A stream never ends; tower-stream.test.ts holds that another tenant hears nothing of this one's.
  routes = listRoutes(body).filter(({ path }) => !path.endsWith('/stream'))
  await createVictimRows()
  ids = await readIds(victim.tenantId)
})
afterAll(async () => {
  await service?.close()
  await receiver?.close()
})

async function createVictimRows() {
  const payer = await service.payer()
  await payer.fetch(`${service.url}/api/run`, {
    method: 'POST',
    headers: { ...victim.headers, 'content-type': 'application/json' },
    body: JSON.stringify({ task: `Think of ${SECRET_WORD}.`, agent_id: 'comedian-v1', session_id: `s-${SECRET_WORD}` }),
  })
  const requests: [string, unknown][] = [
    ['/api/webhooks', { url: `${receiver.url}/${SECRET_WORD}`, events: ['*'] }],
    ['/api/predictive/alerts', { severity: 'info', type: 'note', message: SECRET_WORD }],
    ['/api/control-tower', { action: 'freeze', agent_id: `agent-${SECRET_WORD}`, reason: SECRET_WORD }],
    ['/api/policies', { name: SECRET_WORD, rules: [] }],
    ['/api/budgets', { budgets: [{ budget_id: SECRET_WORD, window: 'day', limit_usdc: 5 }] }],
    ['/api/memory', { session_id: `s-${SECRET_WORD}`, content: SECRET_WORD }],
    ['/api/wallets', {}],
    [
      '/api/pre-auth',
      {
        agent_id: 'comedian-v1',
        merchant: { id: SECRET_WORD },
        amount_usdc: 0.01,
        ttl_seconds: 60,
        purpose: SECRET_WORD,
      },
    ],
  ]
  for (const [path, body] of requests)
    if (routes.some((route) => route.path === path)) await service.post(path, body, victim.headers)
}

/** The ids of a tenant's rows in all tables. */
async function readIds(tenantId: string): Promise<string[]> {
  const { pool } = service.service.database
  const { rows: tables } = await pool.query<{ table_name: string; column_name: string }>(
    `select c.table_name, c.column_name from information_schema.columns c
     join information_schema.columns t on t.table_name = c.table_name and t.table_schema = 'public' and t.column_name = 'tenant_id'
     join information_schema.tables b on b.table_name = c.table_name and b.table_schema = 'public' and b.table_type = 'BASE TABLE'
     where c.table_schema = 'public' and c.data_type = 'text' and (c.column_name = 'id' or c.column_name like '%\\_id')`,
  )
  const ids = new Set<string>()
  for (const { table_name, column_name } of tables) {
    const { rows } = await pool.query(
      `select distinct "${column_name}" as id from "${table_name}" where tenant_id = $1 limit 20`,
      [tenantId],
    )
    for (const { id } of rows) if (id) ids.add(id)
  }
  return [...ids]
}

/** A digest of all of a tenant's rows, by table. */
async function digestRows(tenantId: string): Promise<Record<string, string>> {
  const { pool } = service.service.database
  const { rows: tables } = await pool.query<{ table_name: string }>(
    `select c.table_name from information_schema.columns c join information_schema.tables b using (table_name, table_schema)
     where c.table_schema = 'public' and c.column_name = 'tenant_id' and b.table_type = 'BASE TABLE' order by 1`,
  )
  const snapshot: Record<string, string> = {}
  for (const { table_name } of tables) {
    const { rows } = await pool.query(
      `select coalesce(jsonb_agg(to_jsonb(r) order by to_jsonb(r)::text), '[]')::text as text from "${table_name}" r where tenant_id = $1`,
      [tenantId],
    )
    snapshot[table_name] = sha256(rows[0].text)
  }
  return snapshot
}

const unknownLike = (id: string) => id.replace(/[0-9a-f]{12}$/, '000000000000')
const isPublic = ({ path }: RouteDescription) =>
  /^\/api\/(receipts|log|basis|dev|onboard)|^\/facilitator|^\/\.well-known/.test(path)
const isAdmin = (route: RouteDescription) => route.admin

test('the victim has rows in many tables, and there are routes to try', () => {
  expect(ids.length).toBeGreaterThan(5)
  expect(routes.length).toBeGreaterThan(40)
})

/** Expected here: routed actions are planned (501), and OAuth is not configured (503). */
const isExpectedError = (path: string, status: number) =>
  (path === '/api/route-intent' && status === 501) ||
  (['/api/rh/auth', '/api/rh/auth/callback'].includes(path) && status === 503)

/** The head of the victim's audit chain is put into the log once a minute, which changes its row. */
async function isAuditHeadInLog(): Promise<boolean> {
  const { rows } = await service.service.database.pool.query(
    'select 1 from audit_heads where tenant_id = $1 and seq > committed_seq',
    [victim.tenantId],
  )
  return rows.length === 0
}

test("no route shows or changes another tenant's rows", async () => {
  // Waits until background work no longer changes the victim's rows.
  let previous = ''
  await expect
    .poll(
      async () => {
        const current = JSON.stringify(await digestRows(victim.tenantId))
        const isUnchanged = current === previous
        previous = current
        return isUnchanged && (await isAuditHeadInLog())
      },
      { interval: 2_000, timeout: 150_000 },
    )
    .toBe(true)
  const before = await digestRows(victim.tenantId)
  const leaks: string[] = []
  let requestCount = 0
  for (const route of routes.filter((route) => !isPublic(route) && !isAdmin(route))) {
    for (const id of ids) {
      const foreign = await requestWithId(route, id)
      const unknown = await requestWithId(route, unknownLike(id))
      requestCount += 2
      const label = `${route.method} ${route.path} with ${id}`
      if (foreign.text.replaceAll(id, '').includes(SECRET_WORD)) leaks.push(`${label} shows the victim's secret word`)
      if (foreign.status >= 500 && !isExpectedError(route.path, foreign.status))
        leaks.push(`${label} returns ${foreign.status}`)
      if (route.path.includes('{') && foreign.status !== unknown.status)
        leaks.push(`${label} returns ${foreign.status}, an unknown id ${unknown.status}`)
      if (route.path.includes('{') && normalise(foreign.text, id) !== normalise(unknown.text, unknownLike(id)))
        leaks.push(`${label} responds differently than for an unknown id`)
    }
  }
  expect(leaks).toEqual([])
  console.log(`${routes.length} routes, ${ids.length} ids of the victim, ${requestCount} requests`)
  expect(await digestRows(victim.tenantId)).toEqual(before)
})

test('requests without a credential do not show the secret word either', async () => {
  for (const route of routes.filter((route) => route.method === 'GET' && !isPublic(route))) {
    for (const id of ids.slice(0, 5)) {
      const response = await requestWithId(route, id, {})
      expect(response.text.replaceAll(id, ''), route.path).not.toContain(SECRET_WORD)
    }
  }
})

/** Sends an id wherever the route takes one: in its path, in every text of its query, in every id of its body. */
async function requestWithId(route: RouteDescription, id: string, headers: Record<string, string> = intruder.headers) {
  const path = route.path.replace(/\{[^}]+\}/g, () => encodeURIComponent(id))
  const query = new URLSearchParams(route.query.map((name): [string, string] => [name, id])).toString()
  const body = route.body && sampleValue(route.body, id)
  const response = await service.call(route.method, `${path}${query && `?${query}`}`, body, {
    ...headers,
    'x-request-id': 'same',
  })
  // When the id is not valid as a query parameter, the request is repeated without the query.
  if (response.status !== 400 || !query) return response
  return service.call(route.method, path, body, { ...headers, 'x-request-id': 'same' })
}

const normalise = (text: string, id: string) =>
  text
    .replaceAll(id, 'ID')
    .replace(/"(\w*_at|as_of|since|until|at|seq|timestamp)":"?[^,}"]*"?/g, '')
    .replace(/[a-z]+_[0-9a-f]{8}-[0-9a-f-]{27}/g, 'FRESH')
