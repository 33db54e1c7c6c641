import { sha256 } from '../../platform/canonical.ts'
import { holdItem } from '../governance/hold-item.ts'
import { policyIds } from '../governance/result.ts'
import type { Allowed, Hold } from '../governance/ruling.ts'
import type { OpenSettlement } from '../payments/payments.ts'
import type { Ask, Deps } from './execute-run.ts'
import type { Run } from './run.ts'

const KEY_LIFE_MS = 24 * 60 * 60 * 1000

/** Everything that is known of a run before it begins. Ids are given here, so that a repeated step finds itself. */
export function draftRun(d: Deps, ask: Ask, ruling: Allowed): Run {
  const { offer } = ruling
  const id = ruling.runId ?? d.ids.next('run')
  const createdAt = d.clock.now()
  const payer = ask.paid!.payment.authorization.from
  const settlementId = d.ids.next('stl')
  const pendingId = d.ids.next('ltx')
  const locks = [`run:${id}`, ...ruling.locks, ...holdsOf(d, ruling, payer).map((hold) => `limit:${hold.scope}`)]
  return {
    id,
    kind: ask.kind,
    tenantId: ask.caller.kind === 'tenant' ? ask.caller.tenantId : null,
    payer,
    agentId: offer.agentId,
    sessionId: ask.body.session_id ?? d.ids.next('ses'),
    loopId: d.ids.next('loop'),
    requestHash: ask.requestHash,
    request: ask.body,
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

/** What transaction A writes: the key, the nonce, the limits, the grants, the pending money and the run itself. */
export function admission(d: Deps, ask: Ask, run: Run, { payment, terms }: OpenSettlement, ruling: Allowed) {
  const { authorization, signature, x402Version, payload } = payment
  const at = run.createdAt.toISOString()
  const scope = run.tenantId ? `tenant:${run.tenantId}` : `payer:${run.payer}`
  const key = ask.idempotencyKey && {
    scope,
    route: ask.route,
    key: ask.idempotencyKey,
    body_hash: ask.bodyHash,
    expires_at: new Date(run.createdAt.getTime() + KEY_LIFE_MS).toISOString(),
  }
  const item = {
    run: {
      id: run.id,
      kind: run.kind,
      tenant_id: run.tenantId,
      payer: run.payer,
      agent_id: run.agentId,
      session_id: run.sessionId,
      loop_id: run.loopId,
      action: run.kind,
      request_hash: run.requestHash,
      request: run.request,
      terms: run.terms,
      price_micro: run.priceMicro,
      instance: d.instance,
      admission: run.admission,
      created_at: at,
      deadline_at: run.deadlineAt.toISOString(),
    },
    key: key || null,
    settlement: {
      id: run.settlementId,
      method: 'x402',
      network: terms.network,
      asset: terms.asset,
      payer: run.payer,
      pay_to: terms.payTo,
      amount_micro: terms.amountMicro,
      nonce: authorization.nonce,
      valid_before: authorization.validBefore,
      payment: { x402Version, signature, authorization, payload, terms },
    },
    holds: holdsOf(d, ruling, run.payer).map(holdItem),
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
      actor: ask.caller.kind === 'tenant' ? ask.caller.keyId : run.payer,
      subject: run.id,
      decision: ruling.summary.decision,
      policy_ids: policyIds(ruling.summary.policy_applied),
      input_hash: run.requestHash,
      data: { agent_id: run.agentId, amount: run.priceMicro.toString(), ...grantsOf(run) },
    },
  }
  const locks = [
    ...run.locks,
    `nonce:${run.payer}:${authorization.nonce}`,
    ...(key ? [`key:${scope}:${ask.route}:${key.key}`] : []),
  ]
  return { item, locks }
}

/** Whose word let it through, where anybody's was needed. */
function grantsOf({ terms }: Run) {
  const { approval_id, override_id, preauth_id, mandate_id } = terms.ruling
  return Object.fromEntries(
    Object.entries({ approval_id, override_id, preauth_id, mandate_id }).filter(([, id]) => id !== null),
  )
}

/** USDC arrives on our address; the lane earns its base price, orchestration its fee. */
function entriesOf(run: Run) {
  const base = BigInt(run.terms.pricing.base_price_micro)
  const fee = BigInt(run.terms.pricing.fee_micro)
  return [
    { account: 'assets:chain:usdc', amount_micro: run.priceMicro },
    { account: `revenue:lane:${run.agentId}`, amount_micro: -base },
    { account: 'revenue:orchestration', amount_micro: -fee },
  ].filter((entry) => entry.amount_micro !== 0n)
}

/** Between check and settlement a payer could drain the account; how much may be open at once is limited. */
function holdsOf(d: Deps, ruling: Allowed, payer: string): Hold[] {
  const exposure: Hold = {
    scope: `exposure:${payer}`,
    period: 'open',
    limitMicro: d.exposureMicro,
    amountMicro: ruling.offer.priceMicro,
    onSuccess: 'release',
    onRefusal: { status: 429, reason: 'payer_exposure', detail: {} },
  }
  return [...ruling.holds, exposure]
}
