import { type Selectable, sql } from 'kysely'
import type { KeyScope } from '../../platform/auth-context.ts'
import type { Tx } from '../../platform/db.ts'
import type { ApiKeys, Tenants as TenantsTable } from '../../platform/generated/db.ts'

export type TenantRow = Selectable<TenantsTable>
export type KeyRow = Selectable<ApiKeys>

/** NOTIFY channel for changed keys and tenants; the payload is the id. */
export const KEYS_CHANNEL = 'tenants'

export const notifyKeyChange = (tx: Tx, id: string) => sql`select pg_notify(${KEYS_CHANNEL}, ${id})`.execute(tx)

export async function insertTenant(
  tx: Tx,
  row: Omit<TenantRow, 'billing_customer_id' | 'self_approval'>,
): Promise<TenantRow> {
  return tx.insertInto('tenants').values(row).returningAll().executeTakeFirstOrThrow()
}

export async function readTenant(tx: Tx, id: string): Promise<TenantRow | undefined> {
  return tx.selectFrom('tenants').selectAll().where('id', '=', id).executeTakeFirst()
}

/** Locks the tenant's row until the transaction ends, so that concurrent requests cannot exceed a per-tenant limit. */
export async function lockTenant(tx: Tx, id: string): Promise<TenantRow | undefined> {
  return tx.selectFrom('tenants').selectAll().where('id', '=', id).forUpdate().executeTakeFirst()
}

export type TenantFilter = { plan?: string; status?: string; cursor?: string; limit: number }

export async function listTenants(tx: Tx, filter: TenantFilter): Promise<TenantRow[]> {
  let query = tx
    .selectFrom('tenants')
    .selectAll()
    .orderBy('id', 'desc')
    .limit(filter.limit + 1)
  if (filter.plan) query = query.where('plan', '=', filter.plan)
  if (filter.status) query = query.where('status', '=', filter.status)
  if (filter.cursor) query = query.where('id', '<', filter.cursor)
  return query.execute()
}

export type SelfApproval = 'single_key' | 'never'
export type TenantChange = Partial<
  Pick<TenantRow, 'org_name' | 'email' | 'use_case' | 'plan' | 'status' | 'billing_customer_id'> & {
    self_approval: SelfApproval
  }
>

export async function changeTenant(tx: Tx, id: string, change: TenantChange, at: Date): Promise<TenantRow | undefined> {
  return tx
    .updateTable('tenants')
    .set({ ...change, updated_at: at })
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirst()
}

export async function insertKey(
  tx: Tx,
  row: Omit<KeyRow, 'revoked_at' | 'replaced_by' | 'last_used_at' | 'scopes'> & { scopes: readonly KeyScope[] },
): Promise<KeyRow> {
  return tx
    .insertInto('api_keys')
    .values({ ...row, scopes: [...row.scopes] })
    .returningAll()
    .executeTakeFirstOrThrow()
}

export async function lockKey(tx: Tx, id: string): Promise<KeyRow | undefined> {
  return tx.selectFrom('api_keys').selectAll().where('id', '=', id).forUpdate().executeTakeFirst()
}

export const findKey = (tx: Tx, tenantId: string, id: string): Promise<KeyRow | undefined> =>
  tx.selectFrom('api_keys').selectAll().where('id', '=', id).where('tenant_id', '=', tenantId).executeTakeFirst()

/** All keys that the tenant ever had. */
export const readKeys = (tx: Tx, tenantId: string): Promise<KeyRow[]> =>
  tx.selectFrom('api_keys').selectAll().where('tenant_id', '=', tenantId).execute()

export async function listKeys(tx: Tx, tenantId: string, page: { cursor?: string; limit: number }): Promise<KeyRow[]> {
  let query = tx
    .selectFrom('api_keys')
    .selectAll()
    .where('tenant_id', '=', tenantId)
    .orderBy('id', 'desc')
    .limit(page.limit + 1)
  if (page.cursor) query = query.where('id', '<', page.cursor)
  return query.execute()
}

export async function countLiveKeys(tx: Tx, tenantId: string, at: Date): Promise<number> {
  const { count } = await tx
    .selectFrom('api_keys')
    .select((on) => on.fn.countAll<bigint>().as('count'))
    .where('tenant_id', '=', tenantId)
    .where('revoked_at', 'is', null)
    .where((on) => on.or([on('expires_at', 'is', null), on('expires_at', '>', at)]))
    .executeTakeFirstOrThrow()
  return Number(count)
}

export async function countKeysSince(tx: Tx, tenantId: string, since: Date): Promise<number> {
  const { count } = await tx
    .selectFrom('api_keys')
    .select((on) => on.fn.countAll<bigint>().as('count'))
    .where('tenant_id', '=', tenantId)
    .where('created_at', '>', since)
    .executeTakeFirstOrThrow()
  return Number(count)
}

export async function changeKey(
  tx: Tx,
  id: string,
  change: Partial<Pick<KeyRow, 'revoked_at' | 'expires_at' | 'replaced_by'>>,
): Promise<KeyRow> {
  return tx.updateTable('api_keys').set(change).where('id', '=', id).returningAll().executeTakeFirstOrThrow()
}

export type KeyWithTenant = Pick<
  KeyRow,
  'id' | 'tenant_id' | 'scopes' | 'spender' | 'team' | 'mandate_ids' | 'expires_at' | 'revoked_at' | 'last_used_at'
> & {
  tenant_status: string
}

export async function findKeyByHash(tx: Tx, hash: string): Promise<KeyWithTenant | undefined> {
  return tx
    .selectFrom('api_keys')
    .innerJoin('tenants', 'tenants.id', 'api_keys.tenant_id')
    .select([
      'api_keys.id',
      'api_keys.tenant_id',
      'api_keys.scopes',
      'api_keys.spender',
      'api_keys.team',
      'api_keys.mandate_ids',
      'api_keys.expires_at',
      'api_keys.revoked_at',
      'api_keys.last_used_at',
      'tenants.status as tenant_status',
    ])
    .where('api_keys.hash', '=', hash)
    .executeTakeFirst()
}

/** The key of this id, or the newest successor that its rotations have made. */
export async function findKeyOrSuccessor(tx: Tx, tenantId: string, keyId: string): Promise<KeyWithTenant | undefined> {
  const { rows } = await sql<KeyWithTenant>`
    with recursive lineage as (
      select api_keys.*, 1 as step from api_keys where id = ${keyId} and tenant_id = ${tenantId}
      union all
      select next.*, lineage.step + 1 from api_keys next join lineage on next.id = lineage.replaced_by where lineage.step < 1000
    )
    select lineage.id, lineage.tenant_id, lineage.scopes, lineage.spender, lineage.team, lineage.mandate_ids, lineage.expires_at,
           lineage.revoked_at, lineage.last_used_at, tenants.status as tenant_status
    from lineage join tenants on tenants.id = lineage.tenant_id order by lineage.step desc limit 1`.execute(tx)
  return rows[0]
}

/** Another process may have recorded a newer use meanwhile; the newest one stays. */
export async function recordKeyUse(tx: Tx, id: string, at: Date) {
  await tx
    .updateTable('api_keys')
    .set({ last_used_at: at })
    .where('id', '=', id)
    .where((on) => on.or([on('last_used_at', 'is', null), on('last_used_at', '<', at)]))
    .execute()
}

export async function readKeyPrefix(tx: Tx, keyId: string): Promise<string | undefined> {
  const row = await tx.selectFrom('api_keys').select('prefix').where('id', '=', keyId).executeTakeFirst()
  return row?.prefix
}
