import { realpathSync } from 'node:fs'
import pg from 'pg'
import { PORT } from './settings.ts'

export const OWNER_ROLE = 'countersign'
export const DATABASE = 'countersign'

const APPLICATION = 'countersign-supervisor'
const CONNECT_LIMIT_MS = 5_000
const QUERY_LIMIT_MS = 30_000
/** Any number would do: the maintenance database has no other users of advisory locks. */
const USERS_LOCK = 7_262_017

/**
 * The one session a process keeps open on the server for as long as it uses it. It does two things that files and
 * process ids cannot: it ends the moment the server dies, and its shared lock vanishes the moment we die. So the last
 * process out knows that it is the last.
 */
export type Session = {
  ended: Promise<void>
  /** How many other processes use the server now. */
  countOthers(): Promise<number>
  /** Creates the role and database that the product uses, where they are missing. */
  prepare(): Promise<void>
  /** Gives up our share. True when nobody else has one; then nobody can get one any more either. */
  takeAlone(): Promise<boolean>
  close(): Promise<void>
}

/** A session with its share of the lock, or undefined when no server answers, or not this cluster's, or it is being stopped. */
export async function openSession(socketFolder: string, cluster: string): Promise<Session | undefined> {
  const client = new pg.Client({
    host: socketFolder,
    port: PORT,
    user: 'postgres',
    database: 'postgres',
    ssl: false,
    application_name: APPLICATION,
    connectionTimeoutMillis: CONNECT_LIMIT_MS,
    query_timeout: QUERY_LIMIT_MS,
  })
  // The end of the connection is what we watch; the error that comes with it says nothing more.
  client.on('error', () => undefined)
  const ended = new Promise<void>((resolve) => client.once('end', () => resolve()))
  const close = () => client.end().catch(() => undefined)
  try {
    await client.connect()
    const { rows } = await client.query<{ folder: string; shared: boolean }>(
      `select current_setting('data_directory') as folder, pg_try_advisory_lock_shared($1) as shared`,
      [USERS_LOCK],
    )
    if (rows[0]?.shared && realpathSync(rows[0].folder) === cluster) return toSession(client, ended, close)
  } catch {
    // No server, one that is starting, stopping or recovering: all the same to the caller, who tries again.
  }
  await close()
  return undefined
}

function toSession(client: pg.Client, ended: Promise<void>, close: () => Promise<void>): Session {
  return {
    ended,
    close,
    countOthers: async () => {
      const { rows } = await client.query<{ others: number }>(
        'select count(*)::int as others from pg_stat_activity where application_name = $1 and pid <> pg_backend_pid()',
        [APPLICATION],
      )
      return rows[0]?.others ?? 0
    },
    prepare: async () => {
      const { rows } = await client.query<{ role: boolean; database: boolean }>(
        `select exists (select from pg_roles where rolname = $1) as role,
                exists (select from pg_database where datname = $2) as database`,
        [OWNER_ROLE, DATABASE],
      )
      // Not a superuser: a hole in a query must not become a way to files and programs.
      if (!rows[0]?.role) await create(client, `create role ${OWNER_ROLE} login createdb`)
      if (!rows[0]?.database) await create(client, `create database ${DATABASE} owner ${OWNER_ROLE}`)
    },
    takeAlone: async () => {
      await client.query('select pg_advisory_unlock_shared($1)', [USERS_LOCK])
      const { rows } = await client.query<{ alone: boolean }>('select pg_try_advisory_lock($1) as alone', [USERS_LOCK])
      return rows[0]?.alone ?? false
    },
  }
}

/** Two processes may find the same thing missing at once; the second one's failure means it is there. */
async function create(client: pg.Client, statement: string): Promise<void> {
  const TAKEN = ['42710', '42P04', '23505']
  await client.query(statement).catch((error: { code?: string }) => {
    if (!TAKEN.includes(error.code ?? '')) throw error
  })
}
