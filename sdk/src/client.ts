import { memoryStore } from './call-store.ts'
import type {
  CallOptions,
  ClientOptions,
  EventOptions,
  LoopResult,
  PaidCalls,
  ResumedCall,
  RunResult,
  Started,
  TopUpResult,
} from './client-types.ts'
import type {
  LoopRequest,
  LoopSuccessResponse,
  RunCancelled,
  RunRequest,
  RunSuccessResponse,
  TopUpRequest,
} from './generated/api.ts'
import { createTransport, fillPath } from './http.ts'
import { createLists } from './lists.ts'
import { type Answer, createPaidCalls, type PaidCall } from './paid-call.ts'
import { createPreauthorize } from './preauthorize.ts'
import { createReceiptVerification } from './receipt-verification.ts'
import { readRunEvents } from './run-events.ts'

export type { CheckpointStore } from '@countersign/proof'
export { accountFromKey, createDevelopmentAccount } from './accounts.ts'
export type { CallStore } from './call-store.ts'
export { memoryStore } from './call-store.ts'
export type * from './client-types.ts'
export * from './errors.ts'
/** The resources, requests and responses of the API by name: `Receipt`, `Run`, `Policy`, … */
export type * from './generated/api.ts'
export type { ApiRequest, ApiResponse } from './http.ts'
export type { Lists } from './lists.ts'
export { verifyWebhook, type WebhookEvent } from './webhook.ts'

/**
 * The API without the calls that pay: `get`, `post` and the like, and the lists. Paths, parameters, bodies and responses
 * come from `openapi.json`, so a call that does not match it does not compile.
 */
export type ApiClient = ReturnType<typeof createApiClient>

export function createApiClient(options: ClientOptions) {
  const transport = createTransport(options)
  return { ...transport.methods, ...createLists(transport) }
}

/** A lane works for 55 minutes at most; then its payment is settled. */
const RESULT_PATIENCE_MS = 60 * 60_000

/** Waits for the last event. Without a stream the answer is asked for again and again, which takes longer and is as good. */
async function untilEnded(
  events: Started<unknown>['events'],
  deadlineMs: number,
  signal: AbortSignal | undefined,
): Promise<void> {
  const timeout = AbortSignal.timeout(deadlineMs)
  try {
    for await (const { status } of events({ signal: signal ? AbortSignal.any([signal, timeout]) : timeout }))
      if (status === 'completed' || status === 'failed') return
  } catch {
    signal?.throwIfAborted()
  }
}

/**
 * The whole client: the API, and calls that are paid once whatever happens. Runs in browsers, edge runtimes and Node.
 */
export type Client = ReturnType<typeof createClient>

export function createClient(options: ClientOptions) {
  const transport = createTransport(options)
  const receiptVerification = createReceiptVerification(transport, options)
  const store = options.store ?? memoryStore()
  const calls = createPaidCalls(transport, store, options)
  const preauths = createPreauthorize(transport, store)

  const toResult = async (call: PaidCall, { body, payment, idempotencyKey, replayed }: Answer) => {
    const receipt = await receiptVerification.verifyResponse({
      path: call.path,
      request: call.body,
      response: body,
      payment,
    })
    if (call.kind === 'topup') return { topUp: body, receipt, idempotencyKey, replayed }
    const named = call.kind === 'run' ? { run: body as RunSuccessResponse } : { loop: body as LoopSuccessResponse }
    return { output: String(body.output), ...named, receipt, idempotencyKey, replayed }
  }

  const make = async <T>(call: PaidCall, callOptions?: CallOptions, maySign?: boolean): Promise<T> =>
    (await toResult(call, await calls.execute(call, callOptions, { maySign }))) as T

  const start = async <Result>(call: PaidCall, callOptions?: CallOptions): Promise<Started<Result>> => {
    const { body, idempotencyKey } = await calls.execute(call, callOptions, { startOnly: true })
    const runId = String(body.run_id)
    const headers: Record<string, string> = typeof body.token === 'string' ? { 'x-run-token': body.token } : {}
    const events = (eventOptions?: EventOptions) => readRunEvents(transport, runId, eventOptions)
    return {
      runId,
      idempotencyKey,
      events,
      async result({ deadlineMs = RESULT_PATIENCE_MS, signal } = {}) {
        const deadline = Date.now() + deadlineMs
        await untilEnded(events, deadlineMs, signal)
        return make<Result>(call, { idempotencyKey, deadlineMs: Math.max(deadline - Date.now(), 0), signal }, false)
      },
      cancel: ({ signal } = {}) =>
        transport.request('post', '/api/runs/{id}/cancel', {
          path: { id: runId },
          headers,
          signal,
        }) as Promise<RunCancelled>,
    }
  }

  const withWallet = <R extends RunRequest | LoopRequest>(request: R): Record<string, unknown> =>
    options.walletId !== undefined && request.payment === undefined
      ? { ...request, payment: { wallet_id: options.walletId } }
      : { ...request }

  const paidCalls: PaidCalls = {
    startRun: (request, callOptions) =>
      start<RunResult>({ kind: 'run', path: '/api/run', body: withWallet(request) }, callOptions),
    startLoop: (request, callOptions) =>
      start<LoopResult>({ kind: 'loop', path: '/api/loop', body: withWallet(request) }, callOptions),
    run: (request, callOptions) =>
      make<RunResult>({ kind: 'run', path: '/api/run', body: withWallet(request) }, callOptions),
    loop: (request, callOptions) =>
      make<LoopResult>({ kind: 'loop', path: '/api/loop', body: withWallet(request) }, callOptions),
    topUp: async (walletId, request: TopUpRequest, callOptions) => {
      const path = fillPath('/api/wallets/{id}/topup', { id: walletId })
      return make<TopUpResult>({ kind: 'topup', path, body: { ...request } }, callOptions)
    },
    preauthorize: preauths.preauthorize,
    async resume({ signal } = {}) {
      const resumed: ResumedCall[] = []
      for (const { key, attempt } of await calls.openCalls()) {
        const { kind, path, body } = attempt
        const base = { kind, idempotencyKey: key }
        await make<never>({ kind, path, body }, { idempotencyKey: key, signal }, false).then(
          (result) => resumed.push({ ...base, result } as ResumedCall),
          (error: unknown) => resumed.push({ ...base, error }),
        )
      }
      return [...resumed, ...(await preauths.resume(signal))]
    },
  }

  return {
    ...transport.methods,
    ...createLists(transport),
    ...paidCalls,
    /**
     * Fetches a receipt and verifies its signature and its place in the log. The log is compared with the largest
     * checkpoint seen of it before: `checks` says under `log_memory` when it was rolled back or has forked.
     */
    verifyReceipt: receiptVerification.verifyStored,
  }
}
