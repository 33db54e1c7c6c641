import { createOfflineLane } from '../../src/adapters/lanes/offline.ts'
import type { Lane } from '../../src/modules/runs/lane.ts'
import { createTestClock, type TestClock } from '../clock.ts'
import { startService, type TestService } from '../harness.ts'

/** A service whose clock stands still until it is moved, whose lane fails when told to, and tenants with money in a wallet. */
export type World = TestService & { clock: TestClock; lane: FlakyLane }

export type FlakyLane = Lane & { failing: boolean; slowMs: number; failed: number }

export function flakyLane(): FlakyLane {
  const offline = createOfflineLane()
  return {
    ...offline,
    failing: false,
    slowMs: 0,
    failed: 0,
    async execute(task) {
      if (this.failing) {
        this.failed += 1
        await new Promise((wait) => setTimeout(wait, this.slowMs))
        return { ok: false, reason: 'unavailable', message: 'The lane was told to fail.', retryable: true }
      }
      return offline.execute(task)
    },
  }
}

export async function openWorld(env: Record<string, string> = {}): Promise<World> {
  const clock = createTestClock(new Date(Math.floor(Date.now() / 1000) * 1000))
  const lane = flakyLane()
  const service = await startService({ clock, lane, env })
  return Object.assign(service, { clock, lane })
}

export type Tenant = { tenantId: string; apiKey: string; headers: Record<string, string>; walletId: string }

/** A tenant whose wallet is full, so that its runs need no chain. */
export async function richTenant(world: TestService, usdc = 1_000): Promise<Tenant> {
  const tenant = await world.onboard()
  const { body } = await world.post('/api/wallets', {}, tenant.headers)
  await world.db
    .updateTable('wallets')
    .set({ available_micro: BigInt(usdc) * 1_000_000n })
    .where('id', '=', body.wallet_id)
    .execute()
  return { ...tenant, walletId: body.wallet_id }
}

/** One run, paid from the wallet. */
export const run = (
  world: TestService,
  tenant: Tenant,
  body: Record<string, unknown> = {},
  headers: Record<string, string> = {},
) =>
  world.post(
    '/api/run',
    { task: 'Tell me a joke about clocks.', agent_id: 'comedian-v1', payment: { wallet_id: tenant.walletId }, ...body },
    { ...tenant.headers, ...headers },
  )

/** Another key of the tenant, with these rights. */
export async function anotherKey(
  world: TestService,
  tenant: Tenant,
  scopes = ['read', 'run', 'control', 'mandate'],
): Promise<Record<string, string>> {
  const made = await world.post(
    `/api/admin/tenants/${tenant.tenantId}/keys`,
    { scopes },
    { 'x-admin-key': world.service.adminKey },
  )
  return { 'x-api-key': made.body.api_key }
}

/** What holds of every counter at every moment (M7). */
export async function counterFaults(world: TestService): Promise<unknown[]> {
  const { rows } = await world.service.database.pool.query(`
    select l.scope, l.period, l.spent_micro, l.reserved_micro, l.limit_micro, coalesce(h.open, 0) as open
    from limits l
    left join (select scope, period, sum(amount_micro) as open from holds where state = 'open' group by 1, 2) h using (scope, period)
    left join limit_definitions d using (scope)
    where l.reserved_micro <> coalesce(h.open, 0) or l.spent_micro + l.reserved_micro > l.limit_micro
       or (d.enforced and d.scope like 'budget:%' and l.spent_micro + l.reserved_micro > d.limit_micro)`)
  return rows
}
