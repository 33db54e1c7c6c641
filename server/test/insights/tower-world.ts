import { expect } from 'vitest'
import { createOfflineLane } from '../../src/adapters/lanes/offline.ts'
import type { Lane } from '../../src/modules/runs/lane.ts'
import { createTestClock, type TestClock } from '../clock.ts'
import { type Tenant, whileSequencing } from '../governance/world.ts'
import { readChallenge, signPayment, startService, type TestService } from '../harness.ts'

/** A service whose clock a test advances, and whose lane fails or waits when the task says so. */
export type TowerService = TestService & { clock: TestClock; letGo(): Promise<void> }

export async function startTowerService(env: Record<string, string> = {}): Promise<TowerService> {
  const clock = createTestClock(new Date(Math.floor(Date.now() / 1000) * 1000))
  const offline = createOfflineLane()
  const openers = new Set<() => void>()
  const knownRuns = new Set<string>()
  const lane: Lane = {
    ...offline,
    isMomentary: (_, task) => !/slow|fail/.test(task),
    async execute(task) {
      if (task.task.includes('fail'))
        return { ok: false, reason: 'unavailable', message: 'The lane fails on demand.', retryable: true }
      // Verification repeats the work.
      if (task.task.includes('slow') && !knownRuns.has(task.runId)) {
        knownRuns.add(task.runId)
        await new Promise<void>((open) => {
          openers.add(open)
          task.signal.addEventListener('abort', () => open())
        })
      }
      return offline.execute(task)
    },
  }
  const service = await startService({ clock, lane, env: { BACKGROUND_WORK: 'off', ...env } })
  return Object.assign(service, {
    clock,
    /** Ends the work that waits; until then its runs are executing. */
    async letGo() {
      const timer = setInterval(() => {
        for (const open of openers) open()
      }, 10)
      await service.service.background.idle()
      clearInterval(timer)
    },
  })
}

/** Numbers that are the same for the same seed. */
export function createRandom(seed: number) {
  let state = seed
  const next = () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return state / 2_147_483_648
  }
  return {
    between: (low: number, high: number) => low + Math.floor(next() * (high - low + 1)),
    pick: <T>(values: readonly T[]): T => values[Math.floor(next() * values.length)]!,
  }
}

/** Five minutes from now, by the clock of the service. */
const validBefore = ({ clock }: TowerService) => BigInt(Math.floor(clock.now().getTime() / 1000) + 300)

export type TowerTenant = Tenant & { admin: Record<string, string> }

export async function openTowerTenant(service: TowerService, name: string): Promise<TowerTenant> {
  const tenant = await service.onboard(name)
  const admin = { 'x-admin-key': service.service.adminKey }
  await service.call('PATCH', `/api/admin/tenants/${tenant.tenantId}`, { plan: 'enterprise' }, admin)
  const { body } = await service.post('/api/wallets', { name: 'till' }, tenant.headers)
  const topUp = `/api/wallets/${body.wallet_id}/topup`
  const payer = await service.payer(2)
  const challenge = readChallenge((await service.post(topUp, { amount_usdc: 1 }, tenant.headers)).headers)
  const payment = await signPayment(payer, challenge, { validBefore: validBefore(service) })
  const paid = await service.post(topUp, { amount_usdc: 1 }, { ...tenant.headers, ...payment })
  expect(paid.status, paid.text).toBe(200)
  // Enough for everything that follows, whatever a payer has.
  await service.db
    .updateTable('wallets')
    .set({ available_micro: 1_000_000_000n })
    .where('id', '=', body.wallet_id)
    .execute()
  return { ...tenant, walletId: body.wallet_id, admin }
}

/**
 * Fills a tenant with activity of every kind and every state, in numbers that depend on the seed: over HTTP, but for what
 * only time or another party's failure would bring.
 */
