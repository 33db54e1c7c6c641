import type { Clock } from '../../platform/clock.ts'
import { usdcFromMicro } from '../../platform/money.ts'
import { unavailable } from '../../platform/problem.ts'
import {
  type ChainReader,
  type ExactPayment,
  type Facilitator,
  FacilitatorUnavailable,
  type Hex,
  type PaymentTerms,
  type SettleResult,
} from './facilitator.ts'
import type { Quotes } from './quote.ts'
import { NETWORK, type ReadPayment } from './x402.ts'

export type PaymentsDeps = {
  facilitator: Facilitator
  /** Absent when only a facilitator's address is known: then nothing but that facilitator can be asked. */
  chain: ChainReader | undefined
  quotes: Quotes
  clock: Clock
  asset: Hex
  payTo: Hex
}

export const MAX_TIMEOUT_SECONDS = 300
/** A payment must outlive the work: the run's deadline of 120 s and some time to settle. */
const LEAST_LIFE_SECONDS = 150
const MOST_LIFE_SECONDS = 3_600
/** Nodes of one chain are not all at the same block: one that is behind must not make a payment look unused. */
const LOOK_MARGIN_SECONDS = 60n

export type Refusal = { reason: string; message: string }

/** What a settlement row knows; enough to finish the payment without the request that brought it. */
export type OpenSettlement = {
  payment: ExactPayment
  terms: PaymentTerms
}

export type Payments = ReturnType<typeof createPayments>

export function createPayments(deps: PaymentsDeps) {
  const termsFor = (amountMicro: bigint): PaymentTerms => ({
    scheme: 'exact',
    network: NETWORK,
    asset: deps.asset,
    amountMicro,
    payTo: deps.payTo,
    maxTimeoutSeconds: MAX_TIMEOUT_SECONDS,
    extra: { name: 'USD Coin', version: '2' },
  })

  return {
    termsFor,
    quotes: deps.quotes,

    /** Is this payment good for these terms? Undefined means yes; a refusal becomes a 402 that says why. */
    async check(read: ReadPayment, terms: PaymentTerms): Promise<Refusal | undefined> {
      const refusal = compare(read, terms, deps.clock.now())
      if (refusal) return refusal
      try {
        const verdict = await deps.facilitator.verify(read.payment, terms)
        return verdict.valid ? undefined : { reason: verdict.reason, message: verdict.message }
      } catch (error) {
        if (error instanceof FacilitatorUnavailable)
          throw unavailable(
            'Payments cannot be checked at the moment; nothing was charged. Send the same payment again.',
            5,
            error,
          )
        throw error
      }
    },

    /** Puts the payment on the chain. Whatever does not fit what was asked is `unknown`: the chain will tell. */
    async settle({ payment, terms }: OpenSettlement, again = false): Promise<SettleResult> {
      const told = believe(await deps.facilitator.settle(payment, terms, again), payment, terms)
      if (told.state !== 'settled' || !deps.chain || deps.facilitator.sharesTransactions) return told
      // Somebody else's word, and a chain to hold it against.
      try {
        const seen = await deps.chain.authorization(
          terms.asset,
          payment.authorization.from,
          payment.authorization.nonce,
        )
        if (seen.used) return fromChain(seen, payment, terms)
        return {
          state: 'unknown',
          reason: 'not_on_chain_yet',
          message: 'The facilitator says settled, the chain does not show it yet.',
        }
      } catch (error) {
        return { state: 'unknown', reason: 'chain_unreachable', message: (error as Error).message }
      }
    },

    /** Whether a transaction may stand behind several settlements. */
    sharesTransactions: deps.facilitator.sharesTransactions === true || deps.chain !== undefined,

    /**
     * What became of a payment whose outcome was lost. The chain is asked first; an unused authorisation that can
     * still be used is sent again, which is safe, since the chain takes a nonce once.
     */
    async reconcile(settlement: OpenSettlement): Promise<SettleResult> {
      const { payment, terms } = settlement
      const { from, nonce, validBefore } = payment.authorization
      if (!deps.chain) return this.settle(settlement, true)
      try {
        // The time first: an authorisation that is unused at a moment after its last one will never be used.
        const headTime = await deps.chain.headTime()
        const seen = await deps.chain.authorization(terms.asset, from, nonce)
        if (seen.used) return fromChain(seen, payment, terms)
        if (headTime >= validBefore)
          return { state: 'failed', reason: 'authorization_expired', message: 'The authorisation expired unused.' }
      } catch (error) {
        return { state: 'unknown', reason: 'chain_unreachable', message: (error as Error).message }
      }
      return this.settle(settlement, true)
    },

    /** Whether a payment can be looked for on a chain at all. */
    canLook: deps.chain !== undefined,

    /**
     * Whether a payment that was given up has arrived after all. Whoever was shown it can use it until it expires, so
     * `open` means that it still could.
     */
    async look({
      payment,
      terms,
    }: OpenSettlement): Promise<'open' | 'over' | Extract<SettleResult, { state: 'settled' }>> {
      if (!deps.chain) return 'open'
      const { from, nonce, validBefore } = payment.authorization
      const headTime = await deps.chain.headTime()
      const seen = await deps.chain.authorization(terms.asset, from, nonce)
      const told: SettleResult | undefined = seen.used ? fromChain(seen, payment, terms) : undefined
      if (told?.state === 'settled') return told
      if (told?.state === 'unknown') return 'open'
      return told?.state === 'failed' || headTime >= validBefore + LOOK_MARGIN_SECONDS ? 'over' : 'open'
    },
  }
}

