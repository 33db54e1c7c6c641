import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { type CheckpointStore, memoryCheckpoints, rememberCheckpoint } from '@countersign/proof'
import {
  type Client,
  createClient,
  createDevelopmentAccount,
  type PayingAccount,
  RunFailed,
  type RunResult,
} from '@countersign/sdk'
import type { clients } from '../harness.ts'
import type { Random } from './random.ts'

/** What a client was told with a 200 and a receipt: it must stay true whatever is killed. */
export type Acknowledged = {
  kind: 'x402' | 'wallet' | 'async' | 'probe'
  runId: string
  receiptId: string
  amountMicro: bigint
  output: string
  payer?: string
  /** The request as it was sent, so that it can be sent again. */
  request: { body: Record<string, unknown>; headers: Record<string, string> }
}

export type Http = Pick<ReturnType<typeof clients>, 'get' | 'balance'>

type Options = {
  /** Sends a request to one of the processes that run now, as a load balancer does. */
  fetch: typeof fetch
  http: Http
  random: Random
  receiverUrl: string
  /** Gives an account money on a chain of its own; by default the faucet of the embedded chain does. */
  mint?: (address: string, amountMicro: bigint) => Promise<void>
}

const BASE_URL = 'http://balancer.invalid'
const PAYERS = 4
const PAYER_USDC = 1_000
const WALLET_USDC = 900
const AGENT = 'comedian-v1'
/** A call that has no answer after this time is stuck. */
const CALL_DEADLINE_MS = 240_000
const ATTEMPT_TIMEOUT_MS = 15_000
const PROBE_TIMEOUT_MS = 5_000
const PROBE_INTERVAL_MS = 250
/** At most so many wait at once; those of the next quarter of a second are then left out. */
const MAX_PROBES = 40

export type Load = Awaited<ReturnType<typeof createLoad>>

