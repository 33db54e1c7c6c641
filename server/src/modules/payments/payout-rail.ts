import { sha256 } from '../../platform/canonical.ts'
import type { Clock } from '../../platform/clock.ts'
import type { PayoutRail } from '../ledger/payouts.ts'
import type { Authorization, ChainReader, ExactPayment, Facilitator, Hex, PaymentTerms } from './facilitator.ts'
import { NETWORK } from './x402.ts'

export type PayoutRailDeps = {
  facilitator: Facilitator
  chain: ChainReader | undefined
  clock: Clock
  asset: Hex
  /** The address that payments go to, and that payouts come from. */
  payTo: Hex
  /** Signs for that address; absent when its key is kept elsewhere. */
  sign: ((authorization: Authorization) => Promise<Hex>) | undefined
}

const LIFE_SECONDS = 600

export const payoutNonce = (payoutId: string): Hex =>
  `0x${sha256(`countersign payout ${payoutId}`).replace(/^sha256:/, '')}`

/**
 * Pays back by the same means that payments come in: an authorisation of our own address, put on the chain by the
 * facilitator. Its nonce derives from the payout's id, so that however often it is signed and sent, it moves money once.
 */
export function createPayoutRail({ facilitator, chain, clock, asset, payTo, sign }: PayoutRailDeps): PayoutRail {
  const from = payTo.toLowerCase() as Hex

  return {
    from,
    asset,
    automatic: sign !== undefined && chain !== undefined,

    async send({ id, to, amountMicro }) {
      if (!sign || !chain) return { state: 'open', reason: 'no_key' }
      const nonce = payoutNonce(id)
      const before = await chain.authorization(asset, from, nonce)
      if (before.used) return arrived(before, to, amountMicro)
      const seconds = BigInt(Math.floor(clock.now().getTime() / 1000))
      const authorization: Authorization = {
        from,
        to: to as Hex,
        value: amountMicro,
        validAfter: 0n,
        validBefore: seconds + BigInt(LIFE_SECONDS),
        nonce,
      }
      const terms: PaymentTerms = {
        scheme: 'exact',
        network: NETWORK,
        asset,
        amountMicro,
        payTo: to as Hex,
        maxTimeoutSeconds: LIFE_SECONDS,
        extra: { name: 'USD Coin', version: '2' },
      }
      const told = await facilitator.settle(paymentOf(authorization, await sign(authorization), terms), terms)
      // What the facilitator says is a hint when to look; the chain says whether the money has left.
      const after = await chain.authorization(asset, from, nonce)
      if (after.used) return arrived(after, to, amountMicro)
      return { state: 'open', reason: told.state === 'settled' ? 'not_on_chain_yet' : told.reason }
    },

    async proves(transaction, to, amountMicro) {
      if (!chain) return undefined
      const transfers = await chain.transfers(transaction as Hex)
      const wanted = (one: { asset: Hex; from: Hex; to: Hex; value: bigint }) =>
        one.asset.toLowerCase() === asset.toLowerCase() &&
        one.from.toLowerCase() === from &&
        one.to.toLowerCase() === to.toLowerCase() &&
        one.value === amountMicro
      return transfers?.some(wanted) ?? false
    },
  }
}

type Used = Extract<Awaited<ReturnType<ChainReader['authorization']>>, { used: true }>

function arrived(
  { transaction, transfer }: Used,
  to: string,
  amountMicro: bigint,
): Awaited<ReturnType<PayoutRail['send']>> {
  const ours = transfer && transfer.to.toLowerCase() === to.toLowerCase() && transfer.value === amountMicro
  return ours && transaction ? { state: 'paid', transaction } : { state: 'open', reason: 'transfer_not_found' }
}

/** As a client would have sent it, for facilitators that speak the wire format. */
function paymentOf(
  authorization: Authorization,
  signature: Hex,
  { scheme, network, asset, payTo, maxTimeoutSeconds, extra }: PaymentTerms,
): ExactPayment {
  const { value, validAfter, validBefore } = authorization
  const text = {
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
    payload: { x402Version: 2, accepted, payload: { signature, authorization: text } },
  }
}
