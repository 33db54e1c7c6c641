import { createHash, randomBytes, randomUUID } from 'node:crypto'
import type { Caller } from '../../platform/auth-context.ts'
import { requireTenant } from '../../platform/auth-context.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Db } from '../../platform/db.ts'
import type { Keys } from '../../platform/keys.ts'
import { invalid, notConfigured, notFound, unavailable } from '../../platform/problem.ts'
import { consumeState, findAccountOwner, markRevoked, saveAccount, saveState } from './rh-auth.store.ts'

/** Exchanges an OAuth code for tokens. A port: `adapters/brokers/oauth-token-exchange.ts` implements it over HTTP. */
export type TokenExchange = (input: {
  code: string
  redirectUri: string
  clientId: string
  clientSecret: string
  codeVerifier: string | null
}) => Promise<{ ok: true; tokens: Record<string, unknown> } | { ok: false; reason: 'refused' | 'unreachable' }>

export type RhAuthSettings = {
  clientId: string | undefined
  clientSecret: string | undefined
  redirectUri: string | undefined
  authorizeUrl: string
  scope: string
  /** `scaffold` stores stub tokens when the exchange fails, and links no account that could trade. `strict` is for real accounts. */
  mode: 'scaffold' | 'strict'
}

export type RhAuthDeps = {
  db: Db
  clock: Clock
  keys: Pick<Keys, 'encrypt' | 'decrypt'> | undefined
  settings: RhAuthSettings
  exchange: TokenExchange
}

export type RhAuth = ReturnType<typeof createRhAuth>

const DOMAIN = 'rh'
const SCAFFOLD_TENANT = 'oauth-scaffold'
const STATE_LIFETIME_MS = 10 * 60_000
const COOKIE = 'countersign_rh_link'
const COOKIE_VALUE = /^[A-Za-z0-9_-]{43}$/

