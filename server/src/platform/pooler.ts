import type pg from 'pg'
import { ConfigError } from './config.ts'
import type { Database } from './db.ts'
import type { Log } from './log.ts'
import { within } from './within.ts'

/** With five, one check beside other clients of the pooler saw nothing, on a busy machine; 800 on a quiet one all saw it. */
const ROUNDS = 12
const ANSWER_MS = 3_000
const GUIDE = 'docs/operations.md#poolers'

type Session = Pick<pg.Client, 'query'>

/**
 * Refuses a transaction pooler where a session is needed: there LISTEN hears nothing, and a lock stays with a connection
 * that others use next. Behind such a pooler two clients share a server session, or one is moved from its own to another;
 * a server, and a pooler of whole sessions, never do either.
 */
export async function requireSession(
  client: Session,
  { connect, hasDirectAddress }: Pick<Database, 'connect'> & Partial<Pick<Database, 'hasDirectAddress'>>,
): Promise<void> {
  if (!(await isTransactionPooler(client, connect))) return
  throw new ConfigError(
    hasDirectAddress
      ? `DATABASE_DIRECT_URL leads through a transaction pooler: LISTEN, migrations and leases need a session of the server itself. See ${GUIDE}.`
      : `DATABASE_DIRECT_URL is missing: DATABASE_URL leads through a transaction pooler, and LISTEN, migrations and leases need a session of the server itself. See ${GUIDE}.`,
  )
}

async function isTransactionPooler(client: Session, connect: () => Promise<pg.Client>): Promise<boolean> {
  const first = await readSessionId(client)
  const other = await connect()
  try {
    for (let round = 0; round < ROUNDS; round += 1) {
      // In a transaction the other client keeps its server session, which may be the one that the first has just used.
      await within(ANSWER_MS, other.query('begin'))
      const others = await within(ANSWER_MS, readSessionId(other))
      const again = await readSessionId(client)
      await other.query('rollback')
      if (others === first || again !== first) return true
    }
    return false
  } catch (error) {
    // No answer: the one session of the pooler is taken by the first client, so it is a pooler of sessions.
    if ((error as { code?: string }).code === undefined) return false
    throw error
  } finally {
    other.end().catch(() => {})
  }
}

async function readSessionId(client: Session): Promise<number> {
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid')
  return rows[0]!.pid
}

const LIMITS = ['statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout'] as const

/** A pooler does not pass the limits of a connection on, so that the role or the database must have them. */
export async function checkPoolLimits(pool: pg.Pool, log: Pick<Log, 'warn'>): Promise<void> {
  const columns = LIMITS.map((name) => `current_setting('${name}') as ${name}`).join(', ')
  try {
    const { rows } = await pool.query<Record<string, string>>(`select ${columns}`)
    const missing = LIMITS.filter((name) => rows[0]![name] === '0')
    if (missing.length > 0)
      log.warn({ missing }, `statements on DATABASE_URL have no time limit: give them to its role, see ${GUIDE}`)
  } catch (error) {
    const parameter = /unsupported startup parameter: (\w+)/.exec((error as Error).message)?.[1]
    if (!parameter) throw error
    throw new ConfigError(
      `The pooler of DATABASE_URL refuses the parameter ${parameter}: add ${LIMITS.join(', ')} to its ignore_startup_parameters. See ${GUIDE}.`,
    )
  }
}
