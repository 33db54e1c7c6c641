import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { memoryCheckpoints, rememberCheckpoint } from '@countersign/proof'
import { createRandom, type Random } from '../fuzz/random.ts'
import { clients, type Payer, readChallenge, signPayment } from '../harness.ts'
import type { FaultWorld } from './world.ts'

/** A request that gets no answer in this time hangs. */
const ANSWER_LIMIT_MS = 90_000
const PRICE_MICRO = 10_000n
const PAYER_USDC = 50
const WALLET_USDC = 40
export const KINDS = ['x402', 'x402-resent', 'wallet', 'async', 'preauth'] as const
export type Kind = (typeof KINDS)[number]

// biome-ignore lint/suspicious/noExplicitAny: the load asserts on the response
type Answer = { status: number; headers: Headers; text: string; body: Record<string, any> | undefined }
export type Tenant = { headers: Record<string, string>; walletId: string }
/** An acknowledged run: it must be found again, charged once, with its result. */
export type AcknowledgedRun = { kind: Kind; runId: string; receiptId: string; payer?: string; walletId?: string }

type Owner = { payer?: string; walletId?: string }

export type Load = Awaited<ReturnType<typeof startLoad>>

/** A tenant with money in its wallet, paid on the chain. */
export async function makeTenant(world: FaultWorld, { webhooks }: { webhooks: boolean }): Promise<Tenant> {
  const service = world.services[0]!
  const tenant = await service.onboard('Faults')
  const wallet = await service.post('/api/wallets', { name: 'Agents' }, tenant.headers)
  const payer = await clients(world.chain.url).payer(WALLET_USDC)
  const path = `/api/wallets/${wallet.body.wallet_id}/topup`
  const challenge = await service.post(path, { amount_usdc: WALLET_USDC }, tenant.headers)
  const payment = await signPayment(payer, readChallenge(challenge.headers))
  const topUp = await service.post(path, { amount_usdc: WALLET_USDC }, { ...tenant.headers, ...payment })
  if (topUp.status !== 200) throw new Error(`The top-up got ${topUp.status}: ${topUp.text}`)
  const subscription = { url: world.webhookUrl, events: ['run.completed'] }
  const webhook = webhooks ? await service.post('/api/webhooks', subscription, tenant.headers) : undefined
  if (webhook && webhook.status !== 201) throw new Error(webhook.text)
  return { headers: tenant.headers, walletId: wallet.body.wallet_id }
}

