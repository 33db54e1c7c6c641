import type { Me } from './sign-in.ts'

/** Whether the API key behind the session may make changes. */
export const mayControl = (me: Pick<Me, 'scopes'>): boolean =>
  me.scopes.includes('control') || me.scopes.includes('admin')

/** Whether it may make and revoke mandates. */
export const mayMandate = (me: Pick<Me, 'scopes'>): boolean =>
  me.scopes.includes('mandate') || me.scopes.includes('admin')
