import type { Clock } from '../../platform/clock.ts'
import type { Db } from '../../platform/db.ts'
import type { Idempotency } from '../../platform/idempotency.ts'
import type { Ids } from '../../platform/ids.ts'
import type { Log } from '../../platform/log.ts'
import { usdcFromMicro } from '../../platform/money.ts'
import { toPage } from '../../platform/paging.ts'
import { conflict, invalid, notFound } from '../../platform/problem.ts'
import { accounts, transfer } from './accounts.ts'
import { refusing } from './refusal.ts'
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

/** The way by which USDC leaves our own address; the payments module provides it. */
export type PayoutRail = {
  /** Our own address. */
  from: string
  /** The contract of USDC. It takes no USDC itself: such a payout would wait for good. */
  asset: string
  /** Whether the key of our address is ours to sign with. Where it is not, a person pays and says in which transaction. */
  automatic: boolean
  /** May be called again and again: the chain takes each payout's nonce once. `open` means that it may or may not arrive. */
  send(payout: {
    id: string
    to: string
    amountMicro: bigint
  }): Promise<{ state: 'paid'; transaction: string } | { state: 'open'; reason: string }>
  /** Whether a transaction moved this much from our address to that one; undefined when no chain can be asked. */
  proves(transaction: string, to: string, amountMicro: bigint): Promise<boolean | undefined>
}

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

const SWEEP_AT_MOST = 50
const FIRST_TRY_MS = 30_000
const NOWHERE = `0x${'0'.repeat(40)}`

/** Write before you act: the intent with the money set aside, then the transfer, then what came of it. */
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

  /** One attempt. Whatever is not certain is tried again later. */
  const attempt = async (row: PayoutRow) => {
    try {
      const sent = await rail.send({ id: row.id, to: row.to_address, amountMicro: row.amount_micro })
      if (sent.state === 'paid') return await finish(row, sent.transaction, 'countersign')
      await notePayout(db, row.id, sent.reason, clock.now())
    } catch (error) {
      deps.log.warn({ err: error, payout_id: row.id }, 'a payout could not be made yet')
    }
  }

  const find = async (id: string) => {
    const row = await findPayout(db, id)
    if (!row) throw notFound('payout')
    return row
  }

  const byHand = (row: PayoutRow) => {
    if (row.state !== 'pending') throw conflict(`This payout is ${row.state}.`)
    if (row.method !== 'manual') throw conflict('This payout is on its way; it cannot be changed by hand.')
    return row
  }

  return {
    /** Only the operator lets money out. Answers how far it came; the sweep goes on with it. */
    async withdraw(
      walletId: string,
      key: string | undefined,
      body: unknown,
      wanted: { to: string; amountMicro: bigint },
    ) {
      if ([NOWHERE, rail.from, rail.asset].some((address) => address.toLowerCase() === wanted.to.toLowerCase()))
        throw invalid('body/to must be an address that is neither empty nor our own nor that of USDC itself.')
      const route = `POST /api/admin/wallets/${walletId}/withdraw`
      const id = ids.next('pay')
      const asked = await refusing(
        deps.idempotency.once({ scope: 'operator', route, key, body }, async (tx) => {
          const wallet = await findWallet(tx, walletId)
          if (!wallet) throw notFound('wallet')
          await lock(tx, [`wallet:${walletId}`])
          const at = clock.now()
          const entries = transfer(accounts.wallet(walletId), accounts.chain, wanted.amountMicro)
          await requestPayout(tx, {
            id,
            kind: 'withdrawal',
            tenant_id: wallet.tenant_id,
            wallet_id: walletId,
            to_address: wanted.to.toLowerCase(),
            amount_micro: wanted.amountMicro,
            method: rail.automatic ? 'chain' : 'manual',
            requested_by: 'operator',
            at: at.toISOString(),
            // Somebody has to go on with it when this process does not come to it.
            next_attempt_at: rail.automatic ? new Date(at.getTime() + FIRST_TRY_MS).toISOString() : null,
            ledger: {
              id: ids.next('ltx'),
              tenant_id: wallet.tenant_id,
              code: 'withdrawal',
              ref: id,
              created_at: at.toISOString(),
              asset: 'USDC',
              entries,
            },
            audit: {
              id: ids.next('aud'),
              tenant_id: wallet.tenant_id,
              type: 'wallet.withdrawal_requested',
              occurred_at: at.toISOString(),
              actor: 'operator',
              subject: id,
              data: { amount: wanted.amountMicro.toString(), to: wanted.to },
            },
          })
          return { status: 201, body: record((await findPayout(tx, id))!) }
        }),
      )
      if (!asked.replayed && rail.automatic) await attempt(await find(id))
      return asked
    },

    get: async (id: string) => record(await find(id)),

    async list(query: { limit?: number; cursor?: string; state?: string }) {
      const limit = query.limit ?? 20
      const rows = await listPayouts(db, { ...query, limit: limit + 1 })
      const { rows: payouts, ...paging } = toPage(rows, limit)
      return { payouts: payouts.map(record), ...paging }
    },

    /** A person has paid it. Where a chain can be asked, it must agree. */
    async confirm(id: string, body: { transaction: string }) {
      const found = await find(id)
      const transaction = body.transaction.toLowerCase()
      // Said twice, it is as true as said once.
      if (found.state === 'paid' && found.transaction === transaction) return record(found)
      const row = byHand(found)
      const proven = await rail.proves(transaction, row.to_address, row.amount_micro)
      if (proven === false)
        throw invalid(
          `The transaction does not move ${usdcFromMicro(row.amount_micro)} USDC from our address to ${row.to_address}.`,
        )
      try {
        await finish(row, transaction, 'operator')
      } catch (error) {
        if ((error as { code?: string }).code === '23505')
          throw conflict('This transaction already stands for another payout.')
        throw error
      }
      return record(await find(id))
    },

    /** A withdrawal that nobody has paid. A refund is owed and cannot be cancelled. */
    async cancel(id: string) {
      const found = await find(id)
      if (found.state === 'cancelled') return record(found)
      const row = byHand(found)
      if (row.kind !== 'withdrawal') throw conflict('A refund is owed; it cannot be cancelled.')
      await db.transaction().execute(async (tx) => {
        await lock(tx, [`wallet:${row.wallet_id}`])
        await endPayout(tx, {
          id,
          state: 'cancelled',
          at: clock.now().toISOString(),
          ledger_id: ids.next('ltx'),
          audit: auditOf(row, 'wallet.withdrawal_cancelled', 'operator'),
        })
      })
      return record(await find(id))
    },

    async sweep(): Promise<number> {
      const due = await claimPayouts(db, clock.now(), SWEEP_AT_MOST)
      await Promise.all(due.map(attempt))
      return due.length
    },
  }
}

const record = (row: PayoutRow) => ({
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
