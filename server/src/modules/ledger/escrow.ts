import type { TenantCaller } from '../../platform/auth-context.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Db, Tx } from '../../platform/db.ts'
import type { Idempotency } from '../../platform/idempotency.ts'
import type { Ids } from '../../platform/ids.ts'
import { usdcFromMicro } from '../../platform/money.ts'
import type { Outbox } from '../../platform/outbox.ts'
import { toPage } from '../../platform/paging.ts'
import { conflict, expired, forbidden, invalid, notFound, Problem } from '../../platform/problem.ts'
import { accounts, type LedgerEntry, transfer } from './accounts.ts'
import { translateRefusal } from './refusal.ts'
import {
  type EscrowRow,
  endEscrow,
  findEscrow,
  findWallet,
  holdEscrow,
  listEscrows,
  listExpiredEscrows,
  listTenantEscrows,
  lock,
  markDisputed,
} from './wallets.store.ts'

export type EscrowDeps = {
  db: Db
  clock: Clock
  ids: Ids
  idempotency: Idempotency
  audit: Outbox['audit']
}

export type NewEscrow = { amountMicro: bigint; to_wallet_id?: string; memo?: string; expires_in_seconds?: number }

export type Escrow = ReturnType<typeof createEscrow>

type EscrowEnd = 'released' | 'refunded' | 'expired'

const DEFAULT_LIFE_SECONDS = 7 * 24 * 60 * 60
const SWEEP_BATCH_SIZE = 100

/**
 * Money that a tenant sets aside for a recipient. The owner may release it, the recipient may give it back, either may
 * dispute it; without a dispute it returns to the wallet when it expires. An escrow that pays for a run ends with the run.
 */