export function createRhAuth(deps: RhAuthDeps) {
  const { db, clock, settings } = deps
  const strict = settings.mode === 'strict'

  const requireConfiguration = () => {
    const { clientId, clientSecret, redirectUri } = settings
    if (!clientId || !clientSecret || !deps.keys) {
      throw notConfigured('The OAuth client id, client secret or encryption key is not configured.')
    }
    return { clientId, clientSecret, redirectUri: redirectUri ?? '', keys: deps.keys }
  }

  /** One cookie for each login, so that logins in two tabs do not end each other. `__Host-` keeps other subdomains from setting it. */
  const isHttps = settings.redirectUri?.startsWith('https:') ?? false
  const cookieName = (stateHash: string) => `${isHttps ? '__Host-' : ''}${COOKIE}_${stateHash.slice(0, 16)}`
  const setCookie = (stateHash: string, value: string, maxAge: number) =>
    `${cookieName(stateHash)}=${value}; Path=/; Max-Age=${maxAge}; HttpOnly; SameSite=Lax${isHttps ? '; Secure' : ''}`

  /** In strict mode: the login that this browser began, which ends here. A login begun elsewhere is left alone and its code unused. */
  const finishLogin = async (state: string | undefined, cookies: string | undefined) => {
    const stateHash = sha256Hex(state ?? '')
    const browser = readCookie(cookies, cookieName(stateHash))
    if (!browser)
      throw invalid('This login was not begun in this browser; begin it here with GET /api/rh/auth.', {
        field: 'state',
      })
    const savedState = await consumeState(db, stateHash, sha256Hex(browser), clock.now())
    if (!savedState) throw invalid('The state is unknown, used or expired; start again.', { field: 'state' })
    return { ...savedState, clearCookie: setCookie(stateHash, '', 0) }
  }

  return {
    strict,

    /**
     * GET /api/rh/auth: the address to redirect the user to, and in strict mode the cookie that marks this browser. Whoever
     * follows the address in another browser cannot finish the login, so it cannot be sent to somebody else.
     */
    async authorize(caller: Caller): Promise<{ location: string; cookie?: string }> {
      const { clientId, redirectUri, scope } = settings
      if (!clientId || !redirectUri) throw notConfigured('The OAuth client id or redirect address is not configured.')
      const url = new URL(settings.authorizeUrl)
      const appendParameters = (parameters: Record<string, string>) => {
        for (const [name, value] of Object.entries(parameters)) url.searchParams.append(name, value)
      }
      appendParameters({ client_id: clientId, redirect_uri: redirectUri, scope })
      if (!strict) {
        appendParameters({ state: randomUUID() })
        return { location: url.href }
      }
      const { keys } = requireConfiguration()
      const { tenantId } = requireTenant(caller)
      const state = randomBytes(32).toString('base64url')
      const verifier = randomBytes(32).toString('base64url')
      const expiresAt = new Date(clock.now().getTime() + STATE_LIFETIME_MS)
      const browser = randomBytes(32).toString('base64url')
      const stateHash = sha256Hex(state)
      const codeVerifier = keys.encrypt(verifier)
      const browserHash = sha256Hex(browser)
      await saveState(db, { stateHash, browserHash, tenantId, codeVerifier, expiresAt }, clock.now())
      appendParameters({
        response_type: 'code',
        state,
        code_challenge: sha256Base64Url(verifier),
        code_challenge_method: 'S256',
      })
      return { location: url.href, cookie: setCookie(stateHash, browser, STATE_LIFETIME_MS / 1000) }
    },

    /** GET /api/rh/auth/callback: the broker sends the user back with a code. In strict mode `state` identifies the tenant. */
    async callback(code: string | undefined, state: string | undefined, cookies: string | undefined) {
      if (!code) throw invalid('The query lacks a code.', { field: 'code' })
      const { clientId, clientSecret, redirectUri, keys } = requireConfiguration()
      const login = strict ? await finishLogin(state, cookies) : undefined
      const codeVerifier = login ? keys.decrypt(login.codeVerifier) : null
      const exchangeResult = await deps.exchange({ code, redirectUri, clientId, clientSecret, codeVerifier })
      if (strict && !exchangeResult.ok) {
        if (exchangeResult.reason === 'refused')
          throw invalid('The broker does not accept this code.', { field: 'code' })
        throw unavailable('The broker cannot be reached to exchange the code.')
      }
      await saveAccount(db, {
        accountId: deriveAccountId(code),
        tenantId: login?.tenantId ?? SCAFFOLD_TENANT,
        tokens: keys.encrypt(JSON.stringify(exchangeResult.ok ? exchangeResult.tokens : createStubTokens(code))),
        metadata: { mode: settings.mode, stub: !exchangeResult.ok },
        at: clock.now(),
      })
      const body = {
        domain: DOMAIN,
        oauth_ready: true,
        token_stored: true,
        account_stub_created: true,
        encrypted: true,
      }
      return { body, cookie: login?.clearCookie }
    },

    /** POST /api/rh/auth/revoke */
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

/** The account id is derived from the code; the code cannot be derived from it. */
export const deriveAccountId = (code: string) => `rh_${sha256Hex(code).slice(0, 32)}`

/** Marked as stubs, so that no code can mistake them for usable tokens. */
const createStubTokens = (code: string) => ({
  access_token: `stub_${sha256Hex(`access/${code}`).slice(0, 32)}`,
  refresh_token: `stub_${sha256Hex(`refresh/${code}`).slice(0, 32)}`,
  token_type: 'stub',
  stub: true,
})

const readCookie = (cookies: string | undefined, name: string): string | undefined => {
  const value = (cookies ?? '')
    .split(';')
    .map((part) => part.trim())
    .find((part) => part.startsWith(`${name}=`))
    ?.slice(name.length + 1)
  return value !== undefined && COOKIE_VALUE.test(value) ? value : undefined
}

const sha256Hex = (text: string) => createHash('sha256').update(text).digest('hex')

const sha256Base64Url = (text: string) => createHash('sha256').update(text).digest('base64url')
