import type pg from 'pg'
import type { Clock } from './clock.ts'
import type { Keys } from './keys.ts'
import type { Log } from './log.ts'

/** Every column with values of `keys.encrypt`. `server/test/flows/encryption-rotation.test.ts` finds one that is missing. */
export const encryptedColumns = [
  ['approval_channels', 'url'],
  ['approval_channels', 'secret'],
  ['approvals', 'content'],
  ['idempotency_answers', 'answer'],
  ['rh_oauth_accounts', 'tokens'],
  ['rh_oauth_states', 'code_verifier'],
  ['rh_runs', 'content'],
  ['webhook_subscriptions', 'secret'],
  ['webhook_subscriptions', 'earlier_secret'],
] as const

const BATCH = 200
/** Counting stops here, so that a report about a large table stays cheap. */
const MAX_COUNTED = 100_000
const PROGRESS_TTL_MS = 5_000

/** `remaining`: values under an earlier key, by `table.column`; at most `MAX_COUNTED` each. */
export type RotationProgress = { state: 'none' | 'running' | 'done'; remaining: Record<string, number> }

export type RotationDeps = {
  pool: pg.Pool
  keys: Keys
  log: Log
  clock: Clock
  /** Called when no value is left under an earlier key. */
  finish(pool: pg.Pool, keys: Keys, at: Date): Promise<void>
}

export type EncryptionRotation = ReturnType<typeof createEncryptionRotation>

/**
 * Encrypts stored values again with the current key, in batches. A value that changes meanwhile is left to the next
 * batch, and a process that dies leaves every value under one key or the other, so nothing has to be undone.
 */
export function createEncryptionRotation(deps: RotationDeps) {
  const { pool, keys, log } = deps
  const current = `${keys.encryption.currentPrefix}%`
  /** Values of a column that no key opens: they stay as they are and must not fill every batch. */
  const unreadable = new Map<string, number>()
  let cached: { progress: Promise<RotationProgress>; readAt: number } | undefined

  const encryptAgain = async (table: string, column: string): Promise<number> => {
    const name = `${table}.${column}`
    const { rows } = await pool.query<{ ctid: string; value: string }>(
      `select ctid::text, ${column} as value from ${table} where ${column} is not null and ${column} not like $1 order by ctid limit $2 offset $3`,
      [current, BATCH, unreadable.get(name) ?? 0],
    )
    let changed = 0
    for (const { ctid, value } of rows) {
      const plain = tryDecrypt(keys, value)
      if (plain === undefined) {
        unreadable.set(name, (unreadable.get(name) ?? 0) + 1)
        log.error({ table, column }, 'a stored value cannot be decrypted with any configured key')
        continue
      }
      const { rowCount } = await pool.query(
        `update ${table} set ${column} = $1 where ctid = $2::tid and ${column} = $3`,
        [keys.encrypt(plain), ctid, value],
      )
      changed += rowCount ?? 0
    }
    return changed
  }

  const countRemaining = async (): Promise<RotationProgress> => {
    if (!keys.encryption.hasPrevious) return { state: 'none', remaining: {} }
    const remaining: Record<string, number> = {}
    for (const [table, column] of encryptedColumns) {
      const { rows } = await pool.query<{ count: string }>(
        `select count(*)::int as count from (select 1 from ${table} where ${column} is not null and ${column} not like $1 limit $2) rest`,
        [current, MAX_COUNTED],
      )
      remaining[`${table}.${column}`] = Number(rows[0]!.count)
    }
    const { rows } = await pool.query<{ done: boolean }>(
      'select sealed like $1 as done from encryption_canary where id = 1',
      [current],
    )
    const isDone = rows[0]!.done && Object.values(remaining).every((count) => count === 0)
    return { state: isDone ? 'done' : 'running', remaining }
  }

  return {
    /** One batch of each column; returns how many values were encrypted again. */
    async sweep(): Promise<number> {
      if (!keys.encryption.hasPrevious) return 0
      cached = undefined
      let changed = 0
      for (const [table, column] of encryptedColumns) changed += await encryptAgain(table, column)
      if (changed > 0) return changed
      unreadable.clear()
      const { remaining } = await countRemaining()
      if (Object.values(remaining).every((count) => count === 0)) await deps.finish(pool, keys, deps.clock.now())
      return 0
    },

    progress(): Promise<RotationProgress> {
      if (!cached || performance.now() - cached.readAt > PROGRESS_TTL_MS)
        cached = { progress: countRemaining(), readAt: performance.now() }
      cached.progress.catch(() => {
        cached = undefined
      })
      return cached.progress
    },
  }
}

/** A column with a value that names another key, or undefined. */
export async function findForeignColumn(pool: pg.Pool, keys: Keys): Promise<string | undefined> {
  for (const [table, column] of encryptedColumns) {
    const { rows } = await pool.query<{ found: boolean }>(
      `select exists (select 1 from ${table} where ${column} like 'v2.%' and ${column} not like $1) as found`,
      [`${keys.encryption.currentPrefix}%`],
    )
    if (rows[0]!.found) return `${table}.${column}`
  }
  return undefined
}

function tryDecrypt(keys: Keys, value: string): string | undefined {
  try {
    return keys.decrypt(value)
  } catch {
    return undefined
  }
}
