import { afterAll, beforeAll, expect, test } from 'vitest'
import { sha256 } from '../../src/platform/canonical.ts'
import { startService, type TestService } from '../harness.ts'
import { openReceiver, type Receiver } from '../webhooks/receiver.ts'
import { type Described, routesOf, sampleOf } from './openapi-samples.ts'

/**
 * Two tenants and every route of the description. One leaves rows wherever it can, each with a word that only it knows;
 * the other then asks every route for them, in every path, query and body.
 */
const SECRET_WORD = 'zanzibar7261'

let service: TestService
let receiver: Receiver
let victim: { tenantId: string; headers: Record<string, string> }
let intruder: { tenantId: string; headers: Record<string, string> }
let routes: Described[]
let ids: string[]

beforeAll(async () => {
  service = await startService()
  receiver = await openReceiver()
  victim = await service.onboard(SECRET_WORD)
  intruder = await service.onboard('Intruder')
  const { body } = await service.get('/openapi.json')
  routes = routesOf(body)
  await leaveTraces()
  ids = await idsOf(victim.tenantId)
})
afterAll(async () => {
  await service?.close()
  await receiver?.close()
})

/** Everything that takes a body is asked with a plausible one; whatever is accepted leaves a row. */
async function leaveTraces() {
  const payer = await service.payer()
  await payer.fetch(`${service.url}/api/run`, {
    method: 'POST',
    headers: { ...victim.headers, 'content-type': 'application/json' },
    body: JSON.stringify({ task: `Think of ${SECRET_WORD}.`, agent_id: 'comedian-v1', session_id: `s-${SECRET_WORD}` }),
  })
  const known: [string, unknown][] = [
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
  for (const [path, body] of known)
    if (routes.some((route) => route.path === path)) await service.post(path, body, victim.headers)
}

/** Every id of a row that belongs to a tenant, whatever table it is in. */
async function idsOf(tenantId: string): Promise<string[]> {
  const { pool } = service.service.database
  const { rows: tables } = await pool.query<{ table_name: string; column_name: string }>(
    `select c.table_name, c.column_name from information_schema.columns c
     join information_schema.columns t on t.table_name = c.table_name and t.table_schema = 'public' and t.column_name = 'tenant_id'
     join information_schema.tables b on b.table_name = c.table_name and b.table_schema = 'public' and b.table_type = 'BASE TABLE'
     where c.table_schema = 'public' and c.data_type = 'text' and (c.column_name = 'id' or c.column_name like '%\\_id')`,
  )
  const found = new Set<string>()
  for (const { table_name, column_name } of tables) {
    const { rows } = await pool.query(
      `select distinct "${column_name}" as id from "${table_name}" where tenant_id = $1 limit 20`,
      [tenantId],
    )
    for (const { id } of rows) if (id) found.add(id)
  }
  return [...found]
}

/** A digest of all of a tenant's rows, by table. */
async function everythingOf(tenantId: string): Promise<Record<string, string>> {
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
const isPublic = ({ path }: Described) =>
  /^\/api\/(receipts|log|basis|dev|onboard)|^\/facilitator|^\/\.well-known/.test(path)
const isAdmin = (route: Described) => route.admin

test('the victim has left something to be stolen', () => {
  expect(ids.length).toBeGreaterThan(5)
  expect(routes.length).toBeGreaterThan(40)
})

/** The interface itself prescribes these: routed actions are planned, and OAuth is not configured here. */
const isPrescribed = (path: string, status: number) =>
  (path === '/api/route-intent' && status === 501) ||
  (['/api/rh/auth', '/api/rh/auth/callback'].includes(path) && status === 503)

test('no route gives one tenant’s rows to another, or lets it change them', async () => {
  // What the service itself still has to do with the victim's rows is done first.
  let earlier = ''
  await expect
    .poll(
      async () => {
        const now = JSON.stringify(await everythingOf(victim.tenantId))
        const still = now === earlier
        earlier = now
        return still
      },
      { interval: 2_000, timeout: 60_000 },
    )
    .toBe(true)
  const before = await everythingOf(victim.tenantId)
  const leaks: string[] = []
  let asked = 0
  for (const route of routes.filter((one) => !isPublic(one) && !isAdmin(one))) {
    for (const id of ids) {
      const foreign = await ask(route, id)
      const unknown = await ask(route, unknownLike(id))
      asked += 2
      const where = `${route.method} ${route.path} with ${id}`
      if (foreign.text.replaceAll(id, '').includes(SECRET_WORD)) leaks.push(`${where} shows the victim's word`)
      if (foreign.status >= 500 && !isPrescribed(route.path, foreign.status))
        leaks.push(`${where} answers ${foreign.status}`)
      if (route.path.includes('{') && foreign.status !== unknown.status)
        leaks.push(`${where} answers ${foreign.status}, an unknown id ${unknown.status}`)
      if (route.path.includes('{') && plain(foreign.text, id) !== plain(unknown.text, unknownLike(id)))
        leaks.push(`${where} answers otherwise than for an unknown id`)
    }
  }
  expect(leaks).toEqual([])
  console.log(`${routes.length} routes, ${ids.length} ids of the victim, ${asked} requests`)
  expect(await everythingOf(victim.tenantId)).toEqual(before)
})

test('without a credential none of it is shown either', async () => {
  for (const route of routes.filter((one) => one.method === 'GET' && !isPublic(one))) {
    for (const id of ids.slice(0, 5)) {
      const answer = await ask(route, id, {})
      expect(answer.text.replaceAll(id, ''), route.path).not.toContain(SECRET_WORD)
    }
  }
})

/** Puts an id wherever the route takes one: in its path, in every text of its query, in every id of its body. */
async function ask(route: Described, id: string, headers: Record<string, string> = intruder.headers) {
  const path = route.path.replace(/\{[^}]+\}/g, () => encodeURIComponent(id))
  const query = new URLSearchParams(route.query.map((name): [string, string] => [name, id])).toString()
  const body = route.body && sampleOf(route.body, id)
  const first = await service.call(route.method, `${path}${query && `?${query}`}`, body, {
    ...headers,
    'x-request-id': 'same',
  })
  // Where the id makes no sense as one of the parameters, the others are tried without it.
  if (first.status !== 400 || !query) return first
  return service.call(route.method, path, body, { ...headers, 'x-request-id': 'same' })
}

const plain = (text: string, id: string) =>
  text
    .replaceAll(id, 'ID')
    .replace(/"(\w*_at|as_of|since|until|at|seq|timestamp)":"?[^,}"]*"?/g, '')
    .replace(/[a-z]+_[0-9a-f]{8}-[0-9a-f-]{27}/g, 'FRESH')
