/**
 * Facilitators of other people, over HTTP, in order of preference. To verify, any of them will do. To settle, only one is
 * asked: once a request may have left, its outcome is unknown until an answer says otherwise, and nobody else is asked.
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
import type { Clock } from '../../platform/clock.ts'
import { hexOf } from '../chain/codec.ts'
import { authorizationDigest, parseSignature, recoverSigner } from './authorization.ts'
import { createBreaker } from './breaker.ts'
import { checkTerms, type Refusal } from './checks.ts'
import { createHttpCall, type HttpAnswer, type HttpCall } from './http-call.ts'
import { REASON } from './reasons.ts'
import { loadCurve } from './recover.ts'
import { createSettleOnce } from './settle-once.ts'
import { chainIdOf, facilitatorBody, networkForVersion, networkFromWire } from './wire.ts'

export type HttpFacilitatorDeps = {
  urls: string[]
  clock: Clock
  log?: { info(fields: object, message: string): void; warn(fields: object, message: string): void }
  /** Whether a payer is a contract, when a chain is at hand: a contract wallet's signature need not be its own. */
  hasCode?: (address: Hex) => Promise<boolean>
  call?: HttpCall
  verifyTimeoutMs?: number
  settleTimeoutMs?: number
}

type Supported = Awaited<ReturnType<Facilitator['supported']>>

const SUPPORTED_KEPT_MS = 5 * 60_000
const SUPPORTED_TIMEOUT_MS = 3_000

/** Refusals that stay true whatever happened before: such a payment can never have moved anything. */
const NEVER_VALID: ReadonlySet<string> = new Set([
  REASON.scheme,
  REASON.network,
  REASON.domain,
  REASON.asset,
  REASON.recipient,
  REASON.signature,
  REASON.value,
  REASON.payload,
])
/** Refusals from before anything is sent. An earlier attempt, of which we heard nothing, may still have gone through. */
const NOT_THIS_TIME: ReadonlySet<string> = new Set([
  REASON.validBefore,
  REASON.validAfter,
  REASON.balance,
  REASON.simulation,
  'insufficient_funds',
  'eip6492_factory_not_allowed',
])

export function createHttpFacilitator(deps: HttpFacilitatorDeps): Facilitator & { close(): Promise<void> } {
  const { urls, clock, hasCode, verifyTimeoutMs = 5_000, settleTimeoutMs = 30_000 } = deps
  if (urls.length === 0) throw new Error('No facilitator is named.')
  const curve = loadCurve(deps.log)
  const ownCall = deps.call ? undefined : createHttpCall()
  const call = deps.call ?? ownCall!
  const once = createSettleOnce({ remember: false })
  const servers = urls.map((url) => ({
    url: url.replace(/\/+$/, ''),
    breaker: createBreaker(clock),
    supported: undefined as { at: number; value: Supported } | undefined,
  }))
  type Server = (typeof servers)[number]

  const note = (server: Server, answer: HttpAnswer, understood: boolean) => {
    if (answer.kind === 'answer' && answer.status < 500 && understood) return server.breaker.succeeded()
    server.breaker.failed()
    const { url } = server
    deps.log?.warn(
      { facilitator: url, ...(answer.kind === 'answer' ? { status: answer.status } : answer) },
      'facilitator failed',
    )
  }

  const supportedBy = async (server: Server): Promise<Supported | undefined> => {
    const now = clock.now().getTime()
    if (server.supported && now - server.supported.at < SUPPORTED_KEPT_MS) return server.supported.value
    const answer = await call('GET', `${server.url}/supported`, undefined, SUPPORTED_TIMEOUT_MS)
    const value = answer.kind === 'answer' && answer.status === 200 ? readSupported(answer.body) : undefined
    if (value) server.supported = { at: now, value }
    // An old list is better than none: what a facilitator supports seldom changes.
    return value ?? server.supported?.value
  }

  /** Servers to try: not resting, and not known to lack this kind of payment. */
  const candidates = async function* (x402Version: 1 | 2, network: string) {
    for (const server of servers) {
      if (!server.breaker.allows()) continue
      const supported = await supportedBy(server)
      const offers = supported?.kinds.some(
        (kind) =>
          kind.x402Version === x402Version && kind.scheme === 'exact' && networkFromWire(kind.network) === network,
      )
      if (offers !== false) yield server
    }
  }

  /** What we can judge ourselves costs no remote call. */
  const precheck = async (payment: ExactPayment, terms: PaymentTerms): Promise<Refusal | { digest: string }> => {
    const refusal = checkTerms(payment, terms, clock.now())
    const { authorization, signature } = payment
    if (refusal && refusal.reason !== REASON.validBefore && refusal.reason !== REASON.validAfter) return refusal
    const domain = { ...terms.extra, chainId: chainIdOf(terms.network)!, asset: terms.asset }
    const digest = authorizationDigest(authorization, domain)
    const key = parseSignature(signature)
    const isKeyLength = signature.length === 132
    const signedByPayer = key && recoverSigner(curve, digest, key) === authorization.from.toLowerCase()
    if (isKeyLength && !signedByPayer && !(await hasCode?.(authorization.from))) {
      return { reason: REASON.signature, message: "The signature is not the payer's." }
    }
    return refusal ?? { digest: hexOf(digest) }
  }

  const verify = async (payment: ExactPayment, terms: PaymentTerms): Promise<VerifyResult> => {
    const checked = await precheck(payment, terms)
    if ('reason' in checked) return { valid: false, ...checked }
    const body = facilitatorBody(payment, terms)
    for await (const server of candidates(payment.x402Version, terms.network)) {
      const answer = await call('POST', `${server.url}/verify`, body, verifyTimeoutMs)
      const result = answer.kind === 'answer' ? readVerify(answer.body, payment) : undefined
      note(server, answer, result !== undefined)
      if (result) return result
    }
    throw new FacilitatorUnavailable('No facilitator could check this payment.')
  }

  const settle = async (payment: ExactPayment, terms: PaymentTerms, again = false): Promise<SettleResult> => {
    const checked = await precheck(payment, terms)
    if (!('reason' in checked)) return once(checked.digest, () => send(payment, terms, again))
    if (NEVER_VALID.has(checked.reason)) return { state: 'failed', ...checked }
    // Its time is over. Whether an earlier attempt made it in time, only the chain can tell.
    return { state: 'unknown', ...checked }
  }

  const send = async (payment: ExactPayment, terms: PaymentTerms, again: boolean): Promise<SettleResult> => {
    const body = facilitatorBody(payment, terms)
    for await (const server of candidates(payment.x402Version, terms.network)) {
      const answer = await call('POST', `${server.url}/settle`, body, settleTimeoutMs)
      if (answer.kind === 'not_sent') {
        note(server, answer, false)
        continue
      }
      const result: SettleResult =
        answer.kind === 'answer'
          ? readSettle(answer.body, payment, terms, again)
          : { state: 'unknown', reason: REASON.pending, message: `The facilitator gave no answer: ${answer.message}` }
      note(server, answer, answer.kind === 'answer' && typeof answer.body.success === 'boolean')
      return result
    }
    return {
      state: 'unknown',
      reason: 'facilitator_unavailable',
      message: 'No facilitator could be reached; nothing was sent.',
    }
  }

  return {
    name: 'http',
    verify,
    settle,
    async supported() {
      for (const server of servers) {
        const supported = await supportedBy(server)
        if (supported) return supported
      }
      throw new FacilitatorUnavailable('No facilitator says what it supports.')
    },
    close: async () => void (await ownCall?.close()),
  }
}

