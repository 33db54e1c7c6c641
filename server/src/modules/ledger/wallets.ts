import type { TenantCaller } from '../../platform/auth-context.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Db } from '../../platform/db.ts'
import { groupReads } from '../../platform/group-reads.ts'
import type { Idempotency } from '../../platform/idempotency.ts'
import type { Ids } from '../../platform/ids.ts'
import { usdcFromMicro } from '../../platform/money.ts'
import type { Outbox } from '../../platform/outbox.ts'
import { toPage } from '../../platform/paging.ts'
import { conflict, notFound } from '../../platform/problem.ts'
import {
  countWallets,
  findWallet,
  insertWallet,
  listWallets,
  lock,
  readWalletBalances,
  type WalletBalance,
  type WalletRow,
} from './wallets.store.ts'

export type WalletsDeps = {
  db: Db
  clock: Clock
  ids: Ids
  idempotency: Idempotency
  audit: Outbox['audit']
  /** The address that holds the USDC of all wallets; a wallet is a claim on it. */
  custody: { address: string; network: string; asset: string }
}

export type Wallets = ReturnType<typeof createWallets>

const MAX_WALLETS = 100

export function createWallets(deps: WalletsDeps) {
  const { db } = deps
  const readBalance = groupReads((ids: readonly string[]) => readWalletBalances(db, ids))

  /** Another tenant's wallet is `not_found`, like one that does not exist. */
  const findOwned = async (tenantId: string, id: string): Promise<WalletRow> => {
    const row = await findWallet(db, id)
    if (!row || row.tenant_id !== tenantId) throw notFound('wallet')
    return row
  }

  const toWalletRecord = (row: WalletRow) => {
    const balance = {
      available: row.available_micro,
      pending: row.incoming_micro,
      escrowed: row.escrowed_micro,
      reserved: row.reserved_micro,
    }
    const mapBalances = <T>(format: (micro: bigint) => T) =>
      Object.fromEntries(Object.entries(balance).map(([name, micro]) => [name, format(micro)]))
    return {
      wallet_id: row.id,
      name: row.name,
      ...deps.custody,
      balance: mapBalances((micro) => micro.toString()),
      balance_usdc: mapBalances(usdcFromMicro),
      created_at: row.created_at.toISOString(),
    }
  }

  return {
    /** The balance of a wallet of this tenant; runs that ask at the same time share one query. */
    async findBalance(tenantId: string, id: string): Promise<WalletBalance> {
      const row = await readBalance(id)
      if (!row || row.tenant_id !== tenantId) throw notFound('wallet')
      return row
    },

    get: async (caller: TenantCaller, id: string) => toWalletRecord(await findOwned(caller.tenantId, id)),

    async list(caller: TenantCaller, query: { limit?: number; cursor?: string }) {
      const limit = query.limit ?? 20
      const rows = await listWallets(db, caller.tenantId, { limit: limit + 1, cursor: query.cursor })
      const { rows: wallets, ...paging } = toPage(rows, limit)
      return { wallets: wallets.map(toWalletRecord), ...paging }
    },

    create: (caller: TenantCaller, key: string | undefined, body: { name?: string }) =>
      deps.idempotency.once(
        { scope: `tenant:${caller.tenantId}`, route: 'POST /api/wallets', key, body },
        async (tx) => {
          await lock(tx, [`wallets:${caller.tenantId}`])
          if ((await countWallets(tx, caller.tenantId)) >= MAX_WALLETS)
            throw conflict(`A tenant has at most ${MAX_WALLETS} wallets.`)
          const at = deps.clock.now()
          const id = deps.ids.next('wal')
          const row = await insertWallet(tx, {
            id,
            tenant_id: caller.tenantId,
            name: body.name ?? 'Wallet',
            created_at: at,
          })
          await deps.audit(tx, {
            tenantId: caller.tenantId,
            type: 'wallet.created',
            actor: caller.keyId,
            subject: id,
            at,
            data: { name: row.name },
          })
          return { status: 201, body: toWalletRecord(row) }
        },
      ),
  }
}
