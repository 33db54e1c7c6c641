import { forbidden, unauthorized } from './problem.ts'

export const keyScopes = ['read', 'run', 'control', 'mandate', 'keys', 'admin'] as const
export type KeyScope = (typeof keyScopes)[number]

/** An authenticated caller. Handlers do not distinguish between a key and a browser session. */
export type TenantCaller = {
  kind: 'tenant'
  tenantId: string
  keyId: string
  scopes: readonly KeyScope[]
  /** What the key is bound to; null where it is free. */
  spender: string | null
  team: string | null
  mandateIds: readonly string[] | null
  auth: 'key' | 'session'
}

export type Caller = { kind: 'guest' } | TenantCaller

export const guest: Caller = { kind: 'guest' }

/** How a request is authenticated; the tenants module implements it and `app.ts` passes it in. */
export type Authenticate = {
  /** Undefined when the key is unknown, revoked or expired. */
  key(apiKey: string): Promise<TenantCaller | undefined>
  /** Why a key that `key` does not find is refused, for the caller. */
  explainRefusal?(apiKey: string): string
  session?(request: {
    method: string
    headers: Record<string, string | string[] | undefined>
  }): Promise<TenantCaller | undefined>
  admin(adminKey: string): boolean
}

export function requireTenant(caller: Caller): TenantCaller {
  if (caller.kind !== 'tenant') throw unauthorized()
  return caller
}

export function requireScope(caller: Caller, ...scopes: KeyScope[]): TenantCaller {
  const tenant = requireTenant(caller)
  if (!scopes.some((scope) => tenant.scopes.includes(scope)))
    throw forbidden(`This key lacks the scope ${scopes.map((scope) => `'${scope}'`).join(' or ')}.`)
  return tenant
}
