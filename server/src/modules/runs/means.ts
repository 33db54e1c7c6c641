import { usdcFromMicro } from '../../platform/money.ts'
import { invalid, unauthorized } from '../../platform/problem.ts'
import type { Offer } from '../governance/assessment.ts'
import type { OpenSettlement } from '../payments/payments.ts'
import type { Answer } from './answer.ts'
import { challenge, type Priced } from './challenge.ts'
import { findEarlier } from './earlier.ts'
import type { Ask, Deps } from './execute-run.ts'

/** What a run is paid with: an x402 payment that has been checked, or a wallet of the tenant. */
export type Means =
  | { method: 'x402'; payer: string; settlement: OpenSettlement }
  | { method: 'wallet'; payer: string; walletId: string; escrow: boolean }

/** The payment that came with the request; or the 402 that asks for one; or the answer it has already bought. */
export async function byX402(d: Deps, ask: Ask, offer: Offer): Promise<Means | Answer> {
  if (!ask.paid) return challenge(d, pricedOf(ask, offer))
  const terms = d.payments.termsFor(offer.priceMicro)
  const rejected = await d.payments.check(ask.paid, terms)
  if (rejected) {
    // The nonce may have been used a moment ago by this very payment, sent twice: a 402 would make the client pay again.
    const meanwhile = await findEarlier(d, ask)
    if (meanwhile) return meanwhile
    await ask.countAddress()
    return challenge(d, pricedOf(ask, offer), rejected)
  }
  const { payment } = ask.paid
  return { method: 'x402', payer: payment.authorization.from, settlement: { payment, terms } }
}

/** No chain in the path: the money is set aside in the transaction that admits the run. Here it is only looked at. */
export async function fromWallet(d: Deps, ask: Ask, offer: Offer): Promise<Means | Answer> {
  const { wallet_id, escrow = false } = ask.body.payment!
  if (ask.paid) throw invalid('Pay by x402 or from a wallet, not both.')
  if (ask.caller.kind !== 'tenant') throw unauthorized('Paying from a wallet takes the X-API-Key of its tenant.')
  const wallet = await d.wallet(ask.caller.tenantId, wallet_id)
  if (wallet.available_micro < offer.priceMicro) return walletTooLow(d, ask, offer, wallet.available_micro)
  return { method: 'wallet', payer: wallet_id, walletId: wallet_id, escrow }
}

/** A 402 that no x402 client can answer by paying for the run: it is the wallet that lacks money. */
export function walletTooLow(d: Deps, ask: Ask, offer: Offer, availableMicro: bigint): Answer {
  const walletId = ask.body.payment!.wallet_id
  const { body } = challenge(d, pricedOf(ask, offer))
  const told = {
    ...JSON.parse(body),
    message: `The wallet has ${usdcFromMicro(availableMicro)} USDC available and this call costs ${usdcFromMicro(offer.priceMicro)}.`,
    reason: 'wallet_balance',
    accepts: [],
    wallet_id: walletId,
    available: availableMicro.toString(),
    next_action: `POST /api/wallets/${walletId}/topup`,
  }
  return { status: 402, headers: { 'cache-control': 'no-store' }, body: JSON.stringify(told) }
}

const pricedOf = (ask: Ask, offer: Offer): Priced => ({
  kind: ask.kind,
  route: ask.route,
  requestHash: ask.requestHash,
  requestId: ask.requestId,
  agentId: offer.agentId,
  priceMicro: offer.priceMicro,
  pricingVersion: offer.pricingVersion,
  how: offer.route,
  description: `One ${ask.kind} on the lane ${offer.agentId}`,
})
