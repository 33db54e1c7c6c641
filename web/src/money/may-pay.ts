import type { Me } from '../account/sign-in.ts'

/** Whether the key behind the session may make paid calls. */
export const mayPay = (me: Pick<Me, 'scopes'>): boolean => me.scopes.includes('run') || me.scopes.includes('admin')
