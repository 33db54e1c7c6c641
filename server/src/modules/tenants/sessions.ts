import { randomBytes, timingSafeEqual } from 'node:crypto'
import { requireTenant, type TenantCaller } from '../../platform/auth-context.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Db } from '../../platform/db.ts'
import type { Ids } from '../../platform/ids.ts'
import type { Keys } from '../../platform/keys.ts'
import { forbidden, notFound } from '../../platform/problem.ts'
import type { CallerCache } from './caller-cache.ts'
import { deleteExpiredSessions, deleteSession, findKeyBySession, insertSession } from './sessions.store.ts'

/**
 * A session lets a browser use an API key. The browser holds an HttpOnly cookie, and a CSRF token that only a page of
 * this origin can read: a write needs both and must come from this origin.
 */
export const SESSION_COOKIE = 'countersign_session'
const TTL_SECONDS = 12 * 60 * 60
/** 210 random bits and a keyed checksum over them: an invented cookie is refused without asking the database. */
const COOKIE_PATTERN = /^([A-Za-z0-9_-]{35})([A-Za-z0-9_-]{8})$/
const safeMethods = ['GET', 'HEAD', 'OPTIONS']
const SWEEP_LIMIT = 1_000

export type SessionRequest = { method: string; headers: Record<string, string | string[] | undefined> }

export type Sessions = ReturnType<typeof createSessions>

export type SessionsDeps = {
  db: Db
  clock: Clock
  ids: Ids
  keys: Pick<Keys, 'fingerprint'>
  callers: CallerCache
  publicUrl: () => string
}

export function createSessions(deps: SessionsDeps) {
  const hashCookie = (cookie: string) => deps.keys.fingerprint(`session:${cookie}`)
  // Derived from the cookie, so that a reloaded page can get its token without the service storing it.
  const deriveCsrfToken = (cookie: string) => deps.keys.fingerprint(`session-csrf:${cookie}`)

  const checksum = (secret: string) =>
    Buffer.from(deps.keys.fingerprint(`session-check:${secret}`), 'hex')
      .toString('base64url')
      .slice(0, 8)
  const createCookie = () => {
    const secret = randomBytes(32).toString('base64url').slice(0, 35)
    return `${secret}${checksum(secret)}`
  }
  const readCookie = (request: SessionRequest): string | undefined => {
    const cookie = findCookie(request)
    const [, secret, check] = COOKIE_PATTERN.exec(cookie ?? '') ?? []
    return secret !== undefined && checksum(secret) === check ? cookie : undefined
  }

  const checkOrigin = ({ headers }: SessionRequest) => {
    const origin = headers.origin
    const allowedOrigins = [new URL(deps.publicUrl()).origin, `http://${headers.host}`, `https://${headers.host}`]
    const isForeign = origin !== undefined && !allowedOrigins.includes(String(origin))
    if (isForeign || headers['sec-fetch-site'] === 'cross-site')
      throw forbidden('A session may be used only from its own origin.')
  }

  const setCookie = (value: string, maxAge: number) => {
    const secure = deps.publicUrl().startsWith('https:') ? '; Secure' : ''
    return `${SESSION_COOKIE}=${value}; Path=/; Max-Age=${maxAge}; HttpOnly; SameSite=Lax${secure}`
  }

  return {
    checkOrigin,

    async open(caller: TenantCaller) {
      const cookie = createCookie()
      const now = deps.clock.now()
      const expiresAt = new Date(now.getTime() + TTL_SECONDS * 1000)
      await insertSession(deps.db, {
        id: deps.ids.next('ses'),
        tenant_id: caller.tenantId,
        key_id: caller.keyId,
        hash: hashCookie(cookie),
        created_at: now,
        expires_at: expiresAt,
      })
      return {
        setCookie: setCookie(cookie, TTL_SECONDS),
        body: { csrf_token: deriveCsrfToken(cookie), tenant_id: caller.tenantId, expires_at: expiresAt.toISOString() },
      }
    },

    /** Undefined without a valid session; a write without its token or from another origin is 403, not a guest's request. */
    async authenticate(request: SessionRequest): Promise<TenantCaller | undefined> {
      const cookie = readCookie(request)
      if (cookie === undefined) return undefined
      const caller = await deps.callers.findCaller(hashCookie(cookie), 'session', (hash) =>
        findKeyBySession(deps.db, hash),
      )
      if (!caller || safeMethods.includes(request.method)) return caller
      checkOrigin(request)
      if (!equalInConstantTime(String(request.headers['x-csrf-token'] ?? ''), deriveCsrfToken(cookie)))
        throw forbidden('A write with a session needs the x-csrf-token of that session.')
      return caller
    },

    /** For a reloaded page: the CSRF token of its session. */
    getCsrfToken(request: SessionRequest, caller: TenantCaller) {
      const cookie = readCookie(request)
      if (requireTenant(caller).auth !== 'session' || cookie === undefined) throw notFound('session')
      return { csrf_token: deriveCsrfToken(cookie), tenant_id: caller.tenantId }
    },

    async end(request: SessionRequest, caller: TenantCaller) {
      const cookie = readCookie(request)
      if (caller.auth !== 'session' || cookie === undefined) throw notFound('session')
      await deleteSession(deps.db, hashCookie(cookie), caller.keyId)
      deps.callers.forget(caller.keyId)
      return { setCookie: setCookie('', 0), body: { ended: true } }
    },

    sweep: (now: Date) => deleteExpiredSessions(deps.db, now, SWEEP_LIMIT),
  }
}

function findCookie({ headers }: SessionRequest): string | undefined {
  return String(headers.cookie ?? '')
    .split(';')
    .map((part) => part.trim())
    .find((part) => part.startsWith(`${SESSION_COOKIE}=`))
    ?.slice(SESSION_COOKIE.length + 1)
}

/** Compares lengths in bytes, as `timingSafeEqual` requires: a header may contain multi-byte characters. */
function equalInConstantTime(actual: string, expected: string): boolean {
  const [left, right] = [Buffer.from(actual), Buffer.from(expected)]
  return left.length === right.length && timingSafeEqual(left, right)
}