/** Clients that repeat a request until it has its final answer, against both processes in turn. */
export async function startLoad(
  world: FaultWorld,
  { seed, clientsPerKind, webhooks = true }: { seed: number; clientsPerKind: number; webhooks?: boolean },
) {
  const answers: Record<string, Record<string, number>> = {}
  const violations: string[] = []
  const runs: AcknowledgedRun[] = []
  const openPreauths = new Set<string>()
  let endedPreauths = 0
  let uncharged = 0
  let isStopping = false

  const note = (kind: string, what: string) => {
    answers[kind] ??= {}
    answers[kind][what] = (answers[kind][what] ?? 0) + 1
  }
  const violate = (text: string) => {
    if (violations.length < 50) violations.push(text.slice(0, 400))
  }

  const readAnswer = async (response: Response): Promise<Answer> => {
    const text = await response.text()
    const isJson = /json/.test(response.headers.get('content-type') ?? '')
    return {
      status: response.status,
      headers: response.headers,
      text,
      body: isJson && text ? JSON.parse(text) : undefined,
    }
  }

  /** One request; undefined when the connection was lost, which no fault between the service and its parts excuses. */
  const send = async (
    kind: Kind | 'log',
    label: string,
    request: (signal: AbortSignal) => Promise<Response>,
  ): Promise<Answer | undefined> => {
    const startedAt = performance.now()
    try {
      const answer = await readAnswer(await request(AbortSignal.timeout(ANSWER_LIMIT_MS)))
      const isRunFailure = answer.status === 500 && answer.body?.charged === false
      note(kind, isRunFailure ? `500 ${answer.body?.reason}, not charged` : String(answer.status))
      if (answer.status === 503 && !answer.headers.get('retry-after'))
        violate(`${kind}: 503 without Retry-After: ${answer.text}`)
      if (answer.status >= 500 && answer.status !== 503 && !isRunFailure)
        violate(`${kind}: ${answer.status} ${answer.text}`)
      return answer
    } catch (error) {
      const seconds = Math.round((performance.now() - startedAt) / 1000)
      note(kind, 'no answer')
      violate(`${kind}: ${label} got no answer after ${seconds} s: ${(error as Error).message}`)
      return undefined
    }
  }

  const json = (method: string, body: unknown, headers: Record<string, string>, signal: AbortSignal) => ({
    method,
    signal,
    headers: { ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const anyUrl = (random: Random) => random.pick(world.services).url
  const pauseAfter = (answer: Answer | undefined, random: Random) =>
    delay(Math.min(2_000, 1000 * Number(answer?.headers.get('retry-after') ?? 0.2)) * (0.5 + random.next()))

  const acknowledge = (kind: Kind, answer: Answer, owner: Owner) => {
    const { run_id, receipt, output } = answer.body ?? {}
    if (typeof output !== 'string' || !receipt?.receipt_id)
      violate(`${kind}: 200 without output or receipt: ${answer.text}`)
    else runs.push({ kind, runId: run_id, receiptId: receipt.receipt_id, ...owner })
  }

  /** The official client signs anew on every call, so it sends an idempotency key to pay once. */
  const runWithOfficialClient = async (payer: Payer, task: string, random: Random) => {
    const headers = { 'idempotency-key': randomUUID(), 'content-type': 'application/json' }
    for (;;) {
      const url = anyUrl(random)
      const answer = await send('x402', url, (signal) =>
        payer.fetch(`${url}/api/run`, {
          method: 'POST',
          signal,
          headers,
          body: JSON.stringify({ task, agent_id: 'comedian-v1' }),
        }),
      )
      if (answer?.status === 200) return acknowledge('x402', answer, { payer: payer.address.toLowerCase() })
      if (answer?.status === 500) {
        uncharged += 1
        return
      }
      await pauseAfter(answer, random)
    }
  }

  /** This client sends the same payment until it is answered; a 402 for a payment that may be taken would make it pay twice. */
  const runWithResentPayment = async (payer: Payer, task: string, random: Random) => {
    const body = { task, agent_id: 'comedian-v1' }
    let payment: Record<string, string> | undefined
    let maybeTaken = false
    for (;;) {
      const url = anyUrl(random)
      const answer = await send('x402-resent', url, (signal) =>
        fetch(`${url}/api/run`, json('POST', body, payment ?? {}, signal)),
      )
      if (answer?.status === 200) return acknowledge('x402-resent', answer, { payer: payer.address.toLowerCase() })
      if (answer?.status === 500) {
        uncharged += 1
        return
      }
      if (answer?.status === 402 && payment && maybeTaken)
        violate(`x402-resent: a 402 for a payment that may have been taken: ${answer.text}`)
      if (answer?.status === 402) {
        // Longer than the clock of the second process is ever ahead.
        const validBefore = BigInt(Math.floor(Date.now() / 1000) + 3_000)
        const wasRefused = payment !== undefined
        payment = await signPayment(payer, readChallenge(answer.headers), { validBefore })
        maybeTaken = false
        if (wasRefused) await pauseAfter(answer, random)
        continue
      }
      if (payment && answer?.body?.charged !== false) maybeTaken = true
      await pauseAfter(answer, random)
    }
  }

  const walletRequest = (tenant: Tenant, task: string) => ({
    task,
    agent_id: 'comedian-v1',
    payment: { wallet_id: tenant.walletId },
  })

  const runFromWallet = async (tenant: Tenant, task: string, random: Random) => {
    const headers = { ...tenant.headers, 'idempotency-key': randomUUID() }
    for (;;) {
      const url = anyUrl(random)
      const answer = await send('wallet', url, (signal) =>
        fetch(`${url}/api/run`, json('POST', walletRequest(tenant, task), headers, signal)),
      )
      if (answer?.status === 200) return acknowledge('wallet', answer, { walletId: tenant.walletId })
      if (answer?.status === 500) {
        uncharged += 1
        return
      }
      if (answer && ![409, 503].includes(answer.status)) return violate(`wallet: ${answer.status} ${answer.text}`)
      await pauseAfter(answer, random)
    }
  }

  const runAsynchronously = async (tenant: Tenant, task: string, random: Random) => {
    const headers = { ...tenant.headers, 'idempotency-key': randomUUID(), prefer: 'respond-async' }
    let runId: string | undefined
    for (;;) {
      const url = anyUrl(random)
      if (runId === undefined) {
        const answer = await send('async', url, (signal) =>
          fetch(`${url}/api/run`, json('POST', walletRequest(tenant, task), headers, signal)),
        )
        if (answer?.status === 202) runId = answer.body!.run_id
        else if (answer?.status === 200) return acknowledge('async', answer, { walletId: tenant.walletId })
        else if (answer?.status === 500) {
          uncharged += 1
          return
        } else if (answer && ![409, 503].includes(answer.status))
          return violate(`async: ${answer.status} ${answer.text}`)
        await pauseAfter(answer, random)
        continue
      }
      const path = `/api/runs/${runId}`
      const answer = await send('async', url, (signal) =>
        fetch(`${url}${path}`, json('GET', undefined, tenant.headers, signal)),
      )
      const { outcome, answer: runAnswer } = answer?.body ?? {}
      if (answer?.status === 404) return violate(`async: an acknowledged run is not found: ${runId}`)
      if (answer?.status === 200 && outcome === 'completed')
        return acknowledge('async', { ...answer, body: runAnswer?.body }, { walletId: tenant.walletId })
      if (answer?.status === 200 && outcome !== 'pending') {
        uncharged += 1
        return
      }
      await pauseAfter(answer, random)
    }
  }

  const preauthorise = async (tenant: Tenant, random: Random) => {
    const merchant = { id: 'shop', url: 'https://shop.example/pay', pay_to: `0x${'ab'.repeat(20)}` }
    const repeat = async (path: string, body: unknown): Promise<Answer | undefined> => {
      const headers = { ...tenant.headers, 'idempotency-key': randomUUID() }
      for (;;) {
        const url = anyUrl(random)
        const answer = await send('preauth', url, (signal) =>
          fetch(`${url}${path}`, json('POST', body, headers, signal)),
        )
        if (answer && answer.status < 300) return answer
        if (answer && ![409, 503].includes(answer.status)) {
          violate(`preauth: ${path} ${answer.status} ${answer.text}`)
          return undefined
        }
        await pauseAfter(answer, random)
      }
    }
    const opened = await repeat('/api/pre-auth', { agent_id: 'buyer', merchant, amount_usdc: 0.05 })
    const preauthId = opened?.body?.preauth_id
    if (!preauthId) return
    openPreauths.add(preauthId)
    const close = random.chance(0.5) ? { outcome: 'voided' } : { outcome: 'settled', actual_amount_usdc: 0.05 }
    if (!(await repeat('/api/pre-auth/close', { preauth_id: preauthId, ...close }))) return
    openPreauths.delete(preauthId)
    endedPreauths += 1
  }

  // Set up without faults: tenants with a wallet and a webhook, payers with money on the chain.
  const first = world.services[0]!
  const onChain = clients(world.chain.url)
  const earlier = await world.pool.query<{ id: string }>('select id from runs')
  const earlierRuns = new Set(earlier.rows.map(({ id }) => id))
  const tenants: Tenant[] = []
  for (let index = 0; index < clientsPerKind; index++) tenants.push(await makeTenant(world, { webhooks }))
  const payers = await Promise.all(Array.from({ length: 2 * clientsPerKind + 1 }, () => onChain.payer(PAYER_USDC)))
  const probePayer = payers.at(-1)!

  const perform = async (kind: Kind, index: number, task: string, random: Random) => {
    if (kind === 'x402') return runWithOfficialClient(payers[index]!, task, random)
    if (kind === 'x402-resent') return runWithResentPayment(payers[clientsPerKind + index]!, task, random)
    if (kind === 'wallet') return runFromWallet(tenants[index]!, task, random)
    if (kind === 'async') return runAsynchronously(tenants[index]!, task, random)
    return preauthorise(tenants[index]!, random)
  }
  const busy = new Map<string, number>()
  const loops = KINDS.flatMap((kind, kindIndex) =>
    Array.from({ length: clientsPerKind }, async (_, index) => {
      const random = createRandom(seed, 1_000 * kindIndex + index)
      for (let turn = 0; !isStopping; turn++) {
        const name = `${kind} client ${index}, turn ${turn}`
        busy.set(name, performance.now())
        await perform(kind, index, `Tell a joke about clocks, ${name}.`, random)
        busy.delete(name)
        await delay(50 + random.below(150))
      }
    }),
  )

  /** A reader of the log that remembers the largest checkpoint it has seen of either process. */
  let looks = 0
  const watchLog = async () => {
    const { body: jwks } = await first.get('/.well-known/jwks.json')
    const keys = jwks.keys.filter((key: { purpose?: string }) => key.purpose === undefined || key.purpose === 'log')
    const store = memoryCheckpoints()
    for (let turn = 0; !isStopping; turn++) {
      const url = world.services[turn % world.services.length]!.url
      const before = await store.read('log')
      const answer = await send('log', url, (signal) => fetch(`${url}/api/log/checkpoint`, { signal }))
      if (answer?.status === 200) {
        const origin = answer.text.split('\n')[0]!
        const { check } = await rememberCheckpoint(answer.text, {
          store,
          origin,
          keys,
          name: 'log',
          before,
          now: new Date(),
          fetchConsistency: async (from, to) => {
            const proof = await fetch(`${url}/api/log/consistency?from=${from}&to=${to}`, {
              signal: AbortSignal.timeout(ANSWER_LIMIT_MS),
            })
            if (proof.status !== 200) throw new Error('not now')
            return ((await proof.json()) as { proof: string[] }).proof
          },
        }).catch(() => ({ check: { ok: null, message: 'no proof now' } }))
        looks += 1
        if (check.ok === false) violate(`log: ${JSON.stringify(check)}`)
      }
      await delay(400)
    }
  }
  const logWatch = watchLog()

  return {
    earlierRuns,
    answers,
    violations,
    runs,
    tenants,
    payers,
    openPreauths,
    priceMicro: PRICE_MICRO,
    payerMicro: BigInt(PAYER_USDC) * 1_000_000n,
    walletMicro: BigInt(WALLET_USDC) * 1_000_000n,
    counts: () => ({ acknowledged: runs.length, uncharged, endedPreauths, looksAtLog: looks }),
    violate,
    /** One run from a wallet by this process, once: the status of the answer, 0 without one. */
    async tryRun(service: { url: string }, task: string): Promise<number> {
      const tenant = tenants[0]!
      const headers = { ...tenant.headers, 'idempotency-key': randomUUID() }
      const ask = () =>
        send('wallet', service.url, (signal) =>
          fetch(`${service.url}/api/run`, json('POST', walletRequest(tenant, task), headers, signal)),
        )
      const answer = await ask()
      if (answer?.status !== 200) {
        // Its outcome may be open, so it is asked for until it has one.
        if (answer?.status === 503 || answer?.status === 409 || !answer)
          loops.push(finish('wallet', ask, { walletId: tenant.walletId }))
        return answer?.status ?? 0
      }
      acknowledge('wallet', answer, { walletId: tenant.walletId })
      return 200
    },
    /** One run that is paid on the chain, by this process, once: the status of the answer, 0 without one. */
    async tryPaidRun(service: { url: string }, task: string): Promise<number> {
      const body = { task, agent_id: 'comedian-v1' }
      const challenge = await send('x402-resent', service.url, (signal) =>
        fetch(`${service.url}/api/run`, json('POST', body, {}, signal)),
      )
      if (challenge?.status !== 402) return challenge?.status ?? 0
      const validBefore = BigInt(Math.floor(Date.now() / 1000) + 3_000)
      const payment = await signPayment(probePayer, readChallenge(challenge.headers), { validBefore })
      const ask = () =>
        send('x402-resent', service.url, (signal) =>
          fetch(`${service.url}/api/run`, json('POST', body, payment, signal)),
        )
      const answer = await ask()
      const owner = { payer: probePayer.address.toLowerCase() }
      if (answer?.status === 200) acknowledge('x402-resent', answer, owner)
      else if (answer?.status === 503 || answer?.status === 409 || !answer)
        loops.push(finish('x402-resent', ask, owner))
      return answer?.status ?? 0
    },
    /** Every client finishes what it has begun. */
    async stop(limitMs: number) {
      isStopping = true
      const everybody = (async () => {
        // More may be added while these are waited for.
        for (let done = -1; done !== loops.length; ) {
          done = loops.length
          await Promise.all(loops)
        }
        await logWatch
      })()
      const timer = delay(limitMs, 'late', { ref: false })
      if ((await Promise.race([everybody, timer])) === 'late')
        for (const [name, since] of busy)
          violate(`stuck: ${name} for ${Math.round((performance.now() - since) / 1000)} s`)
    },
  }

  async function finish(kind: Kind, ask: () => Promise<Answer | undefined>, owner: Owner) {
    const random = createRandom(seed, 99)
    for (;;) {
      await delay(500)
      const answer = await ask()
      if (answer?.status === 200) return acknowledge(kind, answer, owner)
      if (answer?.status === 500) {
        uncharged += 1
        return
      }
      await pauseAfter(answer, random)
    }
  }
}
