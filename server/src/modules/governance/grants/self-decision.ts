import type { TenantCaller } from '../../../platform/auth-context.ts'
import type { Tx } from '../../../platform/db.ts'
import { forbidden } from '../../../platform/problem.ts'
import { type ActiveKey, type IdentityKey, identityOf, isOnlyControlKey } from './identity.ts'

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
  const keys = await readKeys(tx, tenantId)
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

const readKeys = (tx: Tx, tenantId: string): Promise<(IdentityKey & ActiveKey)[]> =>
  tx
    .selectFrom('api_keys')
    .select(['id', 'created_by', 'replaced_by', 'spender', 'scopes', 'expires_at', 'revoked_at'])
    .where('tenant_id', '=', tenantId)
    .execute()

/** The ids of all keys that are the same identity as the caller's. */
export const readIdentity = async (
  tx: Tx,
  { tenantId, keyId }: Pick<TenantCaller, 'tenantId' | 'keyId'>,
): Promise<ReadonlySet<string>> => identityOf(keyId, await readKeys(tx, tenantId))

/** An approval or an override is used by the identity that asked for the payment, and by no other; throws 403. */
export async function requireAsker(
  tx: Tx,
  tenant: Pick<TenantCaller, 'tenantId' | 'keyId'>,
  grant: 'approval' | 'override',
  askedBy: string,
): Promise<void> {
  if (tenant.keyId === askedBy || (await readIdentity(tx, tenant)).has(askedBy)) return
  throw forbidden(
    grant === 'approval'
      ? 'This approval is for whoever asked for it, and this key is another identity. Send the request without approval_id to ask yourself.'
      : 'This override is for whoever was denied, and this key is another identity.',
  )
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

/** The key of a stored request, or its rotated successor, with what it may do now; undefined when none is active. */
export type FindCaller = (tenantId: string, keyId: string) => Promise<TenantCaller | undefined>

export const isAskerActive = async (findCaller: FindCaller, tenantId: string, keyId: string): Promise<boolean> =>
  (await findCaller(tenantId, keyId))?.scopes.includes('run') ?? false

export const ASKER_INACTIVE = 'The key that made the request is not active any more.'