/** Everything that can be told without asking anybody. */
function compare({ payment, accepted }: ReadPayment, terms: PaymentTerms, now: Date): Refusal | undefined {
  const { authorization } = payment
  const seconds = BigInt(Math.floor(now.getTime() / 1000))
  const differs = (given: string | undefined, wanted: string) =>
    given !== undefined && given.toLowerCase() !== wanted.toLowerCase()
  if (differs(accepted.scheme, terms.scheme)) return refuse('unsupported_scheme', `The scheme must be ${terms.scheme}.`)
  if (differs(accepted.network, terms.network))
    return refuse('invalid_network', `The network must be ${terms.network}.`)
  if (differs(accepted.asset, terms.asset))
    return refuse('invalid_payment_requirements', `The asset must be USDC at ${terms.asset}.`)
  if (differs(accepted.payTo, terms.payTo) || authorization.to !== terms.payTo.toLowerCase())
    return refuse('invalid_exact_evm_payload_recipient_mismatch', `The payment must go to ${terms.payTo}.`)
  if (authorization.value !== terms.amountMicro || differs(accepted.amount, terms.amountMicro.toString()))
    return refuse(
      'invalid_exact_evm_payload_authorization_value',
      `The payment must be exactly ${terms.amountMicro} micro-USDC (${usdcFromMicro(terms.amountMicro)} USDC).`,
    )
  if (authorization.validAfter > seconds)
    return refuse('invalid_exact_evm_payload_authorization_valid_after', 'The payment is not valid yet.')
  if (authorization.validBefore < seconds + BigInt(LEAST_LIFE_SECONDS))
    return refuse(
      'invalid_exact_evm_payload_authorization_valid_before',
      `The payment has expired or expires too soon: validBefore must be at least ${LEAST_LIFE_SECONDS} seconds from now.`,
    )
  if (authorization.validBefore > seconds + BigInt(MOST_LIFE_SECONDS))
    return refuse(
      'invalid_exact_evm_payload_authorization_valid_before',
      'The payment stays valid too long: validBefore must be within an hour.',
    )
  return undefined
}

const refuse = (reason: string, message: string): Refusal => ({ reason, message })

/** A facilitator may lie or err. Its «settled» is believed only when payer, network and amount are the ones we asked for. */
function believe(result: SettleResult, payment: ExactPayment, terms: PaymentTerms): SettleResult {
  if (result.state !== 'settled') return result
  const fits =
    result.payer.toLowerCase() === payment.authorization.from &&
    result.network === terms.network &&
    result.amountMicro === terms.amountMicro &&
    /^0x[0-9a-fA-F]{64}$/.test(result.transaction)
  if (fits) return { ...result, transaction: result.transaction.toLowerCase() as Hex }
  return {
    state: 'unknown',
    reason: 'facilitator_mismatch',
    message: 'The facilitator reported a settlement that is not the one asked for.',
  }
}

type Used = Extract<Awaited<ReturnType<ChainReader['authorization']>>, { used: true }>

function fromChain(seen: Used, payment: ExactPayment, terms: PaymentTerms): SettleResult {
  const { transfer, transaction } = seen
  // Used, and the log that says how is out of reach: it may have been this payment.
  if (!transaction)
    return {
      state: 'unknown',
      reason: 'use_not_found',
      message: 'The authorisation was used; it is not known yet where.',
    }
  if (!transfer)
    return { state: 'failed', reason: 'authorization_canceled', message: 'The payer cancelled the authorisation.' }
  const ours = transfer.to.toLowerCase() === terms.payTo.toLowerCase() && transfer.value === terms.amountMicro
  if (!ours)
    return {
      state: 'failed',
      reason: 'nonce_used_elsewhere',
      message: 'The payer used the nonce for another transfer.',
    }
  return {
    state: 'settled',
    transaction,
    payer: payment.authorization.from,
    network: terms.network,
    amountMicro: terms.amountMicro,
    block: transfer.block,
  }
}
