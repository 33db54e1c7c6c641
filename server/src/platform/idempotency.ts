import { sql } from 'kysely'
import { canonical, sha256 } from './canonical.ts'
import type { Clock } from './clock.ts'
import type { Db, Tx } from './db.ts'
import type { Keys } from './keys.ts'
import { conflict, invalid } from './problem.ts'
import type { StoredResponse } from './stored-response.ts'

/**
 * `Idempotency-Key` for every POST that is one database transaction: the key, the work and the answer commit together.
 * (A paid run spans several transactions and keeps its key with the run; see `runs/`.)
 */
export type Asked = { scope: string; route: string; key: string | undefined; body: unknown }
export type IdempotentResponse = StoredResponse & { replayed: boolean }

export type Idempotency = {
  once(asked: Asked, work: (tx: Tx) => Promise<{ status: number; body: unknown }>): Promise<IdempotentResponse>
  /** Forgets answers whose time is over: some hold a secret that was to be shown once. */
  sweep(now: Date): Promise<number>
}

const LIFE_MS = 24 * 60 * 60 * 1000
const MAX_KEY_LENGTH = 255
const SWEEP_AT_MOST = 5_000
// What a retry may add or leave out without becoming another request.
const notHashed = ['idempotency_key', 'approval_id', 'override_token', 'preauth_token']

export function hashBody(body: unknown): string {
  const kept = Object.entries((body ?? {}) as Record<string, unknown>).filter(([name]) => !notHashed.includes(name))
  return sha256(canonical(Object.fromEntries(kept)))
}

/** The header, or the body's `idempotency_key`; both only when they agree. */
export function readIdempotencyKey(header: string | string[] | undefined, body: unknown): string | undefined {
  const inBody = (body as { idempotency_key?: unknown } | undefined)?.idempotency_key
  const fromBody = typeof inBody === 'string' ? inBody : undefined
  const fromHeader = typeof header === 'string' ? header : undefined
  if (fromHeader !== undefined && fromBody !== undefined && fromHeader !== fromBody)
    throw invalid('The header Idempotency-Key and the body idempotency_key differ.')
  const key = fromHeader ?? fromBody
  if (key === undefined) return undefined
  if (!/^[\x21-\x7e]+$/.test(key) || key.length > MAX_KEY_LENGTH)
    throw invalid(`An idempotency key is 1 to ${MAX_KEY_LENGTH} printable ASCII characters without spaces.`)
  return key
}

export function createIdempotency(deps: { db: Db; keys: Keys; clock: Clock }): Idempotency {
  return {
    async once({ scope, route, key, body }, work) {
      if (key === undefined)
        return deps.db.transaction().execute(async (tx) => {
          const done = await work(tx)
          return { status: done.status, body: JSON.stringify(done.body), replayed: false }
        })
      const bodyHash = hashBody(body)
      return deps.db.transaction().execute(async (tx) => {
        await claim(tx, `idempotency:${scope}:${route}:${key}`)
        const now = deps.clock.now()
        const earlier = await tx
          .selectFrom('idempotency_answers')
          .select(['body_hash', 'status', 'answer'])
          .where('scope', '=', scope)
          .where('route', '=', route)
          .where('key', '=', key)
          .where('expires_at', '>', now)
          .executeTakeFirst()
        if (earlier && earlier.body_hash !== bodyHash) throw differentBody()
        if (earlier) return { status: earlier.status, body: deps.keys.decrypt(earlier.answer), replayed: true }
        const done = await work(tx)
        const text = JSON.stringify(done.body)
        // An answer may hold a secret that is shown once, so it is kept encrypted.
        const row = {
          body_hash: bodyHash,
          status: done.status,
          answer: deps.keys.encrypt(text),
          expires_at: new Date(now.getTime() + LIFE_MS),
        }
        await tx
          .insertInto('idempotency_answers')
          .values({ scope, route, key, ...row })
          .onConflict((on) => on.columns(['scope', 'route', 'key']).doUpdateSet(row))
          .execute()
        return { status: done.status, body: text, replayed: false }
      })
    },

    async sweep(now) {
      const { rows } = await sql`
        delete from idempotency_answers where (scope, route, key) in (
          select scope, route, key from idempotency_answers where expires_at <= ${now} order by expires_at limit ${SWEEP_AT_MOST})
        returning key
      `.execute(deps.db)
      return rows.length
    },
  }
}

export const differentBody = () => conflict('This idempotency key was used for another request body.')

export const stillInFlight = (by = 'idempotency key') =>
  conflict(`A request with this ${by} is still in flight.`, { retryable: true, retryAfterSeconds: 1 })

async function claim(tx: Tx, name: string) {
  const { rows } = await sql<{
    got: boolean
  }>`select pg_try_advisory_xact_lock(hashtextextended(${name}, 0)) as got`.execute(tx)
  if (!rows[0]!.got) throw stillInFlight()
}
