import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import {
  createActivity,
  openTowerTenant,
  startTowerService,
  type TowerService,
  type TowerTenant,
} from './tower-world.ts'

let service: TowerService
beforeAll(async () => {
  service = await startTowerService()
})
afterEach(() => service.letGo(), 10_000)
afterAll(() => service?.close())

type Row = Record<string, unknown>

/** All rows of a list, page by page. */
async function readRows(tenant: TowerTenant, path: string, field: string): Promise<Row[]> {
  const rows: Row[] = []
  for (let cursor = ''; ; ) {
    const { status, body, text } = await service.get(`${path}${cursor}`, tenant.headers)
    expect(status, `${path} ${text}`).toBe(200)
    rows.push(...body[field])
    const next = body.next_after ?? body.next_cursor ?? null
    if (next === null) return rows
    cursor = `${path.includes('?') ? '&' : '?'}${body.next_after ? 'after' : 'cursor'}=${next}`
  }
}

/** Each figure of the control tower, and the list that has the rows it counts. */
// biome-ignore lint/suspicious/noExplicitAny: tests assert on the response
function figuresOf(tower: any): [name: string, value: number, path: string, field: string][] {
  const day = `${tower.as_of.slice(0, 10)}T00:00:00.000Z`
  const month = `${tower.as_of.slice(0, 7)}-01T00:00:00.000Z`
  const runs = (query: string) => [`/api/runs?limit=7&${query}`, 'runs'] as const
  return [
    ['runs.today', tower.runs.today, ...runs(`since=${day}`)],
    ['runs.month', tower.runs.month, ...runs(`since=${month}`)],
    ['runs.completed_today', tower.runs.completed_today, ...runs(`outcome=completed&since=${day}`)],
    ['runs.blocked_today', tower.runs.blocked_today, ...runs(`outcome=blocked&since=${day}`)],
    ['runs.failed_today', tower.runs.failed_today, ...runs(`outcome=failed&since=${day}`)],
    ['runs.executing', tower.runs.executing, ...runs('progress=executing')],
    ['runs.escalated', tower.runs.escalated, ...runs('outcome=escalated')],
    ['approvals_pending', tower.approvals_pending, '/api/approvals?status=pending&limit=3', 'approvals'],
    [
      'brokerage_approvals_pending',
      tower.brokerage_approvals_pending,
      '/api/rh/runs?status=pending_approval&limit=3',
      'runs',
    ],
    ['self_approved_count', tower.self_approved_count, '/api/control-tower/self-approved', 'decisions'],
    ['preauth.open', tower.preauth.open, '/api/pre-auth?status=active&limit=3', 'preauths'],
    ['preauth.escalated', tower.preauth.escalated, '/api/pre-auth?status=escalated&limit=3', 'preauths'],
    ['settlements_unknown', tower.settlements_unknown, '/api/settlements?state=unknown&limit=1', 'settlements'],
    ['webhooks.active', tower.webhooks.active, '/api/webhooks?status=active&limit=1', 'subscriptions'],
    ['webhooks.failing', tower.webhooks.failing, '/api/webhooks?status=failing&limit=1', 'subscriptions'],
    ['webhooks.pending_deliveries', tower.webhooks.pending_deliveries, '/api/webhook-deliveries?limit=2', 'deliveries'],
    ['budgets_at_risk', tower.budgets_at_risk.length, '/api/control-tower/budgets?at_risk=true', 'budgets'],
    ['alerts_unread', tower.alerts_unread, '/api/predictive/alerts?unread=true&limit=10', 'alerts'],
  ]
}

const largestCounts = new Map<string, number>()

test.each([1, 2, 3, 4])(
  'every figure of the control tower is the number of rows of its list (seed %i)',
  async (seed) => {
    const tenant = await openTowerTenant(service, `World ${seed}`)
    await createActivity(service, tenant, seed)
    const compare = async () => {
      const tower = (await service.get('/api/control-tower', tenant.headers)).body
      for (const [name, value, path, field] of figuresOf(tower)) {
        const rows = await readRows(tenant, path, field)
        expect(rows.length, `${name} = ${value}, ${path} has ${rows.length}`).toBe(value)
        expect(new Set(rows.map((row) => JSON.stringify(row))).size, `${path} repeats rows`).toBe(rows.length)
        largestCounts.set(name, Math.max(largestCounts.get(name) ?? 0, value))
      }
      const spend = (await service.get(`/api/spend?from=${tower.as_of.slice(0, 10)}`, tenant.headers)).body
      expect(tower.spend.today_usdc).toBe(spend.totals.amount_usdc)
    }
    await compare()
    // The same once every run has ended, and before and after the sequencer has added them up.
    service.letGo()
    await service.service.background.idle()
    await compare()
    await service.service.sequencer.runOnce()
    await compare()
  },
  60_000,
)

test('the worlds had something to count for every figure', () => {
  const { names, empty } = {
    names: [...largestCounts.keys()],
    empty: [...largestCounts].filter(([, value]) => value === 0),
  }
  expect(names).toHaveLength(18)
  expect(empty).toEqual([])
})

test('a tenant without anything has zeros, whatever another has', async () => {
  const tenant = await service.onboard('Empty')
  const tower = (await service.get('/api/control-tower', tenant.headers)).body
  expect(figuresOf(tower).filter(([, value]) => value !== 0)).toEqual([])
})
