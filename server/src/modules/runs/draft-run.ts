import { sha256 } from '../../platform/canonical.ts'
import type { AllowedAssessment, Hold } from '../governance/assessment.ts'
import { toLimitHoldItem } from '../governance/limit-hold-item.ts'
import { policyIds } from '../governance/rule-result.ts'
import { accounts, holding } from '../ledger/ledger.ts'
import type { Ask, Deps } from './execute-run.ts'
import type { Means } from './means.ts'
import type { PaidUnit, Run, RunBody } from './run.ts'

const KEY_LIFE_MS = 24 * 60 * 60 * 1000

/** Everything that is known of a run before it begins. Ids are given here, so that a repeated step finds itself. */
export function draftRun(d: Deps, ask: Ask, ruling: AllowedAssessment, means: Means): Run {
  const { offer } = ruling
  const id = ruling.runId ?? d.ids.next('run')
  const createdAt = d.clock.now()
  const settlementId = d.ids.next('stl')
  const pendingId = d.ids.next('ltx')
  const walletId = means.method === 'wallet' ? means.walletId : null
  const locks = [
    `run:${id}`,
    ...ruling.locks,
    ...holdsOf(d, ruling, means).map((hold) => `limit:${hold.scope}`),
    ...(walletId ? [`wallet:${walletId}`] : []),
  ]
  const settles = d.payments.termsFor(offer.priceMicro)
  return {
    id,
    kind: ask.kind,
    tenantId: ask.caller.kind === 'tenant' ? ask.caller.tenantId : null,
    payer: means.payer,
    agentId: offer.agentId,
    sessionId: ask.body.session_id ?? d.ids.next('ses'),
    loopId: d.ids.next('loop'),
    requestHash: ask.requestHash,
    request: withoutTokens(ask.body),
    priceMicro: offer.priceMicro,
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
      wallet_id: walletId,
      escrow_id: means.method === 'wallet' && means.escrow ? d.ids.next('esc') : null,
      request_id: ask.requestId,
      locks,
      route: offer.route,
      pricing: {
        base_price_micro: offer.basePriceMicro.toString(),
        fee_micro: offer.feeMicro.toString(),
        pricing_version: offer.pricingVersion,
      },
      ruling: ruling.summary,
      input_hash: sha256(ask.body.task),
    },
  }
}

/** A token that may still be good, should the run fail uncharged, is nothing to keep in the clear. */
function withoutTokens({ preauth_token: _, override_token: __, ...body }: RunBody): RunBody {
  return body
}

/** What transaction A writes: the key, the nonce, the limits, the grants, the pending money and the run itself. */
export function admission(d: Deps, ask: Ask, run: Run, means: Means, ruling: AllowedAssessment) {
  const at = run.createdAt.toISOString()
  const actor = ask.caller.kind === 'tenant' ? ask.caller.keyId : run.payer
  const key = keyOf(ask, run)
  const settlement = settlementOf(d, run, means)
  const item = {
    run: runRow(d, run),
    key,
    settlement,
    escrow: escrowOf(d, run, actor),
    holds: holdsOf(d, ruling, means).map(toLimitHoldItem),
    grants: ruling.grants,
    ledger: {
      id: run.pendingId,
      tenant_id: run.tenantId,
      code: run.kind,
      ref: run.id,
      created_at: at,
      asset: 'USDC',
      entries: entriesOf(run),
    },
    audit: {
      id: d.ids.next('aud'),
      tenant_id: run.tenantId,
      type: `${run.kind}.admitted`,
      occurred_at: at,
      actor,
      subject: run.id,
      decision: ruling.summary.decision,
      policy_ids: policyIds(ruling.summary.policy_applied),
      input_hash: run.requestHash,
      data: { agent_id: run.agentId, amount: run.priceMicro.toString(), ...grantsOf(run) },
    },
  }
  return { item, locks: [...run.locks, ...claimLocks(settlement, key)] }
}

/** Two requests with the same nonce or the same key must meet at one lock, whatever else they hold. */
export const claimLocks = (settlement: ReturnType<typeof settlementOf>, key: ReturnType<typeof keyOf>): string[] => [
  `nonce:${settlement.payer}:${settlement.nonce}`,
  ...(key ? [`key:${key.scope}:${key.route}:${key.key}`] : []),
]

