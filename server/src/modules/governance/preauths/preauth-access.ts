import type { TenantCaller } from '../../../platform/auth-context.ts'
import type { Tx } from '../../../platform/db.ts'
import type { PreauthRow } from '../grants/grants.store.ts'
import { readIdentity } from '../grants/self-decision.ts'

/**
 * Whether a key may read the token of a pre-authorisation and close it: a key with `control`, one of the identity that
 * opened it, or one that is bound to its spender.
 */
export async function readPreauthAccess(tx: Tx, tenant: TenantCaller): Promise<(row: PreauthRow) => boolean> {
  if (tenant.scopes.includes('control')) return () => true
  const identity = await readIdentity(tx, tenant)
  return ({ asked_by, spender, agent_id }) =>
    identity.has(asked_by) || (tenant.spender !== null && tenant.spender === (spender ?? agent_id))
}
