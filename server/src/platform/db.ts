import { Kysely, PostgresDialect } from 'kysely'
import pg from 'pg'
import type { DB } from './generated/db.ts'
import type { Log } from './log.ts'

export type Db = Kysely<DB>
/** What every store function takes first: the database itself or a transaction of it. */
export type Tx = Kysely<DB>

export type Connection = string | { host: string; port: number; user: string; database: string; password?: string }

export type Database = {
  db: Db
  pool: pg.Pool
  /** A client outside the pool, for LISTEN and for advisory locks that a process holds. */
  connect(): Promise<pg.Client>
  close(): Promise<void>
}

// Amounts are bigint and times are Date; numeric stays text, since no float may touch money.
const types = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') => {
    if (oid === pg.types.builtins.INT8) return BigInt
    return pg.types.getTypeParser(oid, format as 'text')
  },
} as pg.CustomTypesConfig

export function openDatabase(connection: Connection, options: { max: number; log: Log }): Database {
  const where = typeof connection === 'string' ? { connectionString: connection } : connection
  const settings: pg.PoolConfig = {
    ...where,
    types,
    max: options.max,
    application_name: 'countersign',
    connectionTimeoutMillis: 5_000,
    idleTimeoutMillis: 30_000,
    statement_timeout: 30_000,
    idle_in_transaction_session_timeout: 30_000,
  }
  // A connection that dies while its holder waits for something else has nobody to tell; unheard, it ends the process.
  const hear = (client: pg.ClientBase) =>
    client.on('error', (error) => options.log.debug({ err: error }, 'a database connection died in use'))
  const pool = new pg.Pool(settings)
  pool.on('connect', hear)
  pool.on('error', (error) => options.log.warn({ err: error }, 'a database connection was lost'))
  const db = new Kysely<DB>({ dialect: new PostgresDialect({ pool }) })
  return {
    db,
    pool,
    async connect() {
      const client = new pg.Client({ ...where, types, application_name: 'countersign', connectionTimeoutMillis: 5_000 })
      hear(client)
      await client.connect()
      return client
    },
    async close() {
      // Kysely ends the pool only if it has used it.
      await db.destroy()
      if (!pool.ending) await pool.end()
    },
  }
}

/** SQLSTATEs by which the database says «not now», as against «not so»: lost connections, restarts, no resources. */
export function isUnavailable(error: unknown): boolean {
  const code = (error as { code?: unknown })?.code
  if (typeof code !== 'string')
    return (
      error instanceof Error &&
      /timeout exceeded when trying to connect|Connection terminated|not queryable/.test(error.message)
    )
  return /^(08|53|57|ECONN|ENOENT|EPIPE|ETIMEDOUT)/.test(code)
}
