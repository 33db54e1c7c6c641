/**
 * Facilitators over HTTP, in order of preference. Any of them may verify. Only one is asked to settle: once a request may
 * have been sent, its outcome is unknown until the facilitator or the chain reports it, and no other is asked.
 */
import type {
  ExactPayment,
  Facilitator,
  Hex,
  PaymentTerms,
  SettleResult,
  SupportedKind,
  VerifyResult,
} from '../../modules/payments/facilitator.ts'
import { FacilitatorUnavailable } from '../../modules/payments/facilitator.ts'
import { createCircuitBreaker } from '../../platform/circuit-breaker.ts'
import type { Clock } from '../../platform/clock.ts'
import { toStorableText } from '../../platform/storable-text.ts'
import { networkForVersion, networkFromWire, parseChainId } from '../../platform/x402-wire.ts'
import { toHex } from '../chain/codec.ts'
import { authorizationDigest, parseSignature, recoverSigner } from './authorization.ts'
import { checkTerms, type Refusal } from './check-terms.ts'
import { buildFacilitatorRequest } from './facilitator-wire.ts'
import { createHttpCall, type HttpCall, type HttpResult } from './http-call.ts'
import { REASON } from './reasons.ts'
import { loadCurve } from './secp256k1.ts'
import { createSettleOnce } from './settle-once.ts'

export type HttpFacilitatorDeps = {
  urls: string[]
  clock: Clock
  log?: { info(fields: object, message: string): void; warn(fields: object, message: string): void }
  /** Whether a payer is a contract, if a chain is configured: the signature of a contract wallet is not by its own key. */
  hasCode?: (address: Hex) => Promise<boolean>
  call?: HttpCall
  verifyTimeoutMs?: number
  settleTimeoutMs?: number
}

type Supported = Awaited<ReturnType<Facilitator['supported']>>

const SUPPORTED_TTL_MS = 5 * 60_000
const SUPPORTED_TIMEOUT_MS = 3_000
/** Below the time that the report of `/api/health` gives each part. */
const HEALTH_TIMEOUT_MS = 1_500
const BREAKER_FAILURES = 3
const BREAKER_COOL_DOWN_MS = 10_000

/** Refusals that hold for every attempt: such a payment can never have moved money. */
const PERMANENT_REFUSALS: ReadonlySet<string> = new Set([
  REASON.scheme,
  REASON.network,
  REASON.domain,
  REASON.asset,
  REASON.recipient,
  REASON.signature,
  REASON.value,
  REASON.payload,
])
/** Refusals of this attempt only: an earlier attempt without a response may still have gone through. */
const REFUSALS_OF_THIS_ATTEMPT: ReadonlySet<string> = new Set([
  REASON.validBefore,
  REASON.validAfter,
  REASON.balance,
  REASON.simulation,
  'insufficient_funds',
  'eip6492_factory_not_allowed',
])

