import { createOfflineLane } from '../../src/adapters/lanes/offline.ts'
import type { Lane, LaneResult, LaneTask } from '../../src/modules/runs/lane.ts'
import { type Payer, readChallenge, signPayment, startService } from '../harness.ts'
import { readEvents } from '../journal.ts'

const ADMIN_KEY = 'a-key-that-only-the-operator-has'

/**
 * A service whose clock and lane the test controls, and clients that pay it. Its background work is off: a test calls the
 * sweep that it is about, and nothing else sweeps at the same time.
 */
export async function startWorld(env: Record<string, string> = {}) {
  let offset = 0
  let laneOverride: ((task: string, laneTask: LaneTask) => Promise<LaneResult | undefined>) | undefined
  const offline = createOfflineLane()
  const lane: Lane = {
    ...offline,
    isMomentary: (agentId, task) => laneOverride === undefined && offline.isMomentary!(agentId, task),
    execute: async (task) => (await laneOverride?.(task.task, task)) ?? offline.execute(task),
  }
  const clock = { now: () => new Date(Date.now() + offset) }
  // With a provider in the settings its models do the work.
  const lanes = env.LANE_PROVIDER ? {} : { lane }
  const service = await startService({ clock, ...lanes, env: { ADMIN_KEY, BACKGROUND_WORK: 'off', ...env } })
  const admin = { 'x-admin-key': ADMIN_KEY }

  const world = {
    ...service,
    admin,
    advance: (milliseconds: number) => {
      offset += milliseconds
    },
    /** Replaces the lane's execution; undefined restores the offline lane. */
    setLane: (next: typeof laneOverride) => {
      laneOverride = next
    },

    /** Sends the request, signs the payment that the 402 asks for, and sends both. */
    async pay(payer: Payer, path: string, body: unknown, headers: Record<string, string> = {}) {
      const challenge = await service.post(path, body, headers)
      if (challenge.status !== 402) throw new Error(`Expected a 402 and got ${challenge.status}: ${challenge.text}`)
      const validBefore = BigInt(Math.floor(clock.now().getTime() / 1000) + 300)
      const payment = await signPayment(payer, readChallenge(challenge.headers), { validBefore })
      return { payment, answer: await service.post(path, body, { ...headers, ...payment }) }
    },

    /** A tenant with a wallet that holds this amount. */
    async tenantWithWallet(usdc = 1) {
      const tenant = await service.onboard()
      // Events are recorded for those who have subscribed.
      await service.post('/api/webhooks', { url: 'https://example.com/hook', events: ['*'] }, tenant.headers)
      const { body: wallet } = await service.post('/api/wallets', { name: 'Agents' }, tenant.headers)
      const payer = await service.payer(usdc + 1)
      if (usdc > 0) {
        const { answer } = await world.pay(
          payer,
          `/api/wallets/${wallet.wallet_id}/topup`,
          { amount_usdc: usdc },
          tenant.headers,
        )
        if (answer.status !== 200) throw new Error(answer.text)
      }
      return { ...tenant, payer, walletId: wallet.wallet_id as string }
    },

    balanceOf: async (tenant: { walletId: string; headers: Record<string, string> }) =>
      (await service.get(`/api/wallets/${tenant.walletId}`, tenant.headers)).body.balance as Record<
        'available' | 'pending' | 'escrowed' | 'reserved',
        string
      >,

    events: (tenantId: string) => readEvents(service.db, tenantId),

    payee: async () =>
      readChallenge((await service.post('/api/run', { task: 'hello' })).headers).accepts[0].payTo as string,
  }
  return world
}

export type World = Awaited<ReturnType<typeof startWorld>>

export const failingLane = async (): Promise<LaneResult> => ({
  ok: false,
  reason: 'unavailable',
  message: 'The lane is down.',
  retryable: true,
})

export const laneReturning = (output: string) => async (): Promise<LaneResult> => ({
  ok: true,
  output,
  provider: 'test',
  model: 'test',
  mode: 'live',
  usage: { inputTokens: 1, outputTokens: 1, costUsd: 0 },
  fallbacks: [],
})
