import type { ExactPayment, PaymentTerms } from '../payments/facilitator.ts'
import type { OpenSettlement } from '../payments/payments.ts'
import type { Answer } from './answer.ts'
import { abandon, type Deps, finish } from './execute-run.ts'
import type { PaidUnit, RunTerms, UnitResult } from './run.ts'
import {
  claimDueSettlements,
  deleteExpiredKeys,
  findOrphanedRuns,
  findRun,
  findSettlementOf,
  type RunRow,
  type SettlementRow,
} from './runs.store.ts'

const BATCH = 50
const KEYS_AT_ONCE = 5_000

/**
 * Finishes what a crash or a silent facilitator left. A run that never reached `keep` is given up, uncharged; one that
 * did is asked about on the chain and goes through the same door as the request that began it.
 */
export function createReconciler(d: Deps) {
  const finishOne = async (row: RunRow, settlement: SettlementRow): Promise<Answer> => {
    const run = unitOf(row)
    if (row.state === 'executing')
      return abandon(d, run, {
        stage: 'execute',
        reason: 'interrupted',
        message: 'The run was interrupted before it was done. Nothing was charged.',
        retryable: true,
      })
    const outcome = await d.payments.reconcile(openSettlement(settlement))
    return finish(d, run, row.result as UnitResult, outcome)
  }

  const guarded = async (row: RunRow, settlement: SettlementRow) => {
    try {
      await finishOne(row, settlement)
    } catch (error) {
      d.log.warn({ err: error, run_id: row.id }, 'a run could not be finished yet')
    }
  }

  return {
    /** Settlements that are due to be asked about. Several processes may sweep at once: each row goes to one. */
    async sweepSettlements(): Promise<number> {
      const due = await claimDueSettlements(d.db, d.clock.now(), BATCH)
      await Promise.all(due.map(async (settlement) => guarded(await findRun(d.db, settlement.run_id), settlement)))
      return due.length
    },

    /** Runs whose process has died, and runs past their deadline. */
    async sweepOrphans(): Promise<number> {
      const rows = await findOrphanedRuns(d.db, d.instance, d.clock.now(), BATCH)
      await Promise.all(rows.map(async (row) => guarded(row, await findSettlementOf(d.db, row.id))))
      return rows.length
    },

    sweepKeys: (): Promise<number> => deleteExpiredKeys(d.db, d.clock.now(), KEYS_AT_ONCE),

    /** One settlement, now, because somebody asked; see `POST /api/settle`. */
    async drive(settlement: SettlementRow): Promise<void> {
      const row = await findRun(d.db, settlement.run_id)
      if (row.state === 'settling') await finishOne(row, settlement)
    },
  }
}

export type Reconciler = ReturnType<typeof createReconciler>

export function unitOf(row: RunRow): PaidUnit {
  const terms = row.terms as RunTerms
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
    locks: terms.locks,
    // The two were written together and belong together.
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

/** Bigints were written as text; here they become bigints again. */
export function openSettlement(row: SettlementRow): OpenSettlement {
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
