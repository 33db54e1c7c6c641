import type { Clock } from '../../platform/clock.ts'
import { usdcFromMicro } from '../../platform/money.ts'
import { unavailable } from '../../platform/problem.ts'
import {
  type AuthorizationUse,
  type ChainReader,
  type ExactPayment,
  type Facilitator,
  FacilitatorUnavailable,
  type Hex,
  type PaymentTerms,
  type SettleResult,
} from './facilitator.ts'
import { MAX_VALIDITY_SECONDS, minValiditySeconds, offeredSeconds } from './payment-validity.ts'
import type { Quotes } from './quote.ts'
import { NETWORK, type ReceivedPayment, TOKEN_DOMAIN } from './x402.ts'

export { findRunsOfNonces, findSettlementOf, type SettlementRow } from './settlements.store.ts'

export type PaymentsDeps = {
  facilitator: Facilitator
  /** Absent when only a facilitator is configured: then only that facilitator can be asked. */
  chain: ChainReader | undefined
  quotes: Quotes
  clock: Clock
  asset: Hex
  payTo: Hex
  /** How long a lane works at most, unless it has a deadline of its own. */
  deadlineSeconds: number
  /** Whether payments are made on the embedded chain. */
  isDevelopmentChain?: boolean
}

/** Nodes of one chain are not all at the same block: one that is behind must not make a payment look unused. */
export const NODE_LAG_MARGIN_SECONDS = 60n

export type Refusal = { reason: string; message: string }

/** A refusal becomes a 402 with its reason. The balance of the payer is null where nobody can be asked for it. */
export type PaymentCheck = { refusal: Refusal } | { balanceMicro: bigint | null }

/** The part of a settlement row that is enough to finish the payment without the original request. */
export type OpenSettlement = {
  payment: ExactPayment
  terms: PaymentTerms
}

export type Payments = ReturnType<typeof createPayments>

