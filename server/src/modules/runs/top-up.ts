import type { TenantCaller } from '../../platform/auth-context.ts'
import { StepRefused } from '../../platform/batch.ts'
import { usdcFromMicro } from '../../platform/money.ts'
import { conflict } from '../../platform/problem.ts'
import { accounts, transfer } from '../ledger/ledger.ts'
import { claimLocks, toKeyItems, toOpenRunItem, toPaymentItem, unitLocks } from './draft-run.ts'
import { findResponseToFirstRequest, findStoredResponse, findUnansweredResponse } from './find-stored-response.ts'
import { finishRun, toKeepItem } from './finish-run.ts'
import { readPaymentQuote } from './offer.ts'
import type { RequestIdentity } from './paid-request.ts'
import { type RunResponse, stepOwner, type TopUp, type TopUpResult } from './paid-unit.ts'
import type { PaymentMethod } from './payment-method.ts'
import { type PricedRequest, paymentRequiredResponse } from './payment-required.ts'
import type { RunDeps } from './run-deps.ts'
import type { AdmissionItem } from './runs.steps.ts'

export type TopUpRequest = RequestIdentity & {
  caller: TenantCaller
  walletId: string
  amountMicro: bigint
  requestId: string
}

/** A top-up is a paid run without work: nothing is executed, so transactions A and B are one. */
export const createTopUp =
  (deps: RunDeps) =>
  async (request: TopUpRequest): Promise<RunResponse> => {
    await deps.findWallet(request.caller.tenantId, request.walletId)
    const storedResponse = (await findStoredResponse(deps, request)) ?? (await findUnansweredResponse(deps, request))
    if (storedResponse) return storedResponse

    // Refuses a payment that was quoted for another request; the price itself is the amount of the top-up.
    readPaymentQuote(deps, request)
    if (!request.paid) return paymentRequiredResponse(deps, toPricedRequest(deps, request))
    const terms = deps.payments.termsFor(request.amountMicro)
    const check = await deps.payments.check(request.paid, terms)
    if ('refusal' in check)
      return (
        (await findStoredResponse(deps, request)) ??
        paymentRequiredResponse(deps, toPricedRequest(deps, request), check.refusal)
      )
    deps.afterStep('check')

    const { payment } = request.paid
    const paymentMethod: PaymentMethod = {
      method: 'x402',
      payer: payment.authorization.from,
      settlement: { payment, terms },
      funds: { settledMicro: 0n, balanceMicro: check.balanceMicro },
    }
    const topUp = draftTopUp(deps, request, paymentMethod.payer)
    const result: TopUpResult = {
      receipt_id: deps.ids.next('rcpt'),
      issued_at: deps.clock.now().toISOString(),
      public_url: deps.publicUrl(),
    }
    const responseToFirst = await admitTopUp(deps, request, topUp, paymentMethod, result)
    if (responseToFirst) return responseToFirst
    deps.afterStep('keep')

    const outcome = await deps.payments.settle(paymentMethod.settlement)
    deps.afterStep('settle')
    return finishRun(deps, topUp, result, outcome)
  }

/** Transactions A and B. Returns a response only when the payment or the key was used before. */
async function admitTopUp(
  deps: RunDeps,
  request: TopUpRequest,
  topUp: TopUp,
  paymentMethod: PaymentMethod,
  result: TopUpResult,
): Promise<RunResponse | undefined> {
  const item = buildTopUpAdmission(deps, request, topUp, paymentMethod, result)
  try {
    await deps.steps.admit(item, [...topUp.locks, ...claimLocks(item)], stepOwner(topUp))
    return undefined
  } catch (error) {
    if (!(error instanceof StepRefused)) throw error
    const storedResponse = await findResponseToFirstRequest(deps, request, error)
    if (storedResponse) return storedResponse
    throw conflict(`The top-up could not begin: ${error.message.replaceAll('_', ' ')}.`, { cause: error })
  }
}

/** A top-up holds no limit, because nothing is delivered before the money has arrived. */
function buildTopUpAdmission(
  deps: RunDeps,
  request: TopUpRequest,
  topUp: TopUp,
  paymentMethod: PaymentMethod,
  result: TopUpResult,
): AdmissionItem {
  const entries = transfer(accounts.chain, accounts.wallet(request.walletId), topUp.priceMicro)
  return {
    ...toOpenRunItem(deps, topUp, entries),
    ...toPaymentItem(paymentMethod),
    keys: toKeyItems(request, topUp),
    escrow: null,
    holds: [],
    grants: null,
    result,
    next_attempt_at: toKeepItem(deps, topUp, result).next_attempt_at,
    audit: {
      id: deps.ids.next('aud'),
      type: 'topup.admitted',
      occurred_at: topUp.createdAt.toISOString(),
      actor: request.caller.keyId,
      subject: topUp.id,
      data: { wallet_id: request.walletId, amount: topUp.priceMicro.toString() },
    },
  }
}

function draftTopUp(deps: RunDeps, request: TopUpRequest, payer: string): TopUp {
  const id = deps.ids.next('run')
  const settlementId = deps.ids.next('stl')
  const pendingId = deps.ids.next('ltx')
  const createdAt = deps.clock.now()
  const amount = request.amountMicro.toString()
  const paymentTerms = deps.payments.termsFor(request.amountMicro)
  return {
    id,
    kind: 'topup',
    tenantId: request.caller.tenantId,
    payer,
    agentId: 'wallet',
    sessionId: id.replace('run_', 'ses_'),
    loopId: deps.ids.next('loop'),
    requestHash: request.requestHash,
    request: { wallet_id: request.walletId, amount },
    priceMicro: request.amountMicro,
    settlementId,
    pendingId,
    admission: deps.ids.uuid(),
    createdAt,
    deadlineAt: new Date(createdAt.getTime() + deps.deadlineSeconds * 1000),
    locks: unitLocks(id, request.walletId, [], []),
    holds: [],
    terms: {
      settlement_id: settlementId,
      pending_id: pendingId,
      asset: paymentTerms.asset,
      pay_to: paymentTerms.payTo,
      wallet_id: request.walletId,
      escrow_id: null,
      request_id: request.requestId,
      ...(request.paid?.identifier !== undefined && { payment_identifier: request.paid.identifier }),
      locks: [],
      route: {},
      pricing: { base_price_micro: amount, fee_micro: '0', pricing_version: deps.pricingVersion() },
      ruling: notAssessed(request, createdAt),
      input_hash: request.requestHash,
      salt: deps.ids.salt(),
    },
  }
}

/** No policy applies to a tenant's own money coming in. */
const notAssessed = (request: TopUpRequest, at: Date): TopUp['terms']['ruling'] => ({
  decision: 'approved',
  budget_outcome: 'pass',
  policy_applied: [],
  policy_hash: null,
  mandate_id: null,
  preauth_id: null,
  override_id: null,
  approval_id: null,
  asked_by: request.caller.keyId,
  decided_at: at.toISOString(),
  merchant: 'countersign',
})

const toPricedRequest = (deps: RunDeps, request: TopUpRequest): PricedRequest => ({
  kind: 'topup',
  path: request.route,
  requestHash: request.requestHash,
  requestId: request.requestId,
  agentId: 'wallet',
  priceMicro: request.amountMicro,
  pricingVersion: deps.pricingVersion(),
  route: {},
  description: `${usdcFromMicro(request.amountMicro)} USDC into the wallet ${request.walletId}`,
})
