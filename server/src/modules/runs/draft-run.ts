import { sha256 } from '../../platform/canonical.ts'
import type { AllowedAssessment, Hold } from '../governance/assess/assessment.ts'
import { exposureScope, toLimitHoldItem } from '../governance/counters/limit-hold-item.ts'
import { accounts, buildEscrowHold, type LedgerEntry } from '../ledger/ledger.ts'
import { type PaidRequest, requestKeys } from './paid-request.ts'
import { memoryUse, type PaidUnit, type Run, type RunBody } from './paid-unit.ts'
import type { PaymentMethod } from './payment-method.ts'
import { deadlineSecondsOf, type RunDeps } from './run-deps.ts'
import type { AdmissionItem } from './runs.steps.ts'

const KEY_LIFE_MS = 24 * 60 * 60 * 1000

/** The run as it will be written. All ids are assigned here, so that a repeated step writes the same rows. */
export function draftRun(
  deps: RunDeps,
  request: PaidRequest,
  assessment: AllowedAssessment,
  paymentMethod: PaymentMethod,
): Run {
  const { offer } = assessment
  const id = assessment.runId ?? deps.ids.next('run')
  const createdAt = deps.clock.now()
  // A payment from a wallet has no settlement of its own: its run is found by this id.
  const settlementId = paymentMethod.method === 'wallet' ? id.replace('run_', 'stl_') : deps.ids.next('stl')
  const pendingId = deps.ids.next('ltx')
  const walletId = paymentMethod.method === 'wallet' ? paymentMethod.walletId : null
  const holds = holdsOf(deps, assessment, paymentMethod)
  const paymentTerms = deps.payments.termsFor(offer.priceMicro, deadlineSecondsOf(deps, offer.agentId))
  return {
    id,
    kind: request.kind,
    tenantId: request.caller.kind === 'tenant' ? request.caller.tenantId : null,
    payer: paymentMethod.payer,
    agentId: offer.agentId,
    // The session of a run without one is found by the id of the run.
    sessionId: request.body.session_id ?? id.replace('run_', 'ses_'),
    loopId: deps.ids.next('loop'),
    requestHash: request.requestHash,
    request: withoutTokens(request.body),
    priceMicro: offer.priceMicro,
    settlementId,
    pendingId,
    admission: deps.ids.uuid(),
    createdAt,
    deadlineAt: new Date(createdAt.getTime() + deadlineSecondsOf(deps, offer.agentId) * 1000),
    locks: unitLocks(id, walletId, assessment.locks, holds),
    holds: [],
    terms: {
      settlement_id: settlementId,
      pending_id: pendingId,
      asset: paymentTerms.asset,
      pay_to: paymentTerms.payTo,
      wallet_id: walletId,
      escrow_id: paymentMethod.method === 'wallet' && paymentMethod.escrow ? deps.ids.next('esc') : null,
      request_id: request.requestId,
      ...(request.paid?.identifier !== undefined && { payment_identifier: request.paid.identifier }),
      locks: assessment.locks,
      route: offer.route,
      pricing: {
        base_price_micro: offer.basePriceMicro.toString(),
        fee_micro: offer.feeMicro.toString(),
        pricing_version: offer.pricingVersion,
      },
      ruling: assessment.summary,
      input_hash: sha256(request.body.task),
      salt: deps.ids.salt(),
      counter_salt: deps.ids.salt(),
      ...(request.respondAsync && { async: { takeovers: 0 } }),
    },
  }
}

/** The locks that every step of a run takes: its own, and those of its grants, its counters and its wallet. */
export const unitLocks = (
  id: string,
  walletId: string | null,
  grantLocks: readonly string[],
  holds: readonly { scope: string }[],
): string[] => [
  `run:${id}`,
  ...grantLocks,
  ...holds.map((hold) => `limit:${hold.scope}`),
  ...(walletId ? [`wallet:${walletId}`] : []),
]