export function createHttpFacilitator(deps: HttpFacilitatorDeps): Facilitator & { close(): Promise<void> } {
  const { urls, clock, hasCode, verifyTimeoutMs = 5_000, settleTimeoutMs = 30_000 } = deps
  if (urls.length === 0) throw new Error('No facilitator URL is configured.')
  const curve = loadCurve(deps.log)
  const defaultCall = deps.call ? undefined : createHttpCall()
  const call = deps.call ?? defaultCall!
  const settleOnce = createSettleOnce({ remember: false })
  const servers = urls.map((url) => ({
    url: url.replace(/\/+$/, ''),
    breaker: createCircuitBreaker({
      clock,
      failureThreshold: BREAKER_FAILURES,
      coolDownMs: BREAKER_COOL_DOWN_MS,
      probeTimeoutMs: BREAKER_COOL_DOWN_MS,
    }),
    supported: undefined as { at: number; value: Supported } | undefined,
  }))
  type Server = (typeof servers)[number]

  const recordResult = (server: Server, response: HttpResult, isReadable: boolean) => {
    const isFault = response.kind !== 'response' || response.status >= 500
    if (!isFault && isReadable) return server.breaker.recordSuccess()
    // An answer below 500 that cannot be read may be brought about by the payment it answers.
    if (isFault) server.breaker.recordFailure()
    else server.breaker.abandonProbe()
    const { url } = server
    deps.log?.warn(
      { facilitator: url, ...(response.kind === 'response' ? { status: response.status } : response) },
      'facilitator failed',
    )
  }

  const readSupportedKinds = async (server: Server): Promise<Supported | undefined> => {
    const now = clock.now().getTime()
    if (server.supported && now - server.supported.at < SUPPORTED_TTL_MS) return server.supported.value
    const response = await call('GET', `${server.url}/supported`, undefined, SUPPORTED_TIMEOUT_MS)
    const value = response.kind === 'response' && response.status === 200 ? readSupported(response.body) : undefined
    if (value) server.supported = { at: now, value }
    // A stale list is better than none: the supported kinds seldom change.
    return value ?? server.supported?.value
  }

  /** Servers whose circuit breaker is closed and that do not lack this kind of payment. */
  const findCandidates = async function* (x402Version: 1 | 2, network: string) {
    for (const server of servers) {
      if (!server.breaker.allowsCall()) continue
      const supported = await readSupportedKinds(server)
      const supportsPayment = supported?.kinds.some(
        (kind) =>
          kind.x402Version === x402Version && kind.scheme === 'exact' && networkFromWire(kind.network) === network,
      )
      if (supportsPayment !== false) yield server
    }
  }

  /** The checks that need no remote call. */
  const precheck = async (payment: ExactPayment, terms: PaymentTerms): Promise<Refusal | { digest: string }> => {
    const refusal = checkTerms(payment, terms, clock.now())
    const { authorization, signature } = payment
    if (refusal && refusal.reason !== REASON.validBefore && refusal.reason !== REASON.validAfter) return refusal
    const domain = { ...terms.extra, chainId: parseChainId(terms.network)!, asset: terms.asset }
    const digest = authorizationDigest(authorization, domain)
    const keySignature = parseSignature(signature)
    const isKeyLength = signature.length === 132
    const signedByPayer =
      keySignature && recoverSigner(curve, digest, keySignature) === authorization.from.toLowerCase()
    if (isKeyLength && !signedByPayer && !(await hasCode?.(authorization.from))) {
      return { reason: REASON.signature, message: "The signature is not the payer's." }
    }
    return refusal ?? { digest: toHex(digest) }
  }

  const verify = async (payment: ExactPayment, terms: PaymentTerms): Promise<VerifyResult> => {
    const precheckResult = await precheck(payment, terms)
    if ('reason' in precheckResult) return { valid: false, ...precheckResult }
    const body = buildFacilitatorRequest(payment, terms)
    for await (const server of findCandidates(payment.x402Version, terms.network)) {
      const response = await call('POST', `${server.url}/verify`, body, verifyTimeoutMs)
      const result = response.kind === 'response' ? readVerify(response.body, payment) : undefined
      recordResult(server, response, result !== undefined)
      if (result) return result
    }
    throw new FacilitatorUnavailable('No facilitator could check this payment.')
  }

  const settle = async (payment: ExactPayment, terms: PaymentTerms, isRetry = false): Promise<SettleResult> => {
    const precheckResult = await precheck(payment, terms)
    if (!('reason' in precheckResult)) return settleOnce(precheckResult.digest, () => send(payment, terms, isRetry))
    if (PERMANENT_REFUSALS.has(precheckResult.reason)) return { state: 'failed', ...precheckResult }
    // The payment is outside its validity period. Only the chain shows whether an earlier attempt was in time.
    return { state: 'unknown', ...precheckResult }
  }

  const send = async (payment: ExactPayment, terms: PaymentTerms, isRetry: boolean): Promise<SettleResult> => {
    const body = buildFacilitatorRequest(payment, terms)
    for await (const server of findCandidates(payment.x402Version, terms.network)) {
      const response = await call('POST', `${server.url}/settle`, body, settleTimeoutMs)
      if (response.kind === 'not_sent') {
        recordResult(server, response, false)
        continue
      }
      const result: SettleResult =
        response.kind === 'response'
          ? readSettle(response.body, payment, terms, isRetry)
          : {
              state: 'unknown',
              reason: REASON.pending,
              message: `The facilitator did not respond: ${response.message}`,
            }
      recordResult(server, response, response.kind === 'response' && typeof response.body.success === 'boolean')
      return result
    }
    return {
      state: 'unknown',
      reason: 'facilitator_unavailable',
      message: 'No facilitator could be reached; nothing was sent.',
    }
  }

  /** Any answer below 500 shows that it is there: not every facilitator shows its kinds to everybody. */
  const isAnswering = async (server: Server): Promise<boolean> => {
    if (server.breaker.state() === 'open') return false
    const response = await call('GET', `${server.url}/supported`, undefined, HEALTH_TIMEOUT_MS)
    return response.kind === 'response' && response.status < 500
  }

  return {
    name: 'http',
    verify,
    settle,
    async supported() {
      for (const server of servers) {
        const supported = await readSupportedKinds(server)
        if (supported) return supported
      }
      throw new FacilitatorUnavailable('No facilitator returned its supported kinds.')
    },
    async findProblem() {
      const answers = await Promise.all(servers.map(isAnswering))
      if (answers.includes(true)) return undefined
      return servers.length === 1 ? 'The facilitator does not answer.' : 'None of the facilitators answers.'
    },
    close: async () => void (await defaultCall?.close()),
  }
}

