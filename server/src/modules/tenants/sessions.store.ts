import { type Insertable, sql } from 'kysely'
import type { Db, Tx } from '../../platform/db.ts'
import type { Sessions } from '../../platform/generated/db.ts'
import { type KeyWithTenant, notifyKeyChange } from './tenants.store.ts'

export async function insertSession(tx: Tx, row: Insertable<Sessions>) {
  await tx.insertInto('sessions').values(row).execute()
}

/** The key of a session; it expires with the key or with the session, whichever is earlier. */
export async function findKeyBySession(tx: Tx, hash: string): Promise<KeyWithTenant | undefined> {
  return tx
    .selectFrom('sessions')
    .innerJoin('api_keys', 'api_keys.id', 'sessions.key_id')
    .innerJoin('tenants', 'tenants.id', 'api_keys.tenant_id')
    .select([
      'api_keys.id',
      'api_keys.tenant_id',
      'api_keys.scopes',
      'api_keys.spender',
      'api_keys.team',
      'api_keys.mandate_ids',
      'api_keys.revoked_at',
      'api_keys.last_used_at',
      'tenants.status as tenant_status',
      sql<Date>`least(api_keys.expires_at, sessions.expires_at)`.as('expires_at'),
    ])
    .where('sessions.hash', '=', hash)
    .executeTakeFirst()
}

export async function deleteSession(db: Db, hash: string, keyId: string) {
  await db.transaction().execute(async (tx) => {
    await tx.deleteFrom('sessions').where('hash', '=', hash).execute()
    await notifyKeyChange(tx, keyId)
  })
}

export async function deleteExpiredSessions(tx: Tx, now: Date, limit: number): Promise<number> {
  const { rows } = await sql`
    delete from sessions where id in (select id from sessions where expires_at <= ${now} order by expires_at limit ${limit})
    returning id
  `.execute(tx)
  return rows.length
}
