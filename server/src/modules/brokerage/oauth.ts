import { createHash, randomBytes, randomUUID } from 'node:crypto'
import type { Caller } from '../../platform/auth-context.ts'
import { requireTenant } from '../../platform/auth-context.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Db } from '../../platform/db.ts'
import type { Keys } from '../../platform/keys.ts'
import { invalid, notConfigured, notFound, unavailable } from '../../platform/problem.ts'
import { consumeState, findAccountOwner, keepAccount, keepState, markRevoked } from './oauth.store.ts'

/** Linking a broker account. The token exchange is a port: the outside world is an adapter's business. */
export type TokenExchange = (input: {
  code: string
  redirectUri: string
  clientId: string
  clientSecret: string
  codeVerifier: string | null
}) => Promise<{ ok: true; tokens: Record<string, unknown> } | { ok: false; reason: 'refused' | 'unreachable' }>

export type OauthSettings = {
  clientId: string | undefined
  clientSecret: string | undefined
  redirectUri: string | undefined
  authorizeUrl: string
  scope: string
  /** `scaffold` is the interface as written: it links nothing that could ever trade. `strict` is for real accounts. */
  mode: 'scaffold' | 'strict'
}

export type OauthDeps = {
  db: Db
  clock: Clock
  keys: Pick<Keys, 'encrypt' | 'decrypt'> | undefined
  settings: OauthSettings
  exchange: TokenExchange
}

export type Oauth = ReturnType<typeof createOauth>

const DOMAIN = 'rh'
const SCAFFOLD_TENANT = 'oauth-scaffold'
const STATE_LIFE_MS = 10 * 60_000

export function createOauth(deps: OauthDeps) {
  const { db, clock, settings } = deps
  const strict = settings.mode === 'strict'

  const configured = () => {
    const { clientId, clientSecret, redirectUri } = settings
    if (!clientId || !clientSecret || !deps.keys) {
      throw notConfigured('The OAuth client id, client secret or encryption key is not configured.')
    }
    return { clientId, clientSecret, redirectUri: redirectUri ?? '', keys: deps.keys }
  }

  return {
    strict,

    /** The address to send the user to. */
    async authorize(caller: Caller): Promise<string> {
      const { clientId, redirectUri, scope } = settings
      if (!clientId || !redirectUri) throw notConfigured('The OAuth client id or redirect address is not configured.')
      const url = new URL(settings.authorizeUrl)
      const add = (parameters: Record<string, string>) => {
        for (const [name, value] of Object.entries(parameters)) url.searchParams.append(name, value)
      }
      add({ client_id: clientId, redirect_uri: redirectUri, scope })
      if (!strict) {
        add({ state: randomUUID() })
        return url.href
      }
      const { keys } = configured()
      const { tenantId } = requireTenant(caller)
      const state = randomBytes(32).toString('base64url')
      const verifier = randomBytes(32).toString('base64url')
      const expiresAt = new Date(clock.now().getTime() + STATE_LIFE_MS)
      const codeVerifier = keys.encrypt(verifier)
      await keepState(db, { stateHash: hashOf(state), tenantId, codeVerifier, expiresAt }, clock.now())
      add({ response_type: 'code', state, code_challenge: base64url(verifier), code_challenge_method: 'S256' })
      return url.href
    },

    /** The broker sends the user back with a code. In strict mode the state says whose account this is. */
    async callback(code: string | undefined, state: string | undefined) {
      if (!code) throw invalid('The query lacks a code.', { field: 'code' })
      const { clientId, clientSecret, redirectUri, keys } = configured()
      const bound = strict ? await consumeState(db, hashOf(state ?? ''), clock.now()) : undefined
      if (strict && !bound) throw invalid('The state is unknown, used or expired; start again.', { field: 'state' })
      const codeVerifier = bound ? keys.decrypt(bound.codeVerifier) : null
      const exchanged = await deps.exchange({ code, redirectUri, clientId, clientSecret, codeVerifier })
      if (strict && !exchanged.ok) {
        if (exchanged.reason === 'refused') throw invalid('The broker does not accept this code.', { field: 'code' })
        throw unavailable('The broker cannot be reached to exchange the code.')
      }
      await keepAccount(db, {
        accountId: accountIdOf(code),
        tenantId: bound?.tenantId ?? SCAFFOLD_TENANT,
        tokens: keys.encrypt(JSON.stringify(exchanged.ok ? exchanged.tokens : stubTokens(code))),
        metadata: { mode: settings.mode, stub: !exchanged.ok },
        at: clock.now(),
      })
      return { domain: DOMAIN, oauth_ready: true, token_stored: true, account_stub_created: true, encrypted: true }
    },

    async revoke(caller: Caller, accountId: string | undefined) {
      if (strict) {
        const { tenantId } = requireTenant(caller)
        const owner = accountId === undefined ? undefined : await findAccountOwner(db, accountId)
        if (owner !== tenantId) throw notFound('account')
      }
      if (accountId !== undefined) await markRevoked(db, accountId, clock.now())
      return { domain: DOMAIN, revoked: true as const, rh_account_id: accountId ?? null }
    },
  }
}

/** The synthetic account id: whoever knows the code can derive it, nobody can derive the code from it. */
export const accountIdOf = (code: string) => `rh_${hashOf(code).slice(0, 32)}`

/** Marked as what they are, so that nothing can take them for a right to trade. */
const stubTokens = (code: string) => ({
  access_token: `stub_${hashOf(`access/${code}`).slice(0, 32)}`,
  refresh_token: `stub_${hashOf(`refresh/${code}`).slice(0, 32)}`,
  token_type: 'stub',
  stub: true,
})

const hashOf = (text: string) => createHash('sha256').update(text).digest('hex')

const base64url = (text: string) => createHash('sha256').update(text).digest('base64url')