/** Tokens are not stored in clear text: they stay valid if the run fails without a charge. */
function withoutTokens({ preauth_token: _, override_token: __, ...body }: RunBody): RunBody {
  return body
}

/**
 * The request of an approved run stays in its approval, encrypted, and is needed nowhere else; where it is to be
 * remembered the reconciler needs the task, which its caller wants stored anyway.
 */
function toStoredRequest(unit: PaidUnit): Record<string, unknown> {
  if (unit.kind === 'topup' || unit.terms.ruling.approval_id === null || memoryUse(unit).writes) return unit.request
  const { session_id, options } = unit.request
  return { ...(session_id !== undefined && { session_id }), ...(options && { options }) }
}

/** What transaction A writes: key, nonce, limits, grants, pending money and the run itself. */
export function buildAdmission(
  deps: RunDeps,
  request: PaidRequest,
  run: Run,
  paymentMethod: PaymentMethod,
  assessment: AllowedAssessment,
) {
  const at = run.createdAt.toISOString()
  const actor = request.caller.kind === 'tenant' ? request.caller.keyId : run.payer
  const item: AdmissionItem = {
    ...toOpenRunItem(deps, run, ledgerEntries(run)),
    ...toPaymentItem(paymentMethod),
    keys: toKeyItems(request, run),
    escrow: toEscrowHold(deps, run, actor),
    holds: holdsOf(deps, assessment, paymentMethod).map(toLimitHoldItem),
    grants: assessment.grants,
    result: null,
    next_attempt_at: null,
    audit: {
      id: deps.ids.next('aud'),
      type: `${run.kind}.admitted`,
      occurred_at: at,
      actor,
      subject: run.id,
      decision: assessment.summary.decision,
      policy_ids: assessment.policyIds,
      input_hash: run.requestHash,
      data: { agent_id: run.agentId, amount: run.priceMicro.toString(), ...payerOf(run), ...usedGrants(run) },
    },
  }
  return { item, locks: [...run.locks, ...claimLocks(item)] }
}

/** Two requests with the same nonce or the same key take the same lock, whatever other locks they hold. */
export const claimLocks = ({ nonce, keys }: Pick<AdmissionItem, 'nonce' | 'keys'>): string[] => [
  ...(nonce ? [`nonce:${nonce.payer}:${nonce.nonce}`] : []),
  ...keys.map(({ scope, route, key }) => `key:${scope}:${route}:${key}`),
]

export const toKeyItems = (
  request: Pick<PaidRequest, 'idempotencyKey' | 'paid' | 'bodyHash'> & { route: string },
  unit: PaidUnit,
) =>
  requestKeys(request).map((key) => ({
    scope: unit.tenantId ? `tenant:${unit.tenantId}` : `payer:${unit.payer}`,
    route: request.route,
    key,
    body_hash: request.bodyHash,
    expires_at: new Date(unit.createdAt.getTime() + KEY_LIFE_MS).toISOString(),
  }))

/** Who spends, as records have it: the key where nothing names a spender. A guest has neither. */
function payerColumns({ terms: { ruling } }: PaidUnit) {
  const keyId = ruling.asked_by
  const { spender = keyId === null ? null : `key:${keyId}`, team = null, tags = null } = ruling
  return { spender, team, key_id: keyId, tags }
}

/** The row of an open run, with the ledger entries that are pending as long as it is open. */
export const toOpenRunItem = (deps: Pick<RunDeps, 'instance'>, unit: PaidUnit, entries: readonly LedgerEntry[]) => ({
  id: unit.id,
  kind: unit.kind,
  tenant_id: unit.tenantId,
  payer: unit.payer,
  agent_id: unit.agentId,
  ...payerColumns(unit),
  session_id: unit.sessionId,
  loop_id: unit.loopId,
  request_hash: unit.requestHash,
  request: toStoredRequest(unit),
  terms: unit.terms,
  price_micro: unit.priceMicro,
  instance: deps.instance,
  admission: unit.admission,
  created_at: unit.createdAt.toISOString(),
  deadline_at: unit.deadlineAt.toISOString(),
  wallet_id: unit.terms.wallet_id,
  accounts: entries.map(({ account }) => account),
  amounts: entries.map(({ amount_micro }) => amount_micro),
})

