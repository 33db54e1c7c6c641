import type { Caller } from '../../platform/auth-context.ts'
import type { Db } from '../../platform/db.ts'
import { usdcFromMicro } from '../../platform/money.ts'
import { toPage } from '../../platform/paging.ts'
import { conflict, invalid, notFound } from '../../platform/problem.ts'
import type { Hex } from './facilitator.ts'
import {
  findRunOfSettlement,
  findRunsOfNonces,
  findSettlementWithPayout,
  listSettlements,
  type SettlementWithPayout,
} from './settlements.store.ts'
import { NETWORK, readPayload, toPaymentNonce } from './x402.ts'

export type SettlementsDeps = {
  db: Db
  /** The token of a version 1 payment, which does not name it. */
  asset: Hex
  /** Finishes the open settlement of a run the way the run would; provided by the runs module. */
  drive(runId: string): Promise<void>
  /** The run that a tenant's pre-authorisation was used for; provided by governance. */
  runOfPreauth(tenantId: string, preauthId: string): Promise<string | undefined>
}

type SettlementSelector = {
  settlement_id?: string
  run_id?: string
  preauth_id?: string
  payment_payload?: object
}
type ListQuery = {
  limit?: number
  cursor?: string
  state?: string
  method?: string
  since?: string
  until?: string
  run_id?: string
}

export function createSettlements({ db, asset, drive, runOfPreauth }: SettlementsDeps) {
  /** A guest's settlement is found by its unguessable id alone; a tenant's only by that tenant. */
  const findSettlement = async (caller: Caller, selector: SettlementSelector): Promise<SettlementWithPayout> => {
    const received = selector.payment_payload && readPayload(selector.payment_payload)
    if (selector.payment_payload && !received)
      throw invalid('body/payment_payload is not an x402 payment of the scheme exact.')
    const runIds = new Set<string | undefined>()
    if (selector.settlement_id !== undefined) runIds.add(await findRunOfSettlement(db, selector.settlement_id))
    if (selector.run_id !== undefined) runIds.add(selector.run_id)
    if (selector.preauth_id !== undefined) runIds.add(await findRunId(caller, selector.preauth_id))
    if (received && runIds.size === 0)
      runIds.add((await findRunsOfNonces(db, [toPaymentNonce(received, { network: NETWORK, asset })]))[0])
    // Selectors that name different runs name no settlement.
    const [runId] = runIds.size === 1 ? runIds : []
    const row = runId === undefined ? undefined : await findSettlementWithPayout(db, runId)
    const isVisible = row && (row.tenant_id === null || (caller.kind === 'tenant' && caller.tenantId === row.tenant_id))
    if (!isVisible) throw notFound('settlement')
    if (received && (row.payment as { signature?: string } | null)?.signature !== received.payment.signature)
      throw conflict('The payment does not belong to this settlement; it was not used.')
    return row
  }

  const findRunId = async (caller: Caller, preauthId: string): Promise<string> => {
    const runId = caller.kind === 'tenant' ? await runOfPreauth(caller.tenantId, preauthId) : undefined
    if (runId === undefined) throw notFound('settlement')
    return runId
  }

  const settlementsOfRun = async (tenantId: string, query: ListQuery & { run_id: string }) => {
    const row = await findSettlementWithPayout(db, query.run_id)
    const matches =
      row?.tenant_id === tenantId &&
      (query.state === undefined || row.state === query.state) &&
      (query.method === undefined || row.method === query.method) &&
      (query.since === undefined || row.created_at >= new Date(query.since)) &&
      (query.until === undefined || row.created_at <= new Date(query.until)) &&
      (query.cursor === undefined || row.id < query.cursor)
    return row && matches ? [row] : []
  }

  return {
    get: async (caller: Caller, id: string) => toSettlementRecord(await findSettlement(caller, { settlement_id: id })),

    async settle(caller: Caller, { settlement_id, run_id, preauth_id, payment_payload }: SettlementSelector) {
      const selector = Object.fromEntries(
        Object.entries({ settlement_id, run_id, preauth_id, payment_payload }).filter(
          ([, value]) => value !== undefined,
        ),
      )
      if (Object.keys(selector).length === 0)
        throw invalid('Name a settlement_id, a run_id or a preauth_id, or send the payment_payload.')
      const row = await findSettlement(caller, selector)
      if (row.state === 'pending' || row.state === 'unknown') await drive(row.run_id)
      return toSettlementRecord(await findSettlement(caller, { settlement_id: row.id }))
    },

    async list(caller: Caller, query: ListQuery) {
      if (caller.kind === 'guest') return { settlements: [], has_more: false, next_cursor: null }
      const limit = query.limit ?? 20
      const rows =
        query.run_id === undefined
          ? await listSettlements(db, caller.tenantId, { ...query, limit: limit + 1 })
          : await settlementsOfRun(caller.tenantId, { ...query, run_id: query.run_id })
      const { rows: settlements, ...paging } = toPage(rows, limit)
      return { settlements: settlements.map(toSettlementRecord), ...paging }
    },
  }
}

export type SettlementsService = ReturnType<typeof createSettlements>

const toSettlementRecord = (row: SettlementWithPayout) => ({
  settlement_id: row.id,
  run_id: row.run_id,
  status: row.state,
  method: row.method,
  network: row.network,
  asset: row.asset,
  payer: row.payer,
  pay_to: row.pay_to,
  amount: row.amount_micro.toString(),
  amount_usdc: usdcFromMicro(row.amount_micro),
  nonce: row.nonce,
  transaction: row.transaction,
  block: row.block === null ? null : Number(row.block),
  reason: row.reason,
  attempts: row.attempts,
  wallet_id: row.wallet_id,
  refund: row.payout_id && {
    payout_id: row.payout_id,
    status: row.payout_state,
    transaction: row.payout_transaction,
  },
  created_at: row.created_at.toISOString(),
  updated_at: row.updated_at.toISOString(),
})
