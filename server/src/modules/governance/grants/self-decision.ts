import type { TenantCaller } from '../../../platform/auth-context.ts'
import type { Tx } from '../../../platform/db.ts'
import { forbidden } from '../../../platform/problem.ts'
import { identityOf, isOnlyControlKey } from './identity.ts'

/** Who a key is when it decides, and whether it may decide about what it asked for itself. */
export type Decider = {
  /** The ids of all keys that are the same identity. */
  identity: ReadonlySet<string>
  mayDecideForItself: boolean
  /** How many keys the tenant had when this was read: with another number it has to be read again. */
  keyCount: number
}

/** A tenant with a single key with scope `control` may decide for itself, unless it has turned that off. */
export async function readDecider(
  tx: Tx,
  tenant: Pick<TenantCaller, 'tenantId' | 'keyId'>,
  at: Date,
): Promise<Decider> {
  const { tenantId, keyId } = tenant
  const keys = await tx
    .selectFrom('api_keys')
    .select(['id', 'created_by', 'replaced_by', 'spender', 'scopes', 'expires_at', 'revoked_at'])
    .where('tenant_id', '=', tenantId)
    .execute()
  const { self_approval } = await tx
    .selectFrom('tenants')
    .select('self_approval')
    .where('id', '=', tenantId)
    .executeTakeFirstOrThrow()
  return {
    identity: identityOf(keyId, keys),
    mayDecideForItself: self_approval === 'single_key' && isOnlyControlKey(keyId, keys, at),
    keyCount: keys.length,
  }
}

/** Whether the decision is about what the decider asked for itself; throws 403 where it may not decide that. */
export function requireMayDecide(decider: Decider, askedBy: string): boolean {
  if (!decider.identity.has(askedBy)) return false
  if (!decider.mayDecideForItself) throw selfDecisionRefused()
  return true
}

export const selfDecisionRefused = () =>
  forbidden(
    'Whoever asked cannot decide. This key made the key that asked, was made by it, replaced it, or is bound to the same spender; a key of somebody else has to decide.',
  )
