import { sql } from 'kysely'
import { canonicalJson, sha256 } from './canonical.ts'
import type { Clock } from './clock.ts'
import type { Db, Tx } from './db.ts'
import type { FairQueue } from './fair-queue.ts'
import type { Keys } from './keys.ts'
import { conflict, invalid } from './problem.ts'
import type { StoredResponse } from './stored-response.ts'

/**
 * `Idempotency-Key` for every POST that is one database transaction: the key, the work and the response commit together.
 * (A paid run spans several transactions and stores its key with the run; see `runs/`.)
 */
export type IdempotentRequest = { scope: string; route: string; key: string | undefined; body: unknown }
export type IdempotentResponse = StoredResponse & { replayed: boolean }

export type Idempotency = {
  once(
    request: IdempotentRequest,
    work: (tx: Tx) => Promise<{ status: number; body: unknown }>,
  ): Promise<IdempotentResponse>
  /** Deletes expired responses: some contain a secret that is shown once. */
  sweep(now: Date): Promise<number>
}

const RESPONSE_TTL_MS = 24 * 60 * 60 * 1000
const MAX_KEY_LENGTH = 255
const SWEEP_LIMIT = 5_000
// Fields that a retry may add or leave out without becoming a different request.
const unhashedFields = ['idempotency_key', 'approval_id', 'override_token', 'preauth_token']

export function hashBody(body: unknown): string {
  const hashedFields = Object.entries((body ?? {}) as Record<string, unknown>).filter(
    ([name]) => !unhashedFields.includes(name),
  )
  return sha256(canonicalJson(Object.fromEntries(hashedFields)))
}

/** The key from the header or from the body's `idempotency_key`; when both are sent they must be equal. */
export function readIdempotencyKey(header: string | string[] | undefined, body: unknown): string | undefined {
  const bodyValue = (body as { idempotency_key?: unknown } | undefined)?.idempotency_key
  const fromBody = typeof bodyValue === 'string' ? bodyValue : undefined
  const fromHeader = typeof header === 'string' ? header : undefined
  if (fromHeader !== undefined && fromBody !== undefined && fromHeader !== fromBody)
    throw invalid('The header Idempotency-Key and the body idempotency_key differ.')
  const key = fromHeader ?? fromBody
  if (key === undefined) return undefined
  if (!/^[\x21-\x7e]+$/.test(key) || key.length > MAX_KEY_LENGTH)
    throw invalid(`An idempotency key is 1 to ${MAX_KEY_LENGTH} printable ASCII characters without spaces.`)
  return key
}

export type IdempotencyDeps = {
  db: Db
  keys: Keys
  clock: Clock
  /** Where transactions take turns by scope, so that one tenant does not take all connections. */
  queue?: FairQueue
}

export function createIdempotency(deps: IdempotencyDeps): Idempotency {
  const inTurn = <Result>(scope: string, transaction: () => Promise<Result>) =>
    deps.queue ? deps.queue.run(scope, transaction) : transaction()

  return {
    async once({ scope, route, key, body }, work) {
      if (key === undefined)
        return inTurn(scope, () =>
          deps.db.transaction().execute(async (tx) => {
            const result = await work(tx)
            return { status: result.status, body: JSON.stringify(result.body), replayed: false }
          }),
        )
      const bodyHash = hashBody(body)
      return inTurn(scope, () =>
        deps.db.transaction().execute(async (tx) => {
          await lockKey(tx, `idempotency:${scope}:${route}:${key}`)
          const now = deps.clock.now()
          const stored = await tx
            .selectFrom('idempotency_answers')
            .select(['body_hash', 'status', 'answer'])
            .where('scope', '=', scope)
            .where('route', '=', route)
            .where('key', '=', key)
            .where('expires_at', '>', now)
            .executeTakeFirst()
          if (stored && stored.body_hash !== bodyHash) throw differentBody()
          if (stored) return { status: stored.status, body: deps.keys.decrypt(stored.answer), replayed: true }
          const result = await work(tx)
          const text = JSON.stringify(result.body)
          // A response may contain a secret that is shown once, so it is stored encrypted.
          const row = {
            body_hash: bodyHash,
            status: result.status,
            answer: deps.keys.encrypt(text),
            expires_at: new Date(now.getTime() + RESPONSE_TTL_MS),
          }
          await tx
            .insertInto('idempotency_answers')
            .values({ scope, route, key, ...row })
            .onConflict((on) => on.columns(['scope', 'route', 'key']).doUpdateSet(row))
            .execute()
          return { status: result.status, body: text, replayed: false }
        }),
      )
    },

    async sweep(now) {
      const { rows } = await sql`
        delete from idempotency_answers where (scope, route, key) in (
          select scope, route, key from idempotency_answers where expires_at <= ${now} order by expires_at limit ${SWEEP_LIMIT})
        returning key
      `.execute(deps.db)
      return rows.length
    },
  }
}

export const differentBody = () => conflict('This idempotency key was used for another request body.')

export const stillInFlight = (by = 'idempotency key') =>
  conflict(`A request with this ${by} is still in flight.`, { retryable: true, retryAfterSeconds: 1 })

async function lockKey(tx: Tx, name: string) {
  const { rows } = await sql<{
    locked: boolean
  }>`select pg_try_advisory_xact_lock(hashtextextended(${name}, 0)) as locked`.execute(tx)
  if (!rows[0]!.locked) throw stillInFlight()
}