type Json = Record<string, unknown>

function readSupported({ kinds, extensions, signers }: Json): Supported | undefined {
  if (!Array.isArray(kinds)) return undefined
  const validKinds = kinds.filter(
    (kind): kind is SupportedKind =>
      typeof kind === 'object' &&
      kind !== null &&
      typeof kind.x402Version === 'number' &&
      typeof kind.scheme === 'string' &&
      typeof kind.network === 'string',
  )
  return {
    kinds: validKinds,
    extensions: Array.isArray(extensions) ? extensions.filter((name) => typeof name === 'string') : [],
    signers: (typeof signers === 'object' && signers !== null ? signers : {}) as Supported['signers'],
  }
}

const isPayer = (value: unknown, { authorization }: ExactPayment) =>
  value === undefined ||
  value === null ||
  (typeof value === 'string' && value.toLowerCase() === authorization.from.toLowerCase())

const textOrDefault = (value: unknown, fallback: string) =>
  typeof value === 'string' && value !== '' ? toStorableText(value.slice(0, 500)) : fallback

/** Undefined when the response is unusable: then the next facilitator is asked. */
function readVerify(body: Json, payment: ExactPayment): VerifyResult | undefined {
  if (body.isValid === true && isPayer(body.payer, payment)) {
    return { valid: true, payer: payment.authorization.from.toLowerCase() as Hex }
  }
  const reason = textOrDefault(body.invalidReason, '')
  if (body.isValid !== false || reason === '' || reason.startsWith('unexpected_')) return undefined
  return { valid: false, reason, message: textOrDefault(body.invalidMessage, 'The facilitator refused this payment.') }
}

function readSettle(body: Json, payment: ExactPayment, terms: PaymentTerms, isRetry: boolean): SettleResult {
  if (body.success === true) return readSettled(body, payment, terms)
  const reason = textOrDefault(body.errorReason, 'unexpected_settle_error')
  const message = textOrDefault(body.errorMessage, 'The facilitator did not settle this payment.')
  const isFinal = PERMANENT_REFUSALS.has(reason) || (REFUSALS_OF_THIS_ATTEMPT.has(reason) && !isRetry)
  // A transaction that was sent may still be mined, whatever the reason says.
  const hasTransaction = typeof body.transaction === 'string' && body.transaction !== ''
  return { state: body.success === false && isFinal && !hasTransaction ? 'failed' : 'unknown', reason, message }
}

/** `settled` counts only when payer, network and amount are those of this payment. */
function readSettled(body: Json, payment: ExactPayment, terms: PaymentTerms): SettleResult {
  const { transaction, network, payer, amount } = body
  const matches =
    typeof transaction === 'string' &&
    /^0x[0-9a-f]{64}$/i.test(transaction) &&
    (network === terms.network || network === networkForVersion(terms.network, payment.x402Version)) &&
    isPayer(payer, payment) &&
    (amount === undefined || amount === null || String(amount) === terms.amountMicro.toString())
  if (!matches) {
    return {
      state: 'unknown',
      reason: 'facilitator_answer_mismatch',
      message: "The facilitator's response is about another payment.",
    }
  }
  return {
    state: 'settled',
    transaction: transaction.toLowerCase() as Hex,
    payer: payment.authorization.from.toLowerCase() as Hex,
    network: terms.network,
    amountMicro: terms.amountMicro,
    block: null,
  }
}
