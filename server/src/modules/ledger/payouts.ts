import type { Clock } from '../../platform/clock.ts'
import type { Db } from '../../platform/db.ts'
import type { Idempotency } from '../../platform/idempotency.ts'
import type { Ids } from '../../platform/ids.ts'
import type { Log } from '../../platform/log.ts'
import { usdcFromMicro } from '../../platform/money.ts'
import { toPage } from '../../platform/paging.ts'
import { conflict, invalid, notFound } from '../../platform/problem.ts'
import { accounts, transfer } from './accounts.ts'
import { translateRefusal } from './refusal.ts'
import {
  claimPayouts,
  endPayout,
  findPayout,
  findWallet,
  listPayouts,
  lock,
  notePayout,
  type PayoutRow,
  requestPayout,
} from './wallets.store.ts'

/** How USDC leaves our own address. The payments module implements it. */
export type PayoutRail = {
  /** Our own address. */
  from: string
  /** The USDC contract. It does not accept USDC itself, so a payout to it could never succeed. */
  asset: string
  /** Whether we hold the key of our address. If not, an operator pays and confirms the transaction. */
  automatic: boolean
  /** Safe to repeat: the chain accepts each payout's nonce once. `open` means that it may or may not arrive. */
  send(payout: PayoutTransfer): Promise<PayoutResult>
  /**
   * Whether a payout that the token refused can still arrive. Signs and sends nothing. `over`: no authorisation that was
   * signed for it, of which the last is valid until then, can be used any more.
   */
  checkRefused(payout: PayoutTransfer, refusedUntil: bigint): Promise<PayoutResult | { state: 'over' }>
  /** Whether a transaction moved this amount from our address to this one; undefined without a chain. */
  proves(transaction: string, to: string, amountMicro: bigint): Promise<boolean | undefined>
}

export type PayoutTransfer = { id: string; to: string; amountMicro: bigint }
export type PayoutResult =
  | { state: 'paid'; transaction: string }
  | { state: 'open'; reason: string }
  /** The token refuses this transfer. What was signed for it can be used until `validBefore`. */
  | { state: 'refused'; reason: string; validBefore: bigint }

export type PayoutsDeps = {
  db: Db
  clock: Clock
  ids: Ids
  log: Log
  idempotency: Idempotency
  rail: PayoutRail
  /** A refund ends with a receipt and its settlement; the runs module writes those. */
  finishRefund(payout: PayoutRow, transaction: string): Promise<void>
}

export type Payouts = ReturnType<typeof createPayouts>

const SWEEP_BATCH_SIZE = 50
const FIRST_TRY_MS = 30_000
const ZERO_ADDRESS = `0x${'0'.repeat(40)}`

