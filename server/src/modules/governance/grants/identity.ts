import { type KeyOrigin, readLineage } from '../../tenants/key-lineage.ts'

/** What the identity of a key is judged by. A revoked or expired key keeps its identity: what it asked for stays asked. */
export type IdentityKey = KeyOrigin & { spender: string | null }

/**
 * Two keys are the same identity when one replaced the other, one made the other (directly or through others), or both
 * are bound to the same spender. Two keys made by a third are different: otherwise a tenant could not separate duties.
 */
export const sameIdentity = (keyA: string, keyB: string, keys: readonly IdentityKey[]): boolean =>
  identityOf(keyA, keys).has(keyB)

/** The ids of all keys that are the same identity as this one, itself included. */
export function identityOf(keyId: string, keys: readonly IdentityKey[]): Set<string> {
  const lineage = readLineage(keys)
  const rotations = lineage.rotationsOf(keyId)
  const spender = keys.find((key) => rotations.has(key.id) && key.spender !== null)?.spender
  const boundAlike = spender ? keys.filter((key) => key.spender === spender).map((key) => key.id) : []
  return new Set([...rotations, ...lineage.makersOf(keyId), ...lineage.keysMadeBy(keyId), ...boundAlike])
}

/** What decides whether a key may act now. */
export type ActiveKey = KeyOrigin & { scopes: readonly string[]; expires_at: Date | null; revoked_at: Date | null }

/** Whether this is the tenant's only active key with scope `control`; the overlap of its own rotation does not count. */
export function isOnlyControlKey(keyId: string, keys: readonly ActiveKey[], now: Date): boolean {
  const controlKeys = keys.filter(
    (key) => key.scopes.includes('control') && !key.revoked_at && !(key.expires_at && key.expires_at <= now),
  )
  const rotations = readLineage(keys).rotationsOf(keyId)
  return controlKeys.some((key) => key.id === keyId) && controlKeys.every((key) => rotations.has(key.id))
}