type Json = Record<string, unknown>

function readSupported({ kinds, extensions, signers }: Json): Supported | undefined {
  if (!Array.isArray(kinds)) return undefined
  const known = kinds.filter(
    (kind): kind is SupportedKind =>
      typeof kind === 'object' &&
      kind !== null &&
      typeof kind.x402Version === 'number' &&
      typeof kind.scheme === 'string' &&
      typeof kind.network === 'string',
  )
  return {
    kinds: known,
    extensions: Array.isArray(extensions) ? extensions.filter((name) => typeof name === 'string') : [],
    signers: (typeof signers === 'object' && signers !== null ? signers : {}) as Supported['signers'],
  }
}

const isPayer = (value: unknown, { authorization }: ExactPayment) =>
  value === undefined ||
  value === null ||
  (typeof value === 'string' && value.toLowerCase() === authorization.from.toLowerCase())

const textOf = (value: unknown, otherwise: string) =>
  typeof value === 'string' && value !== '' ? value.slice(0, 500) : otherwise

/** Undefined when the answer is none: then the next facilitator is asked. */
function readVerify(body: Json, payment: ExactPayment): VerifyResult | undefined {
  if (body.isValid === true && isPayer(body.payer, payment)) {
    return { valid: true, payer: payment.authorization.from.toLowerCase() as Hex }
  }
  const reason = textOf(body.invalidReason, '')
  if (body.isValid !== false || reason === '' || reason.startsWith('unexpected_')) return undefined
  return { valid: false, reason, message: textOf(body.invalidMessage, 'The facilitator refused this payment.') }
}

function readSettle(body: Json, payment: ExactPayment, terms: PaymentTerms, again: boolean): SettleResult {
  if (body.success === true) return readSettled(body, payment, terms)
  const reason = textOf(body.errorReason, 'unexpected_settle_error')
  const message = textOf(body.errorMessage, 'The facilitator did not settle this payment.')
  const certain = NEVER_VALID.has(reason) || (NOT_THIS_TIME.has(reason) && !again)
  // A transaction that was sent may be mined yet, whatever the reason says.
  const sentSomething = typeof body.transaction === 'string' && body.transaction !== ''
  return { state: body.success === false && certain && !sentSomething ? 'failed' : 'unknown', reason, message }
}

/** A facilitator that says "settled" is believed only when it speaks of this payment. */
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
      message: "The facilitator's answer is about another payment.",
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
