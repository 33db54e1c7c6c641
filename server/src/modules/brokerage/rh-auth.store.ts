import { sql } from 'kysely'
import type { Tx } from '../../platform/db.ts'

export async function saveAccount(
  tx: Tx,
  account: { accountId: string; tenantId: string; tokens: string; metadata: Record<string, unknown>; at: Date },
): Promise<void> {
  // A repeated code replaces the tokens and nothing else: a revoked account stays revoked and keeps its tenant.
  await sql`
    insert into rh_oauth_accounts (rh_account_id, tenant_id, tokens, metadata, created_at, updated_at)
    values (${account.accountId}, ${account.tenantId}, ${account.tokens}, ${JSON.stringify(account.metadata)}::jsonb, ${account.at}, ${account.at})
    on conflict (rh_account_id) do update set tokens = excluded.tokens, updated_at = excluded.updated_at
    where rh_oauth_accounts.tenant_id = excluded.tenant_id
  `.execute(tx)
}

export async function findAccountOwner(tx: Tx, accountId: string): Promise<string | undefined> {
  const { rows } = await sql<{ tenant_id: string }>`
    select tenant_id from rh_oauth_accounts where rh_account_id = ${accountId}
  `.execute(tx)
  return rows[0]?.tenant_id
}

export async function markRevoked(tx: Tx, accountId: string, at: Date): Promise<void> {
  await sql`
    update rh_oauth_accounts
    set metadata = metadata || jsonb_build_object('revoked_at', ${at.toISOString()}::text), updated_at = ${at}
    where rh_account_id = ${accountId} and not metadata ? 'revoked_at'
  `.execute(tx)
}

export async function saveState(
  tx: Tx,
  state: { stateHash: string; browserHash: string; tenantId: string; codeVerifier: string; expiresAt: Date },
  now: Date,
): Promise<void> {
  await sql`delete from rh_oauth_states where expires_at <= ${now}`.execute(tx)
  await sql`
    insert into rh_oauth_states (state_hash, browser_hash, tenant_id, code_verifier, expires_at)
    values (${state.stateHash}, ${state.browserHash}, ${state.tenantId}, ${state.codeVerifier}, ${state.expiresAt})
  `.execute(tx)
}

/** A state works once, in the browser that began: its row is deleted with the first use there, and by nobody else. */
export async function consumeState(tx: Tx, stateHash: string, browserHash: string, now: Date) {
  const { rows } = await sql<{ tenant_id: string; code_verifier: string }>`
    delete from rh_oauth_states
    where state_hash = ${stateHash} and browser_hash = ${browserHash} and expires_at > ${now}
    returning tenant_id, code_verifier
  `.execute(tx)
  return rows[0] && { tenantId: rows[0].tenant_id, codeVerifier: rows[0].code_verifier }
}