export function createEscrow(deps: EscrowDeps) {
  const { db, clock } = deps

  const once = (
    scope: string,
    route: string,
    key: string | undefined,
    body: unknown,
    work: (tx: Tx) => Promise<{ status: number; body: unknown }>,
  ) => translateRefusal(deps.idempotency.once({ scope, route, key, body }, work))

  const findVisibleEscrow = async (tx: Tx, caller: TenantCaller, id: string): Promise<EscrowRow> => {
    const row = await findEscrow(tx, id)
    if (!row || (row.tenant_id !== caller.tenantId && row.to_tenant_id !== caller.tenantId)) throw notFound('escrow')
    return row
  }

  const findOwnWallet = async (tx: Tx, caller: TenantCaller, id: string) => {
    const wallet = await findWallet(tx, id)
    if (!wallet || wallet.tenant_id !== caller.tenantId) throw notFound('wallet')
    return wallet
  }

  /** Ends an escrow inside the caller's transaction; the SQL function refuses one that has already ended. */
  const end = async (
    tx: Tx,
    row: EscrowRow,
    state: EscrowEnd,
    from: readonly string[],
    actor: string,
    reason: string | null,
  ) => {
    const at = clock.now()
    await lock(
      tx,
      [row.wallet_id, row.to_wallet_id].flatMap((id) => (id === null ? [] : [`wallet:${id}`])),
    )
    const parties = [...new Set([row.tenant_id, ...(row.to_tenant_id === null ? [] : [row.to_tenant_id])])]
    const type = state === 'released' ? 'escrow.released' : 'escrow.refunded'
    await endEscrow(tx, {
      id: row.id,
      from,
      state,
      reason,
      at: at.toISOString(),
      ledger: ledgerMovesOf(row, state).map(({ tenantId, entries }) => ({
        id: deps.ids.next('ltx'),
        tenant_id: tenantId,
        code: `escrow_${state}`,
        ref: row.id,
        created_at: at.toISOString(),
        asset: 'USDC',
        entries,
      })),
      events: parties.map((tenant_id) => ({
        id: deps.ids.next('evt'),
        tenant_id,
        type,
        data: eventData(row, state),
        created_at: at.toISOString(),
      })),
      audits: parties.map((tenant_id) => ({
        id: deps.ids.next('aud'),
        tenant_id,
        type: `escrow.${state}`,
        occurred_at: at.toISOString(),
        actor,
        subject: row.id,
        decision: state,
        data: { amount: row.amount_micro.toString(), reason },
      })),
    })
    return toEscrowRecord((await findEscrow(tx, row.id))!)
  }

  return {
    get: async (caller: TenantCaller, id: string) => toEscrowRecord(await findVisibleEscrow(db, caller, id)),

    async list(caller: TenantCaller, walletId: string, query: { limit?: number; cursor?: string; state?: string }) {
      await findOwnWallet(db, caller, walletId)
      const limit = query.limit ?? 20
      const rows = await listEscrows(db, walletId, { ...query, limit: limit + 1 })
      const { rows: escrows, ...paging } = toPage(rows, limit)
      return { escrows: escrows.map(toEscrowRecord), ...paging }
    },

    async listAll(
      caller: TenantCaller,
      query: { limit?: number; cursor?: string; state?: string; side?: 'sent' | 'received' },
    ) {
      const limit = query.limit ?? 20
      const rows = await listTenantEscrows(db, caller.tenantId, { ...query, limit: limit + 1 })
      const { rows: escrows, ...paging } = toPage(rows, limit)
      return { escrows: escrows.map(toEscrowRecord), ...paging }
    },

    hold: (caller: TenantCaller, walletId: string, key: string | undefined, body: unknown, request: NewEscrow) =>
      once(`tenant:${caller.tenantId}`, `POST /api/wallets/${walletId}/escrow`, key, body, async (tx) => {
        await findOwnWallet(tx, caller, walletId)
        if (request.to_wallet_id === walletId) throw invalid('body/to_wallet_id must not be the paying wallet.')
        if (request.to_wallet_id !== undefined && !(await findWallet(tx, request.to_wallet_id)))
          throw notFound('wallet')
        await lock(tx, [`wallet:${walletId}`])
        const at = clock.now()
        const id = deps.ids.next('esc')
        await holdEscrow(
          tx,
          buildEscrowHold(deps.ids, {
            id,
            tenantId: caller.tenantId,
            walletId,
            toWalletId: request.to_wallet_id ?? null,
            runId: null,
            amountMicro: request.amountMicro,
            memo: request.memo ?? null,
            at,
            expiresAt: new Date(at.getTime() + (request.expires_in_seconds ?? DEFAULT_LIFE_SECONDS) * 1000),
            actor: caller.keyId,
          }),
        )
        return { status: 201, body: toEscrowRecord((await findEscrow(tx, id))!) }
      }),

    release: (caller: TenantCaller, id: string, key: string | undefined, body: { reason?: string }) =>
      once(`tenant:${caller.tenantId}`, `POST /api/escrow/${id}/release`, key, body, async (tx) => {
        const row = requireEndable(await findVisibleEscrow(tx, caller, id), clock.now())
        if (row.tenant_id !== caller.tenantId)
          throw forbidden('Only the tenant that put the money in escrow may release it.')
        return {
          status: 200,
          body: await end(tx, row, 'released', ['held', 'disputed'], caller.keyId, body.reason ?? null),
        }
      }),

    refund: (caller: TenantCaller, id: string, key: string | undefined, body: { reason?: string }) =>
      once(`tenant:${caller.tenantId}`, `POST /api/escrow/${id}/refund`, key, body, async (tx) => {
        const row = requireEndable(await findVisibleEscrow(tx, caller, id), clock.now())
        if (row.to_tenant_id !== null && row.to_tenant_id !== caller.tenantId)
          throw forbidden(
            'Only the recipient may give the money back. Without a dispute it returns when the escrow expires.',
          )
        return {
          status: 200,
          body: await end(tx, row, 'refunded', ['held', 'disputed'], caller.keyId, body.reason ?? null),
        }
      }),

    dispute: (caller: TenantCaller, id: string, key: string | undefined, body: { reason: string }) =>
      once(`tenant:${caller.tenantId}`, `POST /api/escrow/${id}/dispute`, key, body, async (tx) => {
        const row = requireEndable(await findVisibleEscrow(tx, caller, id), clock.now())
        const disputed = await markDisputed(tx, row.id, body.reason)
        if (!disputed) throw conflict(`This escrow is ${row.state}.`)
        const at = clock.now()
        await deps.audit(tx, {
          tenantId: caller.tenantId,
          type: 'escrow.disputed',
          actor: caller.keyId,
          subject: id,
          at,
          data: { reason: body.reason },
        })
        return { status: 200, body: toEscrowRecord(disputed) }
      }),

    /** The operator decides a dispute. */
    resolve: (id: string, key: string | undefined, body: { outcome: 'release' | 'refund'; reason: string }) =>
      once('operator', `POST /api/admin/escrow/${id}/resolve`, key, body, async (tx) => {
        const row = await findEscrow(tx, id)
        if (!row) throw notFound('escrow')
        const state = body.outcome === 'release' ? 'released' : 'refunded'
        return { status: 200, body: await end(tx, row, state, ['disputed'], 'operator', body.reason) }
      }),

    /** Returns the money of escrows that expired without being released. */
    async sweepExpired(): Promise<number> {
      const rows = await listExpiredEscrows(db, clock.now(), SWEEP_BATCH_SIZE)
      let ended = 0
      for (const row of rows) {
        try {
          await translateRefusal(
            db.transaction().execute((tx) => end(tx, row, 'expired', ['held'], 'countersign', 'expired')),
          )
          ended += 1
        } catch (error) {
          // Another request released, refunded or disputed the escrow first.
          if (!(error instanceof Problem)) throw error
        }
      }
      return ended
    },
  }
}