/** A tenant with two wallets, a budget and a webhook, guests who pay by x402, and what all of them were told. */
export async function createLoad({ fetch: balancedFetch, http, random, receiverUrl, mint }: Options) {
  const acknowledged: Acknowledged[] = []
  const faults: string[] = []
  const counts: Record<string, number> = {}
  const count = (name: string) => {
    counts[name] = (counts[name] ?? 0) + 1
  }

  /** Repeats until there is an answer that no later attempt can change; the request names itself by its key. */
  async function sendUntilFinal(
    path: string,
    body: unknown,
    headers: Record<string, string>,
    timeoutMs = ATTEMPT_TIMEOUT_MS,
  ) {
    const end = performance.now() + CALL_DEADLINE_MS
    for (;;) {
      const response = await balancedFetch(`${BASE_URL}${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(timeoutMs),
      }).catch(() => undefined)
      const text = await response?.text().catch(() => undefined)
      if (response && text !== undefined) {
        const answer = JSON.parse(text)
        const { status } = response
        const isOpen =
          status === 503 || status === 202 || (status === 409 && answer.retryable === true) || status === 504
        if (status >= 500 && !isOpen && answer.charged !== false)
          faults.push(`${path} answered ${status}: ${text.slice(0, 300)}`)
        else if (!isOpen) return { status, body: answer }
        count(`answers ${status}`)
      } else count('no answer')
      if (performance.now() > end)
        throw new Error(`${path} ${JSON.stringify(headers)} had no final answer for ${CALL_DEADLINE_MS / 1000} s`)
      await pause(PROBE_INTERVAL_MS)
    }
  }

  const must = async (path: string, body: unknown, headers: Record<string, string>, statuses: number[]) => {
    const answer = await sendUntilFinal(path, body, { 'idempotency-key': randomUUID(), ...headers })
    if (!statuses.includes(answer.status))
      throw new Error(`${path} answered ${answer.status}: ${JSON.stringify(answer.body).slice(0, 300)}`)
    return answer.body
  }

  const payers: PayingAccount[] = []
  for (let index = 0; index < PAYERS; index += 1) {
    const account = await createDevelopmentAccount()
    if (mint) await mint(account.address, BigInt(PAYER_USDC) * 1_000_000n)
    else await must('/api/dev/faucet', { address: account.address, amount_usdc: PAYER_USDC }, {}, [200])
    payers.push(account)
  }
  const onboarded = await must('/api/onboard', { org_name: 'Failover', email: 'failover@example.com' }, {}, [200, 201])
  const headers = { 'x-api-key': String(onboarded.api_key) }
  const createWallet = async () => String((await must('/api/wallets', {}, headers, [200, 201])).wallet_id)
  const [buyer, seller] = [await createWallet(), await createWallet()]
  await must('/api/budgets', { budget_id: 'all', window: 'total', limit_usdc: 100_000 }, headers, [200, 201])
  const webhook = await must('/api/webhooks', { url: receiverUrl, events: ['*'] }, headers, [200, 201])

  const checkpoints: CheckpointStore = memoryCheckpoints()
  // The service sees a payment's headers once; they are kept so that an old payment can be sent again.
  const sentHeaders = new Map<string, Record<string, string>>()
  const recordingFetch: typeof fetch = (input, init) => {
    const sent = Object.fromEntries(new Headers(init?.headers))
    if (sent['idempotency-key'] && (sent['payment-signature'] || sent['x-api-key']))
      sentHeaders.set(sent['idempotency-key'], sent)
    return balancedFetch(input, init)
  }
  const common = {
    baseUrl: BASE_URL,
    fetch: recordingFetch,
    timeoutMs: ATTEMPT_TIMEOUT_MS,
    checkpoints,
    maxUsdc: 1_000,
  }
  const guests: { client: Client; address: string }[] = payers.map((account) => ({
    client: createClient({ ...common, account }),
    address: account.address,
  }))
  const tenant = createClient({ ...common, apiKey: String(onboarded.api_key), walletId: buyer, account: payers[0] })
  const topUp = await tenant.topUp(buyer, { amount_usdc: WALLET_USDC }, { deadlineMs: CALL_DEADLINE_MS })
  const toppedUp = {
    payer: payers[0]!.address,
    amountMicro: BigInt(WALLET_USDC) * 1_000_000n,
    receiptId: String(topUp.receipt.receipt_id),
  }

  const remember = (
    kind: Acknowledged['kind'],
    { run, receipt, output, idempotencyKey }: RunResult,
    body: Record<string, unknown>,
    payer?: string,
  ) => {
    if (receipt.verified !== true)
      faults.push(
        `The receipt of ${run.run_id} does not verify: ${JSON.stringify(receipt.checks.filter(({ ok }) => ok === false))}`,
      )
    acknowledged.push({
      kind,
      runId: run.run_id,
      receiptId: String(receipt.receipt_id),
      amountMicro: BigInt(run.settlement.amount),
      output,
      ...(payer !== undefined && { payer }),
      request: { body, headers: sentHeaders.get(idempotencyKey) ?? {} },
    })
    sentHeaders.delete(idempotencyKey)
    count(kind)
  }

  /** A run that ended without a charge is an answer: the caller may ask anew. */
  const unlessFailed = async (call: () => Promise<void>) => {
    try {
      await call()
    } catch (error) {
      if (!(error instanceof RunFailed) || error.run.charged !== false) throw error
      count('failed, not charged')
    }
  }

  const task = () => `Tell me a joke about the number ${random.integer(1_000_000)}.`
  const options = () => ({ idempotencyKey: randomUUID(), deadlineMs: CALL_DEADLINE_MS })

  const operations: Record<string, () => Promise<void>> = {
    x402: () =>
      unlessFailed(async () => {
        const { client, address } = random.pick(guests)
        const body = { task: task(), agent_id: AGENT }
        remember('x402', await client.run(body, options()), body, address)
      }),
    wallet: () =>
      unlessFailed(async () => {
        const body = { task: task(), agent_id: AGENT, payment: { wallet_id: buyer } }
        remember('wallet', await tenant.run(body, options()), body)
      }),
    async: () =>
      unlessFailed(async () => {
        const body = { task: task(), agent_id: AGENT, payment: { wallet_id: buyer } }
        const run = await tenant.startRun(body, options())
        remember('async', await run.result({ deadlineMs: CALL_DEADLINE_MS }), body)
      }),
    preauth: async () => {
      const amount = String(1_000 + random.integer(9_000))
      await tenant.preauthorize({ agent_id: 'buyer', merchant: { id: 'shop' }, amount }, async () => {}, options())
      count('preauth')
    },
    escrow: async () => {
      const amount = String(1_000 + random.integer(9_000))
      const held = await must(`/api/wallets/${buyer}/escrow`, { amount, to_wallet_id: seller }, headers, [200, 201])
      await must(`/api/escrow/${held.escrow_id}/release`, {}, headers, [200, 201])
      escrowedMicro += BigInt(amount)
      count('escrow')
    },
    read: async () => {
      const earlierRun = acknowledged.length > 0 ? random.pick(acknowledged) : undefined
      if (!earlierRun) return
      const response = await balancedFetch(`${BASE_URL}/api/receipts/${earlierRun.receiptId}`, {
        headers,
        signal: AbortSignal.timeout(ATTEMPT_TIMEOUT_MS),
      }).catch(() => undefined)
      await response?.text().catch(() => undefined)
      if (response?.status === 404)
        faults.push(`The receipt ${earlierRun.receiptId} of an acknowledged run was not found`)
      count(`read ${response?.status ?? 'without answer'}`)
    },
  }
  let escrowedMicro = 0n
  let longestCallMs = 0

  let paused = true
  let stopped = false
  let resume = Promise.withResolvers<void>()
  let active = 0

  async function work(chooseOperation: () => string) {
    while (!stopped) {
      if (paused) {
        await resume.promise
        continue
      }
      active += 1
      const name = chooseOperation()
      try {
        await operations[name]!()
      } catch (error) {
        faults.push(`${name}: ${(error as Error).stack ?? error}`.slice(0, 600))
      } finally {
        active -= 1
      }
      await pause(20 + random.integer(150))
    }
  }

  /**
   * Somebody new asks for a run every quarter of a second, whether earlier callers have their answers or not: the time
   * between two acknowledgements is time without service. A caller whose own run was under way may wait longer.
   */
  let lastAcknowledgement = performance.now()
  const outages: { from: number; ms: number }[] = []
  const probes = new Set<Promise<void>>()
  const probe = async () => {
    const startedAt = performance.now()
    const body = { task: task(), agent_id: AGENT, payment: { wallet_id: buyer } }
    const sent = { ...headers, 'idempotency-key': randomUUID() }
    const { status, body: answer } = await sendUntilFinal('/api/run', body, sent, PROBE_TIMEOUT_MS)
    const now = performance.now()
    longestCallMs = Math.max(longestCallMs, now - startedAt)
    if (status === 200) {
      outages.push({ from: lastAcknowledgement, ms: now - lastAcknowledgement })
      lastAcknowledgement = now
      acknowledged.push({
        kind: 'probe',
        runId: answer.run_id,
        receiptId: answer.receipt.receipt_id,
        amountMicro: BigInt(answer.settlement.amount),
        output: answer.output,
        request: { body, headers: sent },
      })
      count('probe')
    } else if (answer.charged === false) count('failed, not charged')
    else faults.push(`probe: ${status} ${JSON.stringify(answer).slice(0, 300)}`)
  }
  operations.probe = async () => {
    if (probes.size >= MAX_PROBES) return
    const answered: Promise<void> = probe()
      .catch((error: Error) => void faults.push(`probe: ${error.message}`))
      .finally(() => probes.delete(answered))
    probes.add(answered)
    await Promise.race([answered, pause(PROBE_INTERVAL_MS)])
  }

  /** A client that remembers its last checkpoint, and asks another process each time. */
  async function watchLog() {
    let jwks: { keys: never[] } | undefined
    while (!stopped) {
      await pause(300)
      if (paused) continue
      try {
        jwks ??= (await http.get('/.well-known/jwks.json')).body
        if (!jwks) continue
        const origin = (checkpointNote: string) => checkpointNote.split('\n')[0]!
        const before = await checkpoints.read('watcher')
        const { status, text } = await http.get('/api/log/checkpoint')
        if (status !== 200) continue
        const { check, evidence } = await rememberCheckpoint(text, {
          store: checkpoints,
          origin: origin(text),
          name: 'watcher',
          keys: jwks.keys,
          before,
          fetchConsistency: async (from, to) => {
            const answer = await http.get(`/api/log/consistency?from=${from}&to=${to}`)
            if (answer.status >= 500) throw new Error('unavailable')
            return answer.body.proof ?? []
          },
          now: new Date(),
        })
        if (check.ok === false) faults.push(`The log: ${JSON.stringify({ check, evidence })}`)
        count(check.ok ? 'checkpoint' : 'checkpoint not compared')
      } catch {
        count('checkpoint without answer')
      }
    }
  }

  const mixed = ['x402', 'x402', 'wallet', 'async', 'preauth', 'escrow', 'read'] as const
  const workers = [...Array.from({ length: 4 }, () => work(() => random.pick(mixed))), work(() => 'probe'), watchLog()]

  return {
    acknowledged,
    faults,
    counts,
    outages,
    tenant: { client: tenant, headers, buyer, seller, webhookId: String(webhook.id) },
    checkpoints,
    toppedUp,
    funds: { payerMicro: BigInt(PAYER_USDC) * 1_000_000n, addresses: payers.map(({ address }) => address) },
    escrowedMicro: () => escrowedMicro,
    /** The longest time that one caller waited for the answer to one run, all attempts together. */
    longestCallMs: () => longestCallMs,
    sendUntilFinal,
    start() {
      if (!paused) return
      lastAcknowledgement = performance.now()
      paused = false
      resume.resolve()
    },
    /** Lets every call under way come to its end. */
    async settle() {
      if (!paused) {
        resume = Promise.withResolvers<void>()
        paused = true
      }
      while (active > 0) await pause(50)
      await Promise.all(probes)
    },
    async stop() {
      await this.settle()
      stopped = true
      resume.resolve()
      await Promise.all(workers)
    },
  }
}