/** An x402 payment with its nonce, which buys one run for good. A payment from a wallet has neither. */
export function toPaymentItem(paymentMethod: PaymentMethod): Pick<AdmissionItem, 'payment' | 'nonce'> {
  if (paymentMethod.method === 'wallet') return { payment: null, nonce: null }
  const { payment, terms } = paymentMethod.settlement
  const { authorization, signature, x402Version, payload } = payment
  const { network, asset } = terms
  return {
    payment: { x402Version, signature, authorization, payload, terms },
    nonce: { payer: paymentMethod.payer, nonce: authorization.nonce, network, asset },
  }
}

function toEscrowHold(deps: RunDeps, run: Run, actor: string) {
  const { wallet_id: walletId, escrow_id: id } = run.terms
  if (!id || !walletId || !run.tenantId) return null
  return buildEscrowHold(deps.ids, {
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

/** Who spends, as far as the request or its key names it. */
export const payerOf = ({ terms: { ruling } }: Pick<Run, 'terms'>) => ({
  ...(ruling.spender !== undefined && { spender: ruling.spender }),
  ...(ruling.team !== undefined && { team: ruling.team }),
  ...(ruling.tags !== undefined && { tags: ruling.tags }),
})

/** The approval, override, pre-authorisation and mandate that the run used, for its audit event. */
function usedGrants({ terms }: Run) {
  const { approval_id, override_id, preauth_id, mandate_id } = terms.ruling
  return Object.fromEntries(
    Object.entries({ approval_id, override_id, preauth_id, mandate_id }).filter(([, id]) => id !== null),
  )
}

/** Debits the service's address, the wallet or the escrow; credits the lane with its base price and orchestration with its fee. */
function ledgerEntries(run: Run) {
  const base = BigInt(run.terms.pricing.base_price_micro)
  const fee = BigInt(run.terms.pricing.fee_micro)
  return [
    { account: sourceAccount(run), amount_micro: run.priceMicro },
    { account: accounts.lane(run.agentId), amount_micro: -base },
    { account: accounts.orchestration, amount_micro: -fee },
  ].filter((entry) => entry.amount_micro !== 0n)
}

function sourceAccount({ terms: { wallet_id, escrow_id } }: Run) {
  if (!wallet_id) return accounts.chain
  return escrow_id ? accounts.escrow(wallet_id) : accounts.wallet(wallet_id)
}

/** No payer holds a billion USDC. */
const MAX_BALANCE_MICRO = 1_000_000_000_000_000n

/**
 * What a payer has promised and not yet paid is at most the payer's balance. The payer could empty the account between
 * check and settlement, so it is limited by itself, too.
 */
function holdsOf(deps: RunDeps, assessment: AllowedAssessment, paymentMethod: PaymentMethod): Hold[] {
  if (paymentMethod.method === 'wallet') return [...assessment.holds]
  const { settledMicro, balanceMicro } = paymentMethod.funds
  const exposure: Hold = {
    scope: exposureScope(paymentMethod.payer),
    period: 'open',
    limitMicro: settledMicro + min(balanceMicro ?? MAX_BALANCE_MICRO, MAX_BALANCE_MICRO),
    inFlight: { openLimitMicro: deps.exposureMicro, settledMicro },
    amountMicro: assessment.offer.priceMicro,
    onSuccess: 'spend',
    onRefusal: { status: 429, reason: 'payer_exposure', detail: {} },
  }
  return [...assessment.holds, exposure]
}

const min = (a: bigint, b: bigint) => (a < b ? a : b)