export function createPayments(deps: PaymentsDeps) {
  const termsFor = (amountMicro: bigint, deadlineSeconds = deps.deadlineSeconds): PaymentTerms => ({
    scheme: 'exact',
    network: NETWORK,
    asset: deps.asset,
    amountMicro,
    payTo: deps.payTo,
    maxTimeoutSeconds: offeredSeconds(deadlineSeconds),
    extra: TOKEN_DOMAIN,
  })

  /** Of the chain, when the facilitator does not tell it. A node that cannot be reached does not stop payments. */
  const readBalance = async ({ authorization }: ExactPayment, { asset }: PaymentTerms): Promise<bigint | null> =>
    deps.chain?.balanceOf(asset, authorization.from).catch(() => null) ?? null

  return {
    termsFor,
    quotes: deps.quotes,
    isDevelopmentChain: deps.isDevelopmentChain === true,

    async check(receivedPayment: ReceivedPayment, terms: PaymentTerms): Promise<PaymentCheck> {
      const refusal = compareWithTerms(receivedPayment, terms, deps.clock.now())
      if (refusal) return { refusal }
      try {
        const verdict = await deps.facilitator.verify(receivedPayment.payment, terms)
        if (!verdict.valid) return { refusal: { reason: verdict.reason, message: verdict.message } }
        return { balanceMicro: verdict.balanceMicro ?? (await readBalance(receivedPayment.payment, terms)) }
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

    /** Puts the payment on the chain. A result that does not match the payment is `unknown` until the chain shows the outcome. */
    async settle({ payment, terms }: OpenSettlement, isRetry = false): Promise<SettleResult> {
      const result = verifyClaim(await deps.facilitator.settle(payment, terms, isRetry), payment, terms)
      if (result.state !== 'settled' || !deps.chain || deps.facilitator.sharesTransactions) return result
      // Another party claims that it is settled: compare with the chain.
      try {
        const use = await deps.chain.authorization(terms.asset, payment.authorization.from, payment.authorization.nonce)
        if (use.used) return settlementFromChain(use, payment, terms)
        return {
          state: 'unknown',
          reason: 'not_on_chain_yet',
          message: 'The facilitator reported a settlement that the chain does not show yet.',
        }
      } catch (error) {
        return { state: 'unknown', reason: 'chain_unreachable', message: (error as Error).message }
      }
    },

    /** Who says that a payment is settled: the chain as we read it, or, where none can be asked, the facilitator alone. */
    assertedBy: deps.facilitator.sharesTransactions || deps.chain ? ('chain' as const) : ('facilitator' as const),

    /** Whether one transaction may settle several payments. */
    sharesTransactions: deps.facilitator.sharesTransactions === true || deps.chain !== undefined,

    /**
     * The outcome of a payment whose result was lost. The chain is asked first; an unused authorisation that is still
     * valid is sent again, which is safe, since the chain accepts a nonce once.
     */
    async reconcile(settlement: OpenSettlement): Promise<SettleResult> {
      const { payment, terms } = settlement
      const { from, nonce, validBefore } = payment.authorization
      if (!deps.chain) return this.settle(settlement, true)
      try {
        // Read the time first: an authorisation that is still unused after its `validBefore` can never be used.
        const headTime = await deps.chain.headTime()
        const use = await deps.chain.authorization(terms.asset, from, nonce)
        if (use.used) return settlementFromChain(use, payment, terms)
        if (headTime >= validBefore)
          return { state: 'failed', reason: 'authorization_expired', message: 'The authorisation expired unused.' }
      } catch (error) {
        return { state: 'unknown', reason: 'chain_unreachable', message: (error as Error).message }
      }
      return this.settle(settlement, true)
    },

    /** Whether payments can be looked up on a chain. */
    canQueryChain: deps.chain !== undefined,

    /**
     * Whether the payment of a failed run has arrived after all. Anyone who has seen the payment can submit it until it
     * expires: `open` means that it still could arrive, `over` that it no longer can.
     */
    async checkFailedPayment({
      payment,
      terms,
    }: OpenSettlement): Promise<'open' | 'over' | Extract<SettleResult, { state: 'settled' }>> {
      if (!deps.chain) return 'open'
      const { from, nonce, validBefore } = payment.authorization
      const headTime = await deps.chain.headTime()
      const use = await deps.chain.authorization(terms.asset, from, nonce)
      const result: SettleResult | undefined = use.used ? settlementFromChain(use, payment, terms) : undefined
      if (result?.state === 'settled') return result
      if (result?.state === 'unknown') return 'open'
      return result?.state === 'failed' || headTime >= validBefore + NODE_LAG_MARGIN_SECONDS ? 'over' : 'open'
    },
  }
}

/** The checks that need neither the chain nor the facilitator. */
function compareWithTerms({ payment, accepted }: ReceivedPayment, terms: PaymentTerms, now: Date): Refusal | undefined {
  const { authorization } = payment
  const seconds = BigInt(Math.floor(now.getTime() / 1000))
  const differs = (actual: string | undefined, expected: string) =>
    actual !== undefined && actual.toLowerCase() !== expected.toLowerCase()
  if (differs(accepted.scheme, terms.scheme))
    return toRefusal('unsupported_scheme', `The scheme must be ${terms.scheme}.`)
  if (differs(accepted.network, terms.network))
    return toRefusal('invalid_network', `The network must be ${terms.network}.`)
  if (differs(accepted.asset, terms.asset))
    return toRefusal('invalid_payment_requirements', `The asset must be USDC at ${terms.asset}.`)
  if (differs(accepted.payTo, terms.payTo) || authorization.to !== terms.payTo.toLowerCase())
    return toRefusal('invalid_exact_evm_payload_recipient_mismatch', `The payment must go to ${terms.payTo}.`)
  if (authorization.value !== terms.amountMicro || differs(accepted.amount, terms.amountMicro.toString()))
    return toRefusal(
      'invalid_exact_evm_payload_authorization_value',
      `The payment must be exactly ${terms.amountMicro} micro-USDC (${usdcFromMicro(terms.amountMicro)} USDC).`,
    )
  if (authorization.validAfter > seconds)
    return toRefusal('invalid_exact_evm_payload_authorization_valid_after', 'The payment is not valid yet.')
  const minSeconds = minValiditySeconds(terms)
  if (authorization.validBefore < seconds + BigInt(minSeconds))
    return toRefusal(
      'invalid_exact_evm_payload_authorization_valid_before',
      `The payment has expired or expires too soon: validBefore must be at least ${minSeconds} seconds from now. Sign one that is valid for ${terms.maxTimeoutSeconds} seconds.`,
    )
  if (authorization.validBefore > seconds + BigInt(MAX_VALIDITY_SECONDS))
    return toRefusal(
      'invalid_exact_evm_payload_authorization_valid_before',
      'The payment stays valid too long: validBefore must be within an hour.',
    )
  return undefined
}

const toRefusal = (reason: string, message: string): Refusal => ({ reason, message })

/** A facilitator may report a wrong result: `settled` counts only when payer, network and amount are those of this payment. */
function verifyClaim(result: SettleResult, payment: ExactPayment, terms: PaymentTerms): SettleResult {
  if (result.state !== 'settled') return result
  const matches =
    result.payer.toLowerCase() === payment.authorization.from &&
    result.network === terms.network &&
    result.amountMicro === terms.amountMicro &&
    /^0x[0-9a-fA-F]{64}$/.test(result.transaction)
  if (matches) return { ...result, transaction: result.transaction.toLowerCase() as Hex }
  return {
    state: 'unknown',
    reason: 'facilitator_mismatch',
    message: 'The facilitator reported the settlement of another payment.',
  }
}

function settlementFromChain(use: AuthorizationUse, payment: ExactPayment, terms: PaymentTerms): SettleResult {
  const { transfer, transaction } = use
  // The authorisation is used, but the log of its use cannot be found: it may have been this payment.
  if (!transaction)
    return {
      state: 'unknown',
      reason: 'use_not_found',
      message: 'The authorisation was used, but its transaction has not been found yet.',
    }
  if (!transfer)
    return { state: 'failed', reason: 'authorization_canceled', message: 'The payer cancelled the authorisation.' }
  const matchesTerms = transfer.to.toLowerCase() === terms.payTo.toLowerCase() && transfer.value === terms.amountMicro
  if (!matchesTerms)
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
