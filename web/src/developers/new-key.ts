import type { ApiRequest } from '@countersign/sdk'

export type NewKey = ApiRequest<'/api/keys', 'post'>['body']
export type Scope = NewKey['scopes'][number]

/** What each scope lets a key do. */
export const scopeMeanings: Record<Scope, string> = {
  read: 'sees runs, budgets, audit and everything else of the organisation',
  run: 'runs tasks, pays and trades',
  control: 'decides approvals; changes policies, budgets, webhooks and settings; moves escrow',
  mandate: 'issues mandates and overrides denials',
  keys: 'makes, rotates and revokes keys',
  admin: 'overrides denials, like mandate; only the operator gives it to a first key',
}

export const scopes = Object.keys(scopeMeanings) as Scope[]

/** A field left empty is left out, so that the new key gets the bonds of its maker. */
export function toNewKey(form: FormData): NewKey {
  const readText = (name: string) => String(form.get(name) ?? '').trim()
  const mandateIds = readText('mandate_ids')
    .split(/[\s,]+/)
    .filter((id) => id !== '')
  const expiresAt = readText('expires_at')
  return {
    name: readText('name'),
    scopes: scopes.filter((scope) => form.getAll('scopes').includes(scope)),
    ...(readText('spender') && { spender: readText('spender') }),
    ...(readText('team') && { team: readText('team') }),
    ...(mandateIds.length > 0 && { mandate_ids: [...new Set(mandateIds)] }),
    ...(expiresAt && { expires_at: new Date(expiresAt).toISOString() }),
  }
}
