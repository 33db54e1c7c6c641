import { isDevelopmentAccount } from './accounts.ts'
import { isAuthorizationUsed } from './authorization-state.ts'
import { type CallKind, type CallRecord, createCallRecords } from './call-record.ts'
import type { CallStore } from './call-store.ts'
import type { CallOptions, ClientOptions, RequestEvent } from './client-types.ts'
import {
  BudgetExceeded,
  CountersignError,
  IdempotencyKeyReused,
  PaymentRejected,
  PaymentRequired,
  PolicyBlocked,
  RunFailed,
  SettlementUnknown,
} from './errors.ts'
import { toRefusal } from './governance-refusal.ts'
import { type ApiResult, isObject, type Transport } from './http.ts'
import { chooseTerms } from './payment-terms.ts'
import { type Again, findRetry, retryDelayMs, sleep, sleepUntil } from './retry.ts'
import { type SignedPayment, signPayment } from './sign-payment.ts'

/** A call that costs money, before anything is known about it. */
export type PaidCall = { kind: CallKind; path: string; body: Record<string, unknown> }

export type Answer = {
  /** 202 when the call was only started. */
  status: number
  body: Record<string, unknown>
  /** The payment that was sent, undefined for a wallet. */
  payment: SignedPayment | undefined
  idempotencyKey: string
  replayed: boolean
}

export type ExecuteOptions = { maySign?: boolean; startOnly?: boolean }

type Sending = {
  payment: SignedPayment | undefined
  mayBeCharged: boolean
  startOnly: boolean
  untilMs: number
  signal: AbortSignal | undefined
}

/** How long a call that has not been paid keeps trying, and one from a wallet, whose key makes it safe to repeat. */
const UNPAID_PATIENCE_MS = 60_000
const WALLET_PATIENCE_MS = 300_000
/** How long the service is asked what became of a payment that has expired. */
const EXPIRED_PATIENCE_MS = 120_000
/** Clocks differ, and the chain's time is that of its last block. */
const EXPIRY_MARGIN_MS = 30_000
/** The service forgets an idempotency key after 24 hours; a call from a wallet would then be made a second time. */
const KEY_LIFETIME_MS = 23 * 3_600_000
const MAX_PAYMENTS = 3
/** Why the service does not begin with a payment that could expire before the work is done. It is waited out, then replaced. */
const EXPIRES_TOO_SOON = 'invalid_exact_evm_payload_authorization_valid_before'
const CALLS_BETWEEN_PRUNES = 100

/** Fields that may be added to a call that is sent again; the service does not compare them. */
const GRANT_FIELDS = ['approval_id', 'override_token', 'preauth_token']

export type PaidCalls = ReturnType<typeof createPaidCalls>

/**
 * Makes calls that cost money. A payment is signed at most once as long as it can count: it is stored before it is sent,
 * and the same one is sent again until there is an answer or it has expired and the service does not know it.
 */
