import { randomBytes, timingSafeEqual } from 'node:crypto'
import { requireTenant, type TenantCaller } from '../../platform/auth-context.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Db } from '../../platform/db.ts'
import type { Ids } from '../../platform/ids.ts'
import type { Keys } from '../../platform/keys.ts'
import { forbidden, notFound } from '../../platform/problem.ts'
import type { KnownKeys } from './known-keys.ts'
import { deleteExpiredSessions, deleteSession, findKeyBySession, insertSession } from './sessions.store.ts'

/**
 * A session is a key in use from a browser. The browser holds a cookie that scripts cannot read, and a token that only
 * a page of ours could have read: a write needs both, and must come from our own origin.
 */
export const SESSION_COOKIE = 'countersign_session'
const LIFE_SECONDS = 12 * 60 * 60
const COOKIE_SHAPE = /^[A-Za-z0-9_-]{43}$/
const readers = ['GET', 'HEAD', 'OPTIONS']
const SWEEP_AT_MOST = 1_000

export type SessionRequest = { method: string; headers: Record<string, string | string[] | undefined> }

export type Sessions = ReturnType<typeof createSessions>

export type SessionsDeps = {
  db: Db
  clock: Clock
  ids: Ids
  keys: Pick<Keys, 'fingerprint'>
  known: KnownKeys
  publicUrl: () => string
}

export function createSessions(deps: SessionsDeps) {
  const hashOf = (cookie: string) => deps.keys.fingerprint(`session:${cookie}`)
  // Derived from the cookie, so that a page can be given its token again without the service keeping it.
  const csrfOf = (cookie: string) => deps.keys.fingerprint(`session-csrf:${cookie}`)

  const checkOrigin = ({ headers }: SessionRequest) => {
    const origin = headers.origin
    const ours = [new URL(deps.publicUrl()).origin, `http://${headers.host}`, `https://${headers.host}`]
    const foreign = origin !== undefined && !ours.includes(String(origin))
    if (foreign || headers['sec-fetch-site'] === 'cross-site')
      throw forbidden('A session may be used only from its own origin.')
  }

  const setCookie = (value: string, maxAge: number) => {
    const secure = deps.publicUrl().startsWith('https:') ? '; Secure' : ''
    return `${SESSION_COOKIE}=${value}; Path=/; Max-Age=${maxAge}; HttpOnly; SameSite=Lax${secure}`
  }

  return {
    checkOrigin,

    async open(caller: TenantCaller) {
      const cookie = randomBytes(32).toString('base64url')
      const now = deps.clock.now()
      const expiresAt = new Date(now.getTime() + LIFE_SECONDS * 1000)
      await insertSession(deps.db, {
        id: deps.ids.next('ses'),
        tenant_id: caller.tenantId,
        key_id: caller.keyId,
        hash: hashOf(cookie),
        created_at: now,
        expires_at: expiresAt,
      })
      return {
        setCookie: setCookie(cookie, LIFE_SECONDS),
        body: { csrf_token: csrfOf(cookie), tenant_id: caller.tenantId, expires_at: expiresAt.toISOString() },
      }
    },

    /** Undefined without a live session; a write without its token or from elsewhere is refused, not treated as a guest's. */
    async read(request: SessionRequest): Promise<TenantCaller | undefined> {
      const cookie = cookieOf(request)
      if (cookie === undefined) return undefined
      const caller = await deps.known.callerBy(hashOf(cookie), 'session', (hash) => findKeyBySession(deps.db, hash))
      if (!caller || readers.includes(request.method)) return caller
      checkOrigin(request)
      if (!same(String(request.headers['x-csrf-token'] ?? ''), csrfOf(cookie)))
        throw forbidden('A write with a session needs its x-csrf-token.')
      return caller
    },

    /** For a page that was loaded again: the token of the session it is in. */
    csrfToken(request: SessionRequest, caller: TenantCaller) {
      const cookie = cookieOf(request)
      if (requireTenant(caller).auth !== 'session' || cookie === undefined) throw notFound('session')
      return { csrf_token: csrfOf(cookie), tenant_id: caller.tenantId }
    },

    async end(request: SessionRequest, caller: TenantCaller) {
      const cookie = cookieOf(request)
      if (caller.auth !== 'session' || cookie === undefined) throw notFound('session')
      await deleteSession(deps.db, hashOf(cookie), caller.keyId)
      deps.known.forget(caller.keyId)
      return { setCookie: setCookie('', 0), body: { ended: true } }
    },

    sweep: (now: Date) => deleteExpiredSessions(deps.db, now, SWEEP_AT_MOST),
  }
}

function cookieOf({ headers }: SessionRequest): string | undefined {
  const found = String(headers.cookie ?? '')
    .split(';')
    .map((part) => part.trim())
    .find((part) => part.startsWith(`${SESSION_COOKIE}=`))
    ?.slice(SESSION_COOKIE.length + 1)
  return found !== undefined && COOKIE_SHAPE.test(found) ? found : undefined
}

/** Lengths are those of the bytes: a header may hold letters that take more than one. */
function same(one: string, other: string): boolean {
  const [left, right] = [Buffer.from(one), Buffer.from(other)]
  return left.length === right.length && timingSafeEqual(left, right)
}
