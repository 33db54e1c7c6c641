import type { TenantCaller } from '../../platform/auth-context.ts'
import { StepRefused } from '../../platform/batch.ts'
import { differentBody } from '../../platform/idempotency.ts'
import { usdcFromMicro } from '../../platform/money.ts'
import { conflict } from '../../platform/problem.ts'
import { accounts, transfer } from '../ledger/ledger.ts'
import { type Answer, replay } from './answer.ts'
import { challenge, type Priced } from './challenge.ts'
import { claimLocks, keyOf, runRow, settlementOf } from './draft-run.ts'
import { type Asked, findEarlier } from './earlier.ts'
import { type Deps, finish, kept } from './execute-run.ts'
import type { Means } from './means.ts'
import type { TopUp, TopUpResult } from './run.ts'
import { findRun, findSettlementOf } from './runs.store.ts'

export type TopUpAsk = Asked & {
  caller: TenantCaller
  walletId: string
  amountMicro: bigint
  requestId: string
}

/** The run's own story with no work in it: nothing is executed, so the first two transactions are one. */
export const createTopUp =
  (d: Deps) =>
  async (ask: TopUpAsk): Promise<Answer> => {
    await d.wallet(ask.caller.tenantId, ask.walletId)
    const earlier = await findEarlier(d, ask)
    if (earlier) return earlier
    const quote = d.payments.quotes.read(ask.paid?.accepted.quote)
    if (quote && 'request_hash' in quote.bound_to && quote.bound_to.request_hash !== ask.requestHash)
      throw conflict('This payment was quoted for another request. It was not used and is still good for its own.')
    if (!ask.paid) return challenge(d, pricedOf(d, ask))
    const terms = d.payments.termsFor(ask.amountMicro)
    const rejected = await d.payments.check(ask.paid, terms)
    if (rejected) return (await findEarlier(d, ask)) ?? challenge(d, pricedOf(d, ask), rejected)
    d.probe('check')
    const { payment } = ask.paid
    const means: Means = { method: 'x402', payer: payment.authorization.from, settlement: { payment, terms } }
    const unit = draftTopUp(d, ask, means.payer)
    const result: TopUpResult = { receipt_id: d.ids.next('rcpt'), issued_at: d.clock.now().toISOString() }
    const taken = await admit(d, ask, unit, means, result)
    if (taken) return taken
    d.probe('keep')
    const outcome = await d.payments.settle(means.settlement)
    d.probe('settle')
    return finish(d, unit, result, outcome)
  }

/** An answer comes back only when the payment or the key was used before. */
async function admit(
  d: Deps,
  ask: TopUpAsk,
  unit: TopUp,
  means: Means,
  result: TopUpResult,
): Promise<Answer | undefined> {
  const key = keyOf(ask, unit)
  const settlement = settlementOf(d, unit, means)
  const item = { run: runRow(d, unit), key, settlement, ...written(d, ask, unit), keep: kept(d, unit, result) }
  try {
    await d.steps.admitAndKeep(item, [...unit.locks, ...claimLocks(settlement, key)])
    return undefined
  } catch (error) {
    if (!(error instanceof StepRefused)) throw error
    const known = error.message === 'nonce_used' ? await findEarlier(d, ask) : undefined
    if (known) return known
    if (error.message === 'key_used') {
      if (!error.detail.same_body) throw differentBody()
      const runId = String(error.detail.run_id)
      return replay(d, await findRun(d.db, runId), await findSettlementOf(d.db, runId))
    }
    throw conflict(`The top-up could not begin: ${error.message.replaceAll('_', ' ')}.`, { cause: error })
  }
}

/** Nothing is at risk before the money is here, so no limit is held. */
function written(d: Deps, ask: TopUpAsk, unit: TopUp) {
  const at = unit.createdAt.toISOString()
  return {
    escrow: null,
    holds: [],
    grants: {},
    ledger: {
      id: unit.pendingId,
      tenant_id: unit.tenantId,
      code: 'topup',
      ref: unit.id,
      created_at: at,
      asset: 'USDC',
      entries: transfer(accounts.chain, accounts.wallet(ask.walletId), unit.priceMicro),
    },
    audit: {
      id: d.ids.next('aud'),
      tenant_id: unit.tenantId,
      type: 'topup.admitted',
      occurred_at: at,
      actor: ask.caller.keyId,
      subject: unit.id,
      data: { wallet_id: ask.walletId, amount: unit.priceMicro.toString() },
    },
  }
}

function draftTopUp(d: Deps, ask: TopUpAsk, payer: string): TopUp {
  const id = d.ids.next('run')
  const settlementId = d.ids.next('stl')
  const pendingId = d.ids.next('ltx')
  const createdAt = d.clock.now()
  const amount = ask.amountMicro.toString()
  const locks = [`run:${id}`, `wallet:${ask.walletId}`]
  const settles = d.payments.termsFor(ask.amountMicro)
  return {
    id,
    kind: 'topup',
    tenantId: ask.caller.tenantId,
    payer,
    agentId: 'wallet',
    sessionId: d.ids.next('ses'),
    loopId: d.ids.next('loop'),
    requestHash: ask.requestHash,
    request: { wallet_id: ask.walletId, amount },
    priceMicro: ask.amountMicro,
    settlementId,
    pendingId,
    admission: d.ids.uuid(),
    createdAt,
    deadlineAt: new Date(createdAt.getTime() + d.deadlineSeconds * 1000),
    locks,
    terms: {
      settlement_id: settlementId,
      pending_id: pendingId,
      asset: settles.asset,
      pay_to: settles.payTo,
      wallet_id: ask.walletId,
      escrow_id: null,
      request_id: ask.requestId,
      locks,
      route: {},
      pricing: { base_price_micro: amount, fee_micro: '0', pricing_version: d.pricingVersion() },
      ruling: unjudged(ask, createdAt),
      input_hash: ask.requestHash,
    },
  }
}

/** No rule judges one's own money coming in. */
const unjudged = (ask: TopUpAsk, at: Date): TopUp['terms']['ruling'] => ({
  decision: 'approved',
  budget_outcome: 'pass',
  policy_applied: [],
  policy_hash: null,
  mandate_id: null,
  preauth_id: null,
  override_id: null,
  approval_id: null,
  asked_by: ask.caller.keyId,
  decided_at: at.toISOString(),
  merchant: 'countersign',
})

const pricedOf = (d: Deps, ask: TopUpAsk): Priced => ({
  kind: 'topup',
  route: ask.route,
  requestHash: ask.requestHash,
  requestId: ask.requestId,
  agentId: 'wallet',
  priceMicro: ask.amountMicro,
  pricingVersion: d.pricingVersion(),
  how: {},
  description: `${usdcFromMicro(ask.amountMicro)} USDC into the wallet ${ask.walletId}`,
})