export function createPaidCalls(transport: Transport, store: CallStore, options: ClientOptions) {
  const records = createCallRecords(store, transport.baseUrl)
  const inFlight = new Map<string, { identity: string; answer: Promise<Answer> }>()
  let ended = 0

  /** With `startOnly` the service is asked for an early answer, and a call that it has accepted is answered 202. */
  const execute = async (
    call: PaidCall,
    callOptions: CallOptions = {},
    { maySign = true, startOnly = false }: ExecuteOptions = {},
  ): Promise<Answer> => {
    const { idempotency_key: bodyKey, ...body } = call.body
    const key = readIdempotencyKey(callOptions.idempotencyKey ?? bodyKey)
    const identity = await identify(call.path, body)
    const name = `${startOnly} ${key}`
    const running = inFlight.get(name)
    if (running && running.identity !== identity)
      throw new IdempotencyKeyReused(`The idempotency key '${key}' is in use for another request.`)
    if (running) return running.answer
    const answer = executeOnce({ ...call, body }, key, identity, callOptions, { maySign, startOnly })
      .catch((error: unknown) => {
        if (error instanceof CountersignError) error.idempotencyKey ??= key
        throw error
      })
      .finally(() => inFlight.delete(name))
    inFlight.set(name, { identity, answer })
    return answer
  }

  const executeOnce = async (
    call: PaidCall,
    key: string,
    identity: string,
    { deadlineMs, signal }: CallOptions,
    { maySign, startOnly }: Required<ExecuteOptions>,
  ): Promise<Answer> => {
    const record = await records.open(key, identity)
    const isFromWallet = isObject(call.body.payment)
    const deadline = deadlineMs === undefined ? undefined : Date.now() + deadlineMs
    if (isFromWallet) refuseForgottenKey(record, key)
    try {
      for (;;) {
        const { payment } = record
        const mayBeCharged = payment !== undefined || isFromWallet
        if (mayBeCharged) await keepAttempt(record, call, payment)
        const patience = Date.now() + (isFromWallet ? WALLET_PATIENCE_MS : UNPAID_PATIENCE_MS)
        const until = payment ? expiryMs(payment) + EXPIRED_PATIENCE_MS : patience
        const sending = { payment, mayBeCharged, startOnly, untilMs: deadline ?? until, signal }
        const response = await sendUntilAnswered(call, key, sending)
        const body = isObject(response.body) ? response.body : {}
        // It stays among the open calls until its answer is here.
        if (response.status === 202) return { status: 202, body, payment, idempotencyKey: key, replayed: false }
        if (response.status >= 200 && response.status < 300) {
          await endRecord(record, response.status)
          const replayed = response.headers.get('idempotent-replayed') === 'true'
          return { status: response.status, body, payment, idempotencyKey: key, replayed }
        }
        if (response.status !== 402) throw await toError(record, response, body)
        if (!options.account || isFromWallet) throw new PaymentRequired(402, body)
        if (payment && maySign && !record.outcome && body.reason === EXPIRES_TOO_SOON) {
          const waitMs = expiryMs(payment) - Date.now()
          if (waitMs > 0 && Date.now() + waitMs <= (deadline ?? until)) {
            await sleepUntil(expiryMs(payment), signal).catch((error: unknown) => {
              throw settlementUnknown(payment, error)
            })
            continue
          }
        }
        if (payment) await requireDeadPayment(record, payment, response, body, maySign)
        await addPayment(record, call, key, response, body)
      }
    } catch (error) {
      const isOver = record.attempts.length === 0 || (isFromWallet && isRefused(error))
      if (isOver && !record.outcome) await record.forget().catch(() => undefined)
      throw error
    }
  }

  /**
   * Sends the same request, with the same payment, until there is an answer. Every way out of here without one says so:
   * a payment that was sent may have counted.
   */
  const sendUntilAnswered = async (
    { path, body }: PaidCall,
    key: string,
    { payment, mayBeCharged, startOnly, untilMs, signal }: Sending,
  ): Promise<ApiResult> => {
    const headers = {
      'idempotency-key': key,
      ...(payment && { 'payment-signature': payment.header }),
      ...(startOnly && { prefer: 'respond-async' }),
    }
    for (let attempt = 1; ; attempt++) {
      const event: RequestEvent = { method: 'POST', path, attempt, idempotencyKey: key }
      const result = await send(path, { body, headers, signal }, event).catch((error: unknown) => {
        if (error instanceof CountersignError) return error
        throw mayBeCharged ? settlementUnknown(payment, error) : error
      })
      const again: Again | undefined =
        result instanceof CountersignError
          ? { reason: result.message, retryAfterMs: 0 }
          : findRetry(result, mayBeCharged)
      const isStarted = startOnly && !(result instanceof Error) && result.status === 202
      if (!again || isStarted) return result as ApiResult
      const delayMs = retryDelayMs(attempt, again.retryAfterMs)
      if (Date.now() + delayMs > untilMs) {
        if (mayBeCharged) throw settlementUnknown(payment, result instanceof Error ? result : undefined)
        throw result instanceof Error ? result : new CountersignError(result.status, toBody(result))
      }
      callHook(() => options.hooks?.onRetry?.({ ...event, reason: again.reason, delayMs }))
      await sleep(delayMs, signal).catch((error: unknown) => {
        throw mayBeCharged ? settlementUnknown(payment, error) : error
      })
    }
  }

  const send = async (path: string, request: Parameters<Transport['send']>[2], event: RequestEvent) => {
    callHook(() => options.hooks?.onRequest?.(event))
    const startedAt = Date.now()
    const response = await transport.send('post', path, request)
    const requestId = response.headers.get('x-request-id') ?? undefined
    const durationMs = Date.now() - startedAt
    callHook(() => options.hooks?.onResponse?.({ ...event, status: response.status, durationMs, requestId }))
    return response
  }

  /**
   * After a 402 to a payment: passes only when that payment can never count any more. It has expired by our clock and the
   * service's, the service does not know it, and the chain, if it can be asked, has not seen it.
   */
  const requireDeadPayment = async (
    record: CallRecord,
    payment: SignedPayment,
    response: ApiResult,
    body: Record<string, unknown>,
    maySign: boolean,
  ) => {
    const serviceTime = Date.parse(response.headers.get('date') ?? '')
    const now = Number.isNaN(serviceTime) ? Date.now() : Math.min(Date.now(), serviceTime)
    if (record.outcome || now < expiryMs(payment)) throw new PaymentRejected(402, body)
    if (options.chainRpcUrl !== undefined) {
      const isUsed = await isAuthorizationUsed(options.chainRpcUrl, payment, options.fetch ?? fetch).catch(
        (error: unknown) => {
          throw settlementUnknown(payment, error)
        },
      )
      if (isUsed)
        throw new SettlementUnknown(
          402,
          {
            message:
              'The chain has the payment, and the service does not know it. Nothing more is signed for this call.',
          },
          new Date(payment.validBefore * 1000),
        )
    }
    if (maySign) return
    await record.forget()
    throw new PaymentRejected(402, {
      ...body,
      message: 'The payment expired before the service had accepted it; nothing was charged.',
    })
  }

  const addPayment = async (
    record: CallRecord,
    call: PaidCall,
    key: string,
    { headers }: ApiResult,
    body: Record<string, unknown>,
  ) => {
    const account = options.account!
    const payments = record.attempts.flatMap(({ payment }) => payment ?? [])
    if (new Set(payments.map(({ nonce }) => nonce)).size >= MAX_PAYMENTS) throw new PaymentRejected(402, body)
    const challenge = chooseTerms(headers, body, {
      maxUsdc: options.maxUsdc,
      isDevelopmentChainAllowed: options.allowDevelopmentChain === true || isDevelopmentAccount(account),
      payTo: payments[0]?.payTo,
    })
    const payment = await signPayment(account, challenge)
    await record.add({ ...call, payment, at: Date.now() })
    if (record.payment?.nonce !== payment.nonce) return
    const { amount, payTo, payer, nonce, validBefore } = payment
    const event = { idempotencyKey: key, amount, payTo, payer, nonce, validBefore: new Date(validBefore * 1000) }
    callHook(() => options.hooks?.onPayment?.(event))
  }

  /** Written down before it is sent: a payment by `addPayment`, a call from a wallet or with another grant here. */
  const keepAttempt = async (record: CallRecord, call: PaidCall, payment: SignedPayment | undefined) => {
    const last = record.attempts.at(-1)
    if (record.outcome || (last && stableJson(last.body) === stableJson(call.body))) return
    await record.add({ ...call, payment: payment ?? null, at: Date.now() })
  }

  const toError = async (record: CallRecord, response: ApiResult, body: Record<string, unknown>) => {
    if (response.status === 500 && body.charged === false) {
      await endRecord(record, response.status)
      return new RunFailed(response.status, body)
    }
    return toRefusal(transport, response.status, body) ?? new CountersignError(response.status, body)
  }

  /** The answer is here and is returned, whether or not the store can be told. */
  const endRecord = async (record: CallRecord, status: number) => {
    await record.end(status).catch(() => undefined)
    ended += 1
    if (ended % CALLS_BETWEEN_PRUNES === 0) await records.prune().catch(() => undefined)
  }

  return { execute, openCalls: records.openCalls }
}