function requireEndable(row: EscrowRow, now: Date): EscrowRow {
  if (row.run_id !== null) throw conflict('This escrow pays for a run and ends with it.')
  if (row.state === 'held' && row.expires_at <= now)
    throw expired('This escrow has expired; the money goes back to the wallet.')
  return row
}

type EscrowHold = {
  id: string
  tenantId: string
  walletId: string
  toWalletId: string | null
  runId: string | null
  amountMicro: bigint
  memo: string | null
  at: Date
  expiresAt: Date
  actor: string
}

/** The input of the SQL function `hold_escrow`, for a standalone escrow and for one that pays for a run. */
export function buildEscrowHold(ids: Ids, hold: EscrowHold) {
  const at = hold.at.toISOString()
  const data = {
    escrow_id: hold.id,
    wallet_id: hold.walletId,
    to_wallet_id: hold.toWalletId,
    run_id: hold.runId,
    amount: hold.amountMicro.toString(),
    status: 'held',
  }
  return {
    id: hold.id,
    tenant_id: hold.tenantId,
    wallet_id: hold.walletId,
    to_wallet_id: hold.toWalletId,
    run_id: hold.runId,
    amount_micro: hold.amountMicro,
    memo: hold.memo,
    expires_at: hold.expiresAt.toISOString(),
    created_at: at,
    ledger: {
      id: ids.next('ltx'),
      tenant_id: hold.tenantId,
      code: 'escrow_held',
      ref: hold.id,
      created_at: at,
      asset: 'USDC',
      entries: transfer(accounts.wallet(hold.walletId), accounts.escrow(hold.walletId), hold.amountMicro),
    },
    event: { id: ids.next('evt'), tenant_id: hold.tenantId, type: 'escrow.held', data, created_at: at },
    audit: {
      id: ids.next('aud'),
      tenant_id: hold.tenantId,
      type: 'escrow.held',
      occurred_at: at,
      actor: hold.actor,
      subject: hold.id,
      decision: 'held',
      data: { amount: hold.amountMicro.toString() },
    },
  }
}

/** The ledger entries that end an escrow, one set for each tenant involved. */
function ledgerMovesOf(row: EscrowRow, state: EscrowEnd): { tenantId: string; entries: LedgerEntry[] }[] {
  const escrowAccount = accounts.escrow(row.wallet_id)
  const amount = row.amount_micro
  if (state !== 'released')
    return [{ tenantId: row.tenant_id, entries: transfer(escrowAccount, accounts.wallet(row.wallet_id), amount) }]
  if (row.to_wallet_id === null || row.to_tenant_id === null)
    return [{ tenantId: row.tenant_id, entries: transfer(escrowAccount, accounts.escrowRevenue, amount) }]
  const to = accounts.wallet(row.to_wallet_id)
  if (row.to_tenant_id === row.tenant_id)
    return [{ tenantId: row.tenant_id, entries: transfer(escrowAccount, to, amount) }]
  return [
    { tenantId: row.tenant_id, entries: transfer(escrowAccount, accounts.transfers, amount) },
    { tenantId: row.to_tenant_id, entries: transfer(accounts.transfers, to, amount) },
  ]
}

const eventData = (row: EscrowRow, state: EscrowEnd) => ({
  escrow_id: row.id,
  wallet_id: row.wallet_id,
  to_wallet_id: row.to_wallet_id,
  run_id: row.run_id,
  amount: row.amount_micro.toString(),
  status: state,
})

const toEscrowRecord = (row: EscrowRow) => ({
  escrow_id: row.id,
  wallet_id: row.wallet_id,
  to_wallet_id: row.to_wallet_id,
  run_id: row.run_id,
  status: row.state,
  amount: row.amount_micro.toString(),
  amount_usdc: usdcFromMicro(row.amount_micro),
  memo: row.memo,
  reason: row.reason,
  expires_at: row.expires_at.toISOString(),
  created_at: row.created_at.toISOString(),
  ended_at: row.ended_at?.toISOString() ?? null,
})
