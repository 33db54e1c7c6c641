import { createOfflineLane } from '../../src/adapters/lanes/offline.ts'
import type { Lane } from '../../src/modules/runs/lane.ts'
import { createTestClock, type TestClock } from '../clock.ts'
import { startService, type TestService } from '../harness.ts'

/** A service with a manual clock and a lane that fails on demand. Background work is off: tests call the sweeps themselves. */
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
        await new Promise((resolve) => setTimeout(resolve, this.slowMs))
        return { ok: false, reason: 'unavailable', message: 'The lane fails on demand.', retryable: true }
      }
      return offline.execute(task)
    },
  }
}

export async function openWorld(env: Record<string, string> = {}): Promise<World> {
  const clock = createTestClock(new Date(Math.floor(Date.now() / 1000) * 1000))
  const lane = flakyLane()
  const service = await startService({ clock, lane, env: { BACKGROUND_WORK: 'off', ...env } })
  return Object.assign(service, { clock, lane })
}

export type Tenant = { tenantId: string; apiKey: string; headers: Record<string, string>; walletId: string }

/** A tenant with money in a wallet, so that its runs need no chain. */
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

/** Sends one run that is paid from the wallet. */
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

/** Runs the sequencer, which is background work, while a request waits for it. */
export async function whileSequencing<T>(world: TestService, request: Promise<T>): Promise<T> {
  let isDone = false
  const answer = request.finally(() => {
    isDone = true
  })
  while (!isDone) {
    await world.service.sequencer.runOnce()
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  return answer
}

/** Creates another key of the tenant with these scopes. */
export async function anotherKey(
  world: TestService,
  tenant: Tenant,
  scopes = ['read', 'run', 'control', 'mandate'],
): Promise<Record<string, string>> {
  const createResponse = await world.post(
    `/api/admin/tenants/${tenant.tenantId}/keys`,
    { scopes },
    { 'x-admin-key': world.service.adminKey },
  )
  return { 'x-api-key': createResponse.body.api_key }
}

/** Counters that break the invariant: reserved equals the open holds, and no limit is exceeded (M7). */
export async function counterFaults(world: TestService): Promise<unknown[]> {
  const { rows } = await world.service.database.pool.query(`
    select counter.scope, counter.period, counter.spent_micro, counter.reserved_micro, counter.limit_micro,
           coalesce(held.open_micro, 0) as open_micro
    from limits counter
    left join (
      select scope, period, sum(amount_micro) as open_micro from open_holds group by 1, 2
    ) held using (scope, period)
    left join limit_definitions definition using (scope)
    where counter.reserved_micro <> coalesce(held.open_micro, 0)
       or counter.spent_micro + counter.reserved_micro > counter.limit_micro
       or (definition.enforced and definition.scope like 'budget:%'
           and counter.spent_micro + counter.reserved_micro > definition.limit_micro)`)
  return rows
}
