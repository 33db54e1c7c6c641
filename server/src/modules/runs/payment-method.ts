import { usdcFromMicro } from '../../platform/money.ts'
import { invalid, unauthorized } from '../../platform/problem.ts'
import type { Offer } from '../governance/assess/assessment.ts'
import type { OpenSettlement } from '../payments/payments.ts'
import { answerUnanswered, findStoredResponse } from './find-stored-response.ts'
import type { PaidRequest } from './paid-request.ts'
import type { RunResponse } from './paid-unit.ts'
import { type PricedRequest, paymentRequiredResponse } from './payment-required.ts'
import { deadlineSecondsOf, type RunDeps } from './run-deps.ts'
import { isSettling } from './runs.store.ts'

/** The code of x402's reference facilitator. */
const INSUFFICIENT_BALANCE = 'invalid_exact_evm_insufficient_balance'

/** What pays for a run: an x402 payment that has been checked, or a wallet of the tenant. */
export type PaymentMethod =
  | { method: 'x402'; payer: string; settlement: OpenSettlement; funds: PayerFunds }
  | { method: 'wallet'; payer: string; walletId: string; escrow: boolean }

/** What the payer's runs had settled, and then the balance, which is null where nobody can be asked for it. */
export type PayerFunds = { settledMicro: bigint; balanceMicro: bigint | null }

/** Checks the payment in the request. Without a valid payment the response is a 402; for a payment that was used before, it is the stored response. */
export async function checkX402Payment(
  deps: RunDeps,
  request: PaidRequest,
  offer: Offer,
): Promise<PaymentMethod | RunResponse> {
  if (!request.paid) return paymentRequiredResponse(deps, toPricedRequest(request, offer))
  const terms = deps.payments.termsFor(offer.priceMicro, deadlineSecondsOf(deps, offer.agentId))
  const { payment } = request.paid
  const { from: payer } = payment.authorization
  // Read before the balance: what settles in between is then counted twice, never as if it were still there.
  const settledMicro = await deps.readSettledMicro(payer)
  // A tenant's run was looked for before the price. A guest's is looked for meanwhile, and used once the payer is known.
  const isGuest = request.caller.kind === 'guest'
  const [check, unansweredRunId] = await Promise.all([
    deps.payments.check(request.paid, terms),
    isGuest ? deps.reads.findUnansweredRun({ requestHash: request.requestHash, owner: { payer } }) : undefined,
  ])
  if ('refusal' in check) {
    // The nonce may have been used a moment ago by this very payment, sent twice: a 402 would make the client pay again.
    const storedResponse = await findStoredResponse(deps, request)
    if (storedResponse) return storedResponse
    await request.countAddress()
    return paymentRequiredResponse(deps, toPricedRequest(request, offer), check.refusal)
  }
  const unanswered = unansweredRunId !== undefined && (await answerUnanswered(deps, unansweredRunId))
  if (unanswered) return unanswered
  const funds = { settledMicro, balanceMicro: check.balanceMicro }
  return { method: 'x402', payer, settlement: { payment, terms }, funds }
}

/** Only reads the balance, without a chain; the money is set aside in the transaction that admits the run. */
export async function checkWallet(
  deps: RunDeps,
  request: PaidRequest,
  offer: Offer,
): Promise<PaymentMethod | RunResponse> {
  const { wallet_id, escrow = false } = request.body.payment!
  if (request.paid) throw invalid('Pay by x402 or from a wallet, not both.')
  if (request.caller.kind !== 'tenant') throw unauthorized('Paying from a wallet takes the X-API-Key of its tenant.')
  const wallet = await deps.findWallet(request.caller.tenantId, wallet_id)
  if (wallet.available_micro < offer.priceMicro)
    return walletTooLowResponse(deps, request, offer, wallet.available_micro)
  return { method: 'wallet', payer: wallet_id, walletId: wallet_id, escrow }
}

/**
 * Whether the balance may have been read while a payment was leaving it: one that is being settled, or that has settled
 * since. Asked in this order, because a run that ends between the two is in the second.
 */
export const areFundsMoving = async (
  deps: Pick<RunDeps, 'db' | 'readSettledMicro'>,
  payer: string,
  funds: PayerFunds,
): Promise<boolean> => (await isSettling(deps.db, payer)) || (await deps.readSettledMicro(payer)) !== funds.settledMicro

/** The payer's balance is promised to other runs. The payment was not used and can pay once they have ended. */
export function fundsPromisedResponse(
  deps: RunDeps,
  request: PaidRequest,
  offer: Offer,
  funds: PayerFunds,
  inFlightMicro: bigint,
): RunResponse {
  const balance = usdcFromMicro(funds.balanceMicro ?? 0n)
  return paymentRequiredResponse(deps, toPricedRequest(request, offer), {
    reason: INSUFFICIENT_BALANCE,
    message: `The payer holds ${balance} USDC, and ${usdcFromMicro(inFlightMicro)} USDC are promised to runs in flight; this call costs ${usdcFromMicro(offer.priceMicro)} USDC. Nothing was charged, and this payment was not used.`,
  })
}

/** A 402 with an empty `accepts`, so that no x402 client pays for the run by accident: the wallet needs a top-up. */
export function walletTooLowResponse(
  deps: RunDeps,
  request: PaidRequest,
  offer: Offer,
  availableMicro: bigint,
): RunResponse {
  const walletId = request.body.payment!.wallet_id
  const challenge = paymentRequiredResponse(deps, toPricedRequest(request, offer))
  const body = {
    ...JSON.parse(challenge.body),
    message: `The wallet has ${usdcFromMicro(availableMicro)} USDC available and this call costs ${usdcFromMicro(offer.priceMicro)}.`,
    reason: 'wallet_balance',
    accepts: [],
    wallet_id: walletId,
    available: availableMicro.toString(),
    next_action: `POST /api/wallets/${walletId}/topup`,
  }
  return { status: 402, headers: { 'cache-control': 'no-store' }, body: JSON.stringify(body) }
}

const toPricedRequest = (request: PaidRequest, offer: Offer): PricedRequest => ({
  kind: request.kind,
  path: request.route,
  requestHash: request.requestHash,
  requestId: request.requestId,
  agentId: offer.agentId,
  priceMicro: offer.priceMicro,
  pricingVersion: offer.pricingVersion,
  route: offer.route,
  description: `One ${request.kind} on the lane ${offer.agentId}`,
})