export async function createActivity(service: TowerService, tenant: TowerTenant, seed: number): Promise<void> {
  const random = createRandom(seed)
  const { headers } = tenant
  const { pool } = service.service.database
  const times = async (low: number, high: number, act: (index: number) => Promise<unknown>) => {
    const count = random.between(low, high)
    for (let index = 0; index < count; index += 1) await act(index)
  }
  const make = async (path: string, body: unknown, statuses: number[], more: Record<string, string> = {}) => {
    const response = await whileSequencing(service, service.post(path, body, { ...headers, ...more }))
    expect(statuses, `${path} ${response.text}`).toContain(response.status)
    return response.body
  }
  const wallet = { payment: { wallet_id: tenant.walletId } }
  const run = (task: string, agent_id: string, statuses: number[], fields = {}, more = {}) =>
    make('/api/run', { task, agent_id, ...wallet, ...fields }, statuses, more)
  let count = 0
  const number = () => ++count

  await make('/api/policies', { name: 'Ask first', constraints: { require_approval_above_usdc: 0.02 } }, [201])
  await make('/api/control-tower', { action: 'freeze', agent_id: 'analyst-v1', reason: 'A test.' }, [200])
  await make('/api/budgets', { budget_id: 'daily', window: 'day', limit_usdc: 100_000 }, [200, 201])
  // After two jokes less is left than one costs.
  const scope = { type: 'agent', id: 'comedian-v1' }
  await make('/api/budgets', { budget_id: 'jokes', window: 'day', scope, limit_usdc: 0.025 }, [200, 201])

  await times(2, 5, (index) => run(`Joke ${number()}`, 'comedian-v1', [index < 2 ? 200 : 429]))
  await times(1, 3, () => run(`Text ${number()}`, 'writer-v1', [200]))
  await times(1, 3, () => make('/api/loop', { input: `Loop ${number()}`, agent_id: 'writer-v1', ...wallet }, [200]))
  await times(1, 4, () => run(`fail ${number()}`, 'writer-v1', [500, 502, 503]))
  await times(1, 4, () => run(`Blocked ${number()}`, 'analyst-v1', [429]))
  await times(2, 5, async () => {
    const { approval_id } = await run(`Code ${number()}`, 'coder-v1', [429])
    const decision = random.pick(['approve', 'reject', undefined])
    if (decision) await make('/api/approvals', { approval_id, decision, reason: 'A test.' }, [200])
  })
  await times(1, 3, () => run(`slow ${number()}`, 'writer-v1', [202], {}, { prefer: 'respond-async' }))

  // An x402 payment whose settlement did not answer: what the service writes then, without a facilitator that is silent.
  await times(1, 2, async () => {
    const body = { task: `slow ${number()}`, agent_id: 'writer-v1' }
    const payer = await service.payer(1)
    const challenge = readChallenge((await service.post('/api/run', body, headers)).headers)
    const payment = await signPayment(payer, challenge, { validBefore: validBefore(service) })
    const { run_id } = await make('/api/run', body, [202], { ...payment, prefer: 'respond-async' })
    const input = { run_id, reason: 'silent', at: service.clock.now().toISOString(), event: null }
    await pool.query(`update open_runs set payment_state = 'unknown', reason = $2, updated_at = $3 where id = $1`, [
      input.run_id,
      input.reason,
      input.at,
    ])
  })

  const preauth = (amount_usdc: number) =>
    make('/api/pre-auth', { agent_id: `buyer-${random.between(1, 3)}`, merchant: { id: 'shop' }, amount_usdc }, [201])
  // These are forgotten, and escalated once their time is over.
  await times(1, 3, () => preauth(0.01))
  service.clock.advance(11 * 60_000)
  await service.service.governance.sweepOrphanedPreauths()
  await times(1, 4, () => preauth(0.01))
  await times(1, 3, async () => {
    const { approval_id } = await preauth(0.5)
    const decision = random.pick(['approve', 'reject', undefined])
    if (decision) await make('/api/approvals', { approval_id, decision }, [200])
  })
  await times(2, 4, async () => {
    const { preauth_id } = await preauth(0.01)
    await make('/api/pre-auth/close', { preauth_id, outcome: random.pick(['failed', 'voided', 'settled']) }, [200])
  })
  const trade = { tenant_id: tenant.tenantId, symbol: 'acme-store', instrument_type: 'spend', side: 'buy' }
  await times(1, 3, async () => {
    const { run_id } = await make('/api/rh/run', { ...trade, quantity: 1_500, agent_id: 'trader-1' }, [202])
    if (random.pick([true, false]) && count % 2 === 0) await make('/api/rh/approve', { run_id }, [200])
  })

  await times(2, 4, async (index) => {
    const { id } = await make('/api/webhooks', { url: `http://127.0.0.1:9/${index}`, events: ['*'] }, [201])
    const state = random.pick(['active', 'off', 'failing', 'deleted'] as const)
    if (state === 'off') await service.call('PATCH', `/api/webhooks/${id}`, { is_active: false }, headers)
    if (state === 'deleted') await service.call('DELETE', `/api/webhooks/${id}`, undefined, headers)
    if (state === 'failing')
      await pool.query('update webhook_subscriptions set failing_since = now() where id = $1', [id])
    if (state === 'active' || state === 'failing') await make(`/api/webhooks/${id}/test`, {}, [202])
  })
  await times(1, 30, async () => {
    const { id } = await make('/api/predictive/alerts', { severity: 'info', type: 'test', message: 'A test.' }, [201])
    if (random.between(1, 4) === 1) await service.call('PATCH', '/api/predictive/alerts', { id }, headers)
  })
  await service.service.sequencer.runOnce()
}
