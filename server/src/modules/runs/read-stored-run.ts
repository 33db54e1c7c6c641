import type { StoredHold } from '../governance/counters/counted-by.ts'
import type { ExactPayment, PaymentTerms } from '../payments/facilitator.ts'
import type { OpenSettlement } from '../payments/payments.ts'
import { unitLocks } from './draft-run.ts'
import type { PaidUnit, RunTerms } from './paid-unit.ts'
import type { RunRow } from './runs.store.ts'

type UnitRow = Pick<
  RunRow,
  | 'id'
  | 'kind'
  | 'tenant_id'
  | 'payer'
  | 'agent_id'
  | 'session_id'
  | 'loop_id'
  | 'request_hash'
  | 'request'
  | 'terms'
  | 'price_micro'
  | 'admission'
  | 'created_at'
  | 'deadline_at'
> & { holds?: unknown }

/** Rebuilds the unit that `draftRun` or a top-up wrote into this row. */
export function toPaidUnit(row: UnitRow): PaidUnit {
  const terms = row.terms as RunTerms
  const holds = (row.holds ?? []) as StoredHold[]
  return {
    id: row.id,
    tenantId: row.tenant_id,
    payer: row.payer!,
    agentId: row.agent_id,
    sessionId: row.session_id,
    loopId: row.loop_id,
    requestHash: row.request_hash,
    terms,
    priceMicro: row.price_micro,
    settlementId: terms.settlement_id,
    pendingId: terms.pending_id,
    admission: row.admission!,
    createdAt: row.created_at,
    deadlineAt: row.deadline_at,
    locks: unitLocks(row.id, terms.wallet_id, terms.locks ?? [], holds),
    holds,
    // `kind` and `request` were written together, so they match.
    ...({ kind: row.kind, request: row.request } as Pick<PaidUnit, 'kind' | 'request'>),
  } as PaidUnit
}

type StoredPayment = {
  x402Version: 1 | 2
  signature: ExactPayment['signature']
  authorization: Record<'value' | 'validAfter' | 'validBefore', string> &
    Pick<ExactPayment['authorization'], 'from' | 'to' | 'nonce'>
  payload: unknown
  terms: Omit<PaymentTerms, 'amountMicro'> & { amountMicro: string }
}

/** Rebuilds the payment of an open run or of a failed settlement. Its bigints are stored as text. */
export function toOpenSettlement(row: { payment: unknown }): OpenSettlement {
  const { x402Version, signature, authorization, payload, terms } = row.payment as StoredPayment
  const { value, validAfter, validBefore } = authorization
  return {
    payment: {
      x402Version,
      signature,
      payload,
      authorization: {
        ...authorization,
        value: BigInt(value),
        validAfter: BigInt(validAfter),
        validBefore: BigInt(validBefore),
      },
    },
    terms: { ...terms, amountMicro: BigInt(terms.amountMicro) },
  }
}