export const keyOf = (ask: Pick<Ask, 'idempotencyKey' | 'bodyHash'> & { route: string }, unit: PaidUnit) =>
  ask.idempotencyKey === undefined
    ? null
    : {
        scope: unit.tenantId ? `tenant:${unit.tenantId}` : `payer:${unit.payer}`,
        route: ask.route,
        key: ask.idempotencyKey,
        body_hash: ask.bodyHash,
        expires_at: new Date(unit.createdAt.getTime() + KEY_LIFE_MS).toISOString(),
      }

export const runRow = (d: Pick<Deps, 'instance'>, unit: PaidUnit) => ({
  id: unit.id,
  kind: unit.kind,
  tenant_id: unit.tenantId,
  payer: unit.payer,
  agent_id: unit.agentId,
  session_id: unit.sessionId,
  loop_id: unit.loopId,
  action: unit.kind,
  request_hash: unit.requestHash,
  request: unit.request,
  terms: unit.terms,
  price_micro: unit.priceMicro,
  instance: d.instance,
  admission: unit.admission,
  created_at: unit.createdAt.toISOString(),
  deadline_at: unit.deadlineAt.toISOString(),
})

/** A wallet's payment has no nonce but its own id: it is claimed by the idempotency key alone. */
export function settlementOf(d: Deps, unit: PaidUnit, means: Means) {
  const { network, asset, payTo } = d.payments.termsFor(unit.priceMicro)
  const common = {
    id: unit.settlementId,
    method: means.method,
    network,
    asset,
    payer: unit.payer,
    pay_to: payTo,
    amount_micro: unit.priceMicro,
    wallet_id: unit.terms.wallet_id,
  }
  if (means.method === 'wallet') return { ...common, nonce: unit.settlementId, valid_before: 0n, payment: null }
  const { payment, terms } = means.settlement
  const { authorization, signature, x402Version, payload } = payment
  const { nonce, validBefore } = authorization
  return {
    ...common,
    nonce,
    valid_before: validBefore,
    payment: { x402Version, signature, authorization, payload, terms },
  }
}

function escrowOf(d: Deps, run: Run, actor: string) {
  const { wallet_id: walletId, escrow_id: id } = run.terms
  if (!id || !walletId || !run.tenantId) return null
  return holding(d.ids, {
    id,
    tenantId: run.tenantId,
    walletId,
    toWalletId: null,
    runId: run.id,
    amountMicro: run.priceMicro,
    memo: null,
    at: run.createdAt,
    expiresAt: run.deadlineAt,
    actor,
  })
}

/** Whose word let it through, where anybody's was needed. */
function grantsOf({ terms }: Run) {
  const { approval_id, override_id, preauth_id, mandate_id } = terms.ruling
  return Object.fromEntries(
    Object.entries({ approval_id, override_id, preauth_id, mandate_id }).filter(([, id]) => id !== null),
  )
}

/** USDC arrives on our address or is taken from what we owe a wallet; the lane earns its base price, orchestration its fee. */
function entriesOf(run: Run) {
  const base = BigInt(run.terms.pricing.base_price_micro)
  const fee = BigInt(run.terms.pricing.fee_micro)
  return [
    { account: sourceOf(run), amount_micro: run.priceMicro },
    { account: accounts.lane(run.agentId), amount_micro: -base },
    { account: accounts.orchestration, amount_micro: -fee },
  ].filter((entry) => entry.amount_micro !== 0n)
}

function sourceOf({ terms: { wallet_id, escrow_id } }: Run) {
  if (!wallet_id) return accounts.chain
  return escrow_id ? accounts.escrow(wallet_id) : accounts.wallet(wallet_id)
}

/** Between check and settlement a payer could drain the account; how much may be open at once is limited. */
function holdsOf(d: Deps, ruling: AllowedAssessment, means: Means): Hold[] {
  if (means.method === 'wallet') return [...ruling.holds]
  const exposure: Hold = {
    scope: `exposure:${means.payer}`,
    period: 'open',
    limitMicro: d.exposureMicro,
    amountMicro: ruling.offer.priceMicro,
    onSuccess: 'release',
    onRefusal: { status: 429, reason: 'payer_exposure', detail: {} },
  }
  return [...ruling.holds, exposure]
}
