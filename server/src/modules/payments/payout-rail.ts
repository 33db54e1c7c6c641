import { sha256 } from '../../platform/canonical.ts'
import type { Clock } from '../../platform/clock.ts'
import type { PayoutRail } from '../ledger/payouts.ts'
import type {
  Authorization,
  AuthorizationUse,
  ChainReader,
  ExactPayment,
  Facilitator,
  Hex,
  PaymentTerms,
} from './facilitator.ts'
import { NODE_LAG_MARGIN_SECONDS } from './payments.ts'
import { NETWORK } from './x402.ts'

export type PayoutRailDeps = {
  facilitator: Facilitator
  chain: ChainReader | undefined
  clock: Clock
  asset: Hex
  /** The address that payments go to, and that payouts come from. */
  payTo: Hex
  /** Signs for that address; absent when this service does not hold its key. */
  sign: ((authorization: Authorization) => Promise<Hex>) | undefined
}

const VALIDITY_SECONDS = 600
/** The transfer itself would revert, for example because the receiver is blocked by the token. */
const REFUSED_BY_TOKEN = new Set([
  'invalid_exact_evm_transaction_simulation_failed',
  'invalid_exact_evm_transaction_failed',
])

export const payoutNonce = (payoutId: string): Hex =>
  `0x${sha256(`countersign payout ${payoutId}`).replace(/^sha256:/, '')}`

/**
 * Payouts are sent the way payments arrive: as an authorisation signed for our address, put on the chain by the
 * facilitator. The nonce derives from the payout's id, so a payout that is signed and sent repeatedly moves money once.
 */
export function createPayoutRail({ facilitator, chain, clock, asset, payTo, sign }: PayoutRailDeps): PayoutRail {
  const from = payTo.toLowerCase() as Hex

  /** An attempt also fails when our address lacks USDC or the sender lacks gas: those are worth another attempt. */
  const isRefusedByToken = async (payment: ExactPayment, terms: PaymentTerms): Promise<boolean> => {
    try {
      const verdict = await facilitator.verify(payment, terms)
      return !verdict.valid && REFUSED_BY_TOKEN.has(verdict.reason)
    } catch {
      return false
    }
  }

  return {
    from,
    asset,
    automatic: sign !== undefined && chain !== undefined,

    async send({ id, to, amountMicro }) {
      if (!sign || !chain) return { state: 'open', reason: 'no_key' }
      const nonce = payoutNonce(id)
      const earlierUse = await chain.authorization(asset, from, nonce)
      if (earlierUse.used) return toPayoutResult(earlierUse, to, amountMicro)
      const seconds = BigInt(Math.floor(clock.now().getTime() / 1000))
      const authorization: Authorization = {
        from,
        to: to as Hex,
        value: amountMicro,
        validAfter: 0n,
        validBefore: seconds + BigInt(VALIDITY_SECONDS),
        nonce,
      }
      const terms: PaymentTerms = {
        scheme: 'exact',
        network: NETWORK,
        asset,
        amountMicro,
        payTo: to as Hex,
        maxTimeoutSeconds: VALIDITY_SECONDS,
        extra: { name: 'USD Coin', version: '2' },
      }
      const payment = buildPayment(authorization, await sign(authorization), terms)
      const result = await facilitator.settle(payment, terms)
      // Whether the money has left is read from the chain, not from the facilitator's result.
      const use = await chain.authorization(asset, from, nonce)
      if (use.used) return toPayoutResult(use, to, amountMicro)
      if (result.state === 'settled') return { state: 'open', reason: 'not_on_chain_yet' }
      const isRefused = result.state === 'failed' && (await isRefusedByToken(payment, terms))
      return isRefused
        ? { state: 'refused', reason: result.reason, validBefore: authorization.validBefore }
        : { state: 'open', reason: result.reason }
    },

    async checkRefused({ id, to, amountMicro }, refusedUntil) {
      if (!chain) return { state: 'open', reason: 'no_chain' }
      // The time is read first: an authorisation that is still unused after its validity can never be used.
      const headTime = await chain.headTime()
      const use = await chain.authorization(asset, from, payoutNonce(id))
      if (use.used) return toPayoutResult(use, to, amountMicro)
      return headTime >= refusedUntil + NODE_LAG_MARGIN_SECONDS
        ? { state: 'over' }
        : { state: 'open', reason: 'refused_by_token' }
    },

    async proves(transaction, to, amountMicro) {
      if (!chain) return undefined
      const transfers = await chain.transfers(transaction as Hex)
      const isThisPayout = (transfer: { asset: Hex; from: Hex; to: Hex; value: bigint }) =>
        transfer.asset.toLowerCase() === asset.toLowerCase() &&
        transfer.from.toLowerCase() === from &&
        transfer.to.toLowerCase() === to.toLowerCase() &&
        transfer.value === amountMicro
      return transfers?.some(isThisPayout) ?? false
    },
  }
}

function toPayoutResult(
  { transaction, transfer }: AuthorizationUse,
  to: string,
  amountMicro: bigint,
): Awaited<ReturnType<PayoutRail['send']>> {
  const matchesPayout = transfer && transfer.to.toLowerCase() === to.toLowerCase() && transfer.value === amountMicro
  return matchesPayout && transaction ? { state: 'paid', transaction } : { state: 'open', reason: 'transfer_not_found' }
}

/** In the form a client would have sent, for facilitators that speak the wire format. */
function buildPayment(
  authorization: Authorization,
  signature: Hex,
  { scheme, network, asset, payTo, maxTimeoutSeconds, extra }: PaymentTerms,
): ExactPayment {
  const { value, validAfter, validBefore } = authorization
  const wireAuthorization = {
    ...authorization,
    value: value.toString(),
    validAfter: validAfter.toString(),
    validBefore: validBefore.toString(),
  }
  const accepted = { scheme, network, asset, amount: value.toString(), payTo, maxTimeoutSeconds, extra }
  return {
    x402Version: 2,
    signature,
    authorization,
    payload: { x402Version: 2, accepted, payload: { signature, authorization: wireAuthorization } },
  }
}
