import { realpathSync } from 'node:fs'
import pg from 'pg'
import { READER_ROLE } from '../../platform/tenant-reads.ts'
import { PORT } from './settings.ts'

export const OWNER_ROLE = 'countersign'
export const DATABASE = 'countersign'

const APPLICATION_NAME = 'countersign-supervisor'
const CONNECT_TIMEOUT_MS = 5_000
const QUERY_TIMEOUT_MS = 30_000
/** Arbitrary: nothing else uses advisory locks in the maintenance database. */
const USERS_LOCK_ID = 7_262_017

/**
 * The session that a process keeps open for as long as it uses the server. Unlike files and process ids, it ends as soon
 * as the server dies, and its shared lock is released as soon as this process dies. So the last process to stop knows
 * that it is the last.
 */
export type Session = {
  ended: Promise<void>
  /** The number of other processes that use the server. */
  countOtherUsers(): Promise<number>
  /** Creates the role and database that the product uses, where they are missing. */
  prepare(): Promise<void>
  /** Releases the shared lock. True when no other process holds it; then no process can acquire it any more. */
  tryLockExclusively(): Promise<boolean>
  close(): Promise<void>
}

/** A session that holds the shared lock, or undefined when this cluster's server does not answer or is being stopped. */
export async function openSession(socketFolder: string, cluster: string): Promise<Session | undefined> {
  const client = new pg.Client({
    host: socketFolder,
    port: PORT,
    user: 'postgres',
    database: 'postgres',
    ssl: false,
    application_name: APPLICATION_NAME,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    query_timeout: QUERY_TIMEOUT_MS,
  })
  // The supervisor watches the end of the connection; its error adds nothing.
  client.on('error', () => undefined)
  const ended = new Promise<void>((resolve) => client.once('end', () => resolve()))
  const close = () => client.end().catch(() => undefined)
  try {
    await client.connect()
    const { rows } = await client.query<{ folder: string; shared: boolean }>(
      `select current_setting('data_directory') as folder, pg_try_advisory_lock_shared($1) as shared`,
      [USERS_LOCK_ID],
    )
    if (rows[0]?.shared && realpathSync(rows[0].folder) === cluster) return toSession(client, ended, close)
  } catch {
    // There is no server, or it is starting, stopping or recovering: the caller retries in each case.
  }
  await close()
  return undefined
}

function toSession(client: pg.Client, ended: Promise<void>, close: () => Promise<void>): Session {
  return {
    ended,
    close,
    countOtherUsers: async () => {
      const { rows } = await client.query<{ others: number }>(
        'select count(*)::int as others from pg_stat_activity where application_name = $1 and pid <> pg_backend_pid()',
        [APPLICATION_NAME],
      )
      return rows[0]?.others ?? 0
    },
    prepare: async () => {
      const { rows } = await client.query<{ role: boolean; reader: boolean; database: boolean }>(
        `select exists (select from pg_roles where rolname = $1) as role,
                exists (select from pg_roles where rolname = '${READER_ROLE}') as reader,
                exists (select from pg_database where datname = $2) as database`,
        [OWNER_ROLE, DATABASE],
      )
      // Not a superuser: an SQL injection must not give access to files and programs.
      if (!rows[0]?.role) await createIfMissing(client, `create role ${OWNER_ROLE} login createdb`)
      // The role of tenants' reads (`platform/tenant-reads.ts`), which the owner may not create itself.
      if (!rows[0]?.reader) await createIfMissing(client, `create role ${READER_ROLE} nologin`)
      await client.query(`grant ${READER_ROLE} to ${OWNER_ROLE}`)
      if (!rows[0]?.database) await createIfMissing(client, `create database ${DATABASE} owner ${OWNER_ROLE}`)
    },
    tryLockExclusively: async () => {
      await client.query('select pg_advisory_unlock_shared($1)', [USERS_LOCK_ID])
      const { rows } = await client.query<{ alone: boolean }>('select pg_try_advisory_lock($1) as alone', [
        USERS_LOCK_ID,
      ])
      return rows[0]?.alone ?? false
    },
  }
}

/** Two processes may try to create the same object at once; the error of the second means that it exists. */
async function createIfMissing(client: pg.Client, statement: string): Promise<void> {
  const ALREADY_EXISTS = ['42710', '42P04', '23505']
  await client.query(statement).catch((error: { code?: string }) => {
    if (!ALREADY_EXISTS.includes(error.code ?? '')) throw error
  })
}