/** A payout is recorded before it is sent: first the request, which reserves the money, then the transfer, then its outcome. */
export function createPayouts(deps: PayoutsDeps) {
  const { db, clock, ids, rail } = deps

  const auditOf = (row: PayoutRow, type: string, actor: string, data: Record<string, unknown> = {}) => ({
    id: ids.next('aud'),
    tenant_id: row.tenant_id,
    type,
    occurred_at: clock.now().toISOString(),
    actor,
    subject: row.id,
    data: { amount: row.amount_micro.toString(), to: row.to_address, ...data },
  })

  const finish = async (row: PayoutRow, transaction: string, actor: string) => {
    if (row.kind === 'refund') return deps.finishRefund(row, transaction)
    await db.transaction().execute(async (tx) => {
      await lock(tx, [`wallet:${row.wallet_id}`])
      await endPayout(tx, {
        id: row.id,
        state: 'paid',
        transaction,
        at: clock.now().toISOString(),
        ledger_id: ids.next('ltx'),
        audit: auditOf(row, 'wallet.withdrawn', actor, { transaction }),
      })
    })
  }

  /** Ends an unpaid withdrawal; its money is available in the wallet again. */
  const end = (row: PayoutRow, state: 'cancelled' | 'failed', auditType: string, actor: string) =>
    db.transaction().execute(async (tx) => {
      await lock(tx, [`wallet:${row.wallet_id}`])
      await endPayout(tx, {
        id: row.id,
        state,
        at: clock.now().toISOString(),
        ledger_id: ids.next('ltx'),
        audit: auditOf(row, auditType, actor),
      })
    })

  /** Makes one attempt. The sweep retries when the outcome is not certain. */
  const attempt = async (row: PayoutRow) => {
    try {
      const payout = { id: row.id, to: row.to_address, amountMicro: row.amount_micro }
      // A refund is owed, so it is tried for ever; a withdrawal is given up, and the money is the wallet's again.
      const isGivenUp = row.kind === 'withdrawal' && row.refused_until !== null
      const result = isGivenUp ? await rail.checkRefused(payout, row.refused_until!) : await rail.send(payout)
      if (result.state === 'paid') return await finish(row, result.transaction, 'countersign')
      if (result.state === 'over') return await end(row, 'failed', 'wallet.withdrawal_failed', 'countersign')
      const refusedUntil = result.state === 'refused' ? result.validBefore : row.refused_until
      await notePayout(db, row.id, result.reason, refusedUntil, clock.now())
    } catch (error) {
      deps.log.warn({ err: error, payout_id: row.id }, 'a payout attempt failed and will be retried')
    }
  }

  const getPayoutRow = async (id: string) => {
    const row = await findPayout(db, id)
    if (!row) throw notFound('payout')
    return row
  }

  const requirePendingManual = (row: PayoutRow) => {
    if (row.state !== 'pending') throw conflict(`This payout is ${row.state}.`)
    if (row.method !== 'manual') throw conflict('This payout is sent automatically and cannot be changed by hand.')
    return row
  }

  return {
    /** Only the operator may withdraw. The response is the pending payout; the first attempt follows at once, the sweep makes the others. */
    async withdraw(
      walletId: string,
      key: string | undefined,
      body: unknown,
      withdrawal: { to: string; amountMicro: bigint },
    ) {
      if (
        [ZERO_ADDRESS, rail.from, rail.asset].some((address) => address.toLowerCase() === withdrawal.to.toLowerCase())
      )
        throw invalid('body/to must not be the zero address, our own address or the USDC contract.')
      const route = `POST /api/admin/wallets/${walletId}/withdraw`
      const id = ids.next('pay')
      const response = await translateRefusal(
        deps.idempotency.once({ scope: 'operator', route, key, body }, async (tx) => {
          const wallet = await findWallet(tx, walletId)
          if (!wallet) throw notFound('wallet')
          await lock(tx, [`wallet:${walletId}`])
          const at = clock.now()
          const entries = transfer(accounts.wallet(walletId), accounts.chain, withdrawal.amountMicro)
          await requestPayout(tx, {
            id,
            kind: 'withdrawal',
            tenant_id: wallet.tenant_id,
            wallet_id: walletId,
            to_address: withdrawal.to.toLowerCase(),
            amount_micro: withdrawal.amountMicro,
            method: rail.automatic ? 'chain' : 'manual',
            requested_by: 'operator',
            at: at.toISOString(),
            // The sweep sends it if this process stops before the first attempt.
            next_attempt_at: rail.automatic ? new Date(at.getTime() + FIRST_TRY_MS).toISOString() : null,
            ledger: { id: ids.next('ltx'), entries },
            audit: {
              id: ids.next('aud'),
              tenant_id: wallet.tenant_id,
              type: 'wallet.withdrawal_requested',
              occurred_at: at.toISOString(),
              actor: 'operator',
              subject: id,
              data: { amount: withdrawal.amountMicro.toString(), to: withdrawal.to },
            },
          })
          return { status: 201, body: toPayoutRecord((await findPayout(tx, id))!) }
        }),
      )
      if (!response.replayed && rail.automatic) await attempt(await getPayoutRow(id))
      return response
    },

    get: async (id: string) => toPayoutRecord(await getPayoutRow(id)),

    async list(query: { limit?: number; cursor?: string; state?: string }) {
      const limit = query.limit ?? 20
      const rows = await listPayouts(db, { ...query, limit: limit + 1 })
      const { rows: payouts, ...paging } = toPage(rows, limit)
      return { payouts: payouts.map(toPayoutRecord), ...paging }
    },

    /** Confirms a payout that an operator has paid by hand. If a chain is configured, it must show the transfer. */
    async confirm(id: string, body: { transaction: string }) {
      const payout = await getPayoutRow(id)
      const transaction = body.transaction.toLowerCase()
      // Confirming the same transaction again changes nothing.
      if (payout.state === 'paid' && payout.transaction === transaction) return toPayoutRecord(payout)
      const row = requirePendingManual(payout)
      const proven = await rail.proves(transaction, row.to_address, row.amount_micro)
      if (proven === false)
        throw invalid(
          `The transaction does not move ${usdcFromMicro(row.amount_micro)} USDC from our address to ${row.to_address}.`,
        )
      try {
        await finish(row, transaction, 'operator')
      } catch (error) {
        if ((error as { code?: string }).code === '23505')
          throw conflict('This transaction already belongs to another payout.')
        throw error
      }
      return toPayoutRecord(await getPayoutRow(id))
    },

    /** Cancels an unpaid manual withdrawal. A refund is owed and cannot be cancelled. */
    async cancel(id: string) {
      const payout = await getPayoutRow(id)
      if (payout.state === 'cancelled') return toPayoutRecord(payout)
      const row = requirePendingManual(payout)
      if (row.kind !== 'withdrawal') throw conflict('A refund is owed; it cannot be cancelled.')
      await end(row, 'cancelled', 'wallet.withdrawal_cancelled', 'operator')
      return toPayoutRecord(await getPayoutRow(id))
    },

    async sweep(): Promise<number> {
      const due = await claimPayouts(db, clock.now(), SWEEP_BATCH_SIZE)
      await Promise.all(due.map(attempt))
      return due.length
    },
  }
}

const toPayoutRecord = (row: PayoutRow) => ({
  payout_id: row.id,
  kind: row.kind,
  status: row.state,
  method: row.method,
  tenant_id: row.tenant_id,
  wallet_id: row.wallet_id,
  settlement_id: row.settlement_id,
  to: row.to_address,
  amount: row.amount_micro.toString(),
  amount_usdc: usdcFromMicro(row.amount_micro),
  transaction: row.transaction,
  reason: row.reason,
  attempts: row.attempts,
  created_at: row.created_at.toISOString(),
  updated_at: row.updated_at.toISOString(),
})
