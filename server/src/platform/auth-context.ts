import { forbidden, unauthorized } from './problem.ts'

export const keyScopes = ['read', 'run', 'control', 'mandate', 'admin'] as const
export type KeyScope = (typeof keyScopes)[number]

/** Who asks. A session and a key are the same caller to every handler. */
export type TenantCaller = {
  kind: 'tenant'
  tenantId: string
  keyId: string
  scopes: readonly KeyScope[]
  auth: 'key' | 'session'
}

export type Caller = { kind: 'guest' } | TenantCaller

export const guest: Caller = { kind: 'guest' }

/** How requests are told apart; the tenants module provides it, `app.ts` passes it in. */
export type Authenticate = {
  /** Undefined when the key is unknown, revoked or expired. */
  key(apiKey: string): Promise<TenantCaller | undefined>
  session?(request: {
    method: string
    headers: Record<string, string | string[] | undefined>
  }): Promise<TenantCaller | undefined>
  admin(adminKey: string): boolean
}

export function tenantOf(caller: Caller): TenantCaller {
  if (caller.kind !== 'tenant') throw unauthorized()
  return caller
}

export function needScope(caller: Caller, ...scopes: KeyScope[]): TenantCaller {
  const tenant = tenantOf(caller)
  if (!scopes.some((scope) => tenant.scopes.includes(scope)))
    throw forbidden(`This key lacks the scope ${scopes.map((scope) => `'${scope}'`).join(' or ')}.`)
  return tenant
}