/** Nothing was admitted, so the call is over: `resume` must not make it later, when there is money or the rules are others. */
const isRefused = (error: unknown) =>
  error instanceof PaymentRequired || error instanceof BudgetExceeded || error instanceof PolicyBlocked

const expiryMs = ({ validBefore }: SignedPayment) => validBefore * 1000 + EXPIRY_MARGIN_MS

const toBody = ({ body }: ApiResult) => (isObject(body) ? body : {})

function settlementUnknown(payment: SignedPayment | undefined, cause: unknown): SettlementUnknown {
  const message =
    'The service has not said what became of the payment. Make the same call with this idempotency key: it sends the same payment again.'
  return new SettlementUnknown(0, { message }, payment && new Date(payment.validBefore * 1000), { cause })
}

function refuseForgottenKey({ attempts, outcome }: CallRecord, key: string) {
  const firstAt = outcome?.at ?? attempts[0]?.at
  if (firstAt === undefined || firstAt > Date.now() - KEY_LIFETIME_MS) return
  throw new IdempotencyKeyReused(
    `The call '${key}' was made more than 23 hours ago, and the service may have forgotten its key. Look for its run in client.runs.list(); to make the call again, use another key.`,
  )
}

const MAX_KEY_LENGTH = 255

function readIdempotencyKey(key: unknown): string {
  if (key === undefined) return crypto.randomUUID()
  if (typeof key === 'string' && key.length <= MAX_KEY_LENGTH && /^[\x21-\x7e]+$/.test(key)) return key
  throw new TypeError(`An idempotency key is 1 to ${MAX_KEY_LENGTH} printable ASCII characters without spaces.`)
}

/** A hash, so that the task is not kept longer than the call. */
async function identify(path: string, body: Record<string, unknown>): Promise<string> {
  const entries = Object.entries(body).filter(([name]) => !GRANT_FIELDS.includes(name))
  const text = stableJson([path, Object.fromEntries(entries)])
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text))
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0')).join('')
}

/** The same text whatever the order of the members. */
const stableJson = (value: unknown): string =>
  JSON.stringify(value, (_, member) =>
    isObject(member) ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1))) : member,
  )

function callHook(call: () => void) {
  try {
    call()
  } catch {
    // A hook that fails must not decide about a payment.
  }
}
