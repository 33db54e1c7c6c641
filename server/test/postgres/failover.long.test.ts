import { sql } from 'kysely'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type Database, isOutcomeUnknown, isUnavailable, openDatabase } from '../../src/platform/db.ts'
import { silentLog } from '../database.ts'
import { type PostgresNode, poll, type ReplicatedPostgres, startReplicatedPostgres } from '../replicated-postgres.ts'

let cluster: ReplicatedPostgres
let primary: PostgresNode
let standby: PostgresNode
const databases: Database[] = []

const startCluster = async () => {
  await cluster?.close()
  cluster = await startReplicatedPostgres()
  const [first, second] = cluster.nodes
  primary = first!
  standby = second!
  await withClient(primary.url(), async (client) => {
    // Also applied on the standby, which is asked for it below.
    await client.query('set synchronous_commit = remote_apply')
    await client.query('create table notes (id int primary key)')
  })
}

beforeAll(startCluster, 120_000)
afterEach(async () => {
  for (const database of databases.splice(0)) await database.close()
})
afterAll(() => cluster?.close())

async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => {})
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end().catch(() => {})
  }
}

const open = (url = cluster.url(), options: Partial<Parameters<typeof openDatabase>[1]> = {}) => {
  const database = openDatabase(url, { max: 4, log: silentLog, ...options })
  databases.push(database)
  return database
}

const readNotes = async ({ pool }: Database) =>
  (await pool.query('select id from notes order by id')).rows.map(({ id }) => id)

/** The processes of the server that wait for the standby. */
const awaitSyncWait = async (node: PostgresNode, like: string) => {
  let pid = 0
  await poll('a commit that waits for the standby', async () => {
    const rows = await node.query(
      `select pid from pg_stat_activity where wait_event = 'SyncRep' and query like '${like}' order by query_start desc`,
    )
    pid = rows[0]?.pid ?? 0
    return pid !== 0
  })
  return pid
}

const awaitService = (database: Database) =>
  poll('the database to serve again', async () => (await database.pool.query('select 1')).rows.length === 1)

const outcomeOf = (work: Promise<unknown>) =>
  work.then(
    () => 'acknowledged',
    (error) => (isOutcomeUnknown(error) ? 'unknown' : isUnavailable(error) ? 'unavailable' : error),
  )

describe('which server is used', () => {
  test('a standby is never used, wherever it stands in the address', async () => {
    const url = `postgres://countersign@127.0.0.1:${standby.port},127.0.0.1:${primary.port}/countersign?target_session_attrs=read-write`
    const database = open(url)
    await database.pool.query('insert into notes values (1)')
    const { rows } = await database.pool.query('select inet_server_port() as port')
    expect(rows[0].port).toBe(primary.port)
    const session = await database.connect()
    expect((await session.query('select pg_is_in_recovery() as recovering')).rows[0].recovering).toBe(false)
    await session.end()
  })

  test('a standby alone is unavailable, not an error of the statement', async () => {
    const database = open(standby.url())
    expect(await outcomeOf(database.pool.query('insert into notes values (2)'))).toBe('unavailable')
    expect(await outcomeOf(database.connect())).toBe('unavailable')
  })

  test('a server that becomes read-only is unavailable, and its connections serve again when it can be written to', async () => {
    const database = open()
    expect(await readNotes(database)).toEqual([1])
    await primary.configure('default_transaction_read_only', 'on')
    await poll('the pooled connection to be read-only', async () => {
      const outcome = await outcomeOf(database.pool.query('insert into notes values (3) on conflict do nothing'))
      if (outcome !== 'acknowledged' && outcome !== 'unavailable') throw outcome
      return outcome === 'unavailable'
    })
    await primary.configure('default_transaction_read_only', 'off')
    await awaitService(database)
    await database.pool.query('insert into notes values (4)')
    await withClient(primary.url(), (client) => client.query('delete from notes where id in (3, 4)'))
  })
})

describe('a commit that no standby has', () => {
  test('is of unknown outcome when its wait was cancelled, alone and in a transaction, and nothing is served before a standby has it', async () => {
    for (const [id, insert] of [
      [11, (database: Database) => database.pool.query('insert into notes values (11)')],
      [
        12,
        (database: Database) =>
          database.db.transaction().execute((tx) => sql`insert into notes values (12)`.execute(tx)),
      ],
    ] as const) {
      let unknownCommits = 0
      const onUnknownCommit = () => {
        unknownCommits += 1
      }
      const database = open(undefined, { onUnknownCommit })
      await readNotes(database)
      standby.pause()
      try {
        const outcome = outcomeOf(insert(database))
        const pid = await awaitSyncWait(primary, id === 11 ? 'insert into notes%' : 'commit')
        await primary.query(`select pg_cancel_backend(${pid})`)
        expect(await outcome).toBe('unknown')
        expect(await outcomeOf(readNotes(database))).toBe('unavailable')
        expect(await outcomeOf(database.connect())).toBe('unavailable')
      } finally {
        standby.resume()
      }
      await awaitService(database)
      expect(await readNotes(database)).toContain(id)
      expect(unknownCommits).toBe(1)
    }
  })

  test('waits longer than the time limit of statements', async () => {
    const database = open(undefined, { statementTimeoutMs: 500 })
    await readNotes(database)
    standby.pause()
    try {
      const outcome = outcomeOf(database.pool.query('insert into notes values (13)'))
      const pid = await awaitSyncWait(primary, 'insert into notes%')
      await poll('a wait of twice the limit', async () => {
        const [row] = await primary.query(
          `select now() - query_start > interval '1 second' as is_long, wait_event from pg_stat_activity where pid = ${pid}`,
        )
        return row!.is_long && row!.wait_event === 'SyncRep'
      })
      standby.resume()
      expect(await outcome).toBe('acknowledged')
    } finally {
      standby.resume()
    }
  })

  test('and a caller waits for it in vain only so long: then the outcome is unknown', async () => {
    const database = open(undefined, { statementTimeoutMs: 500, commitWaitMs: 1_000 })
    await readNotes(database)
    standby.pause()
    try {
      const statement = database.pool.query('insert into notes values (14)')
      const transaction = database.db.transaction().execute((tx) => sql`insert into notes values (15)`.execute(tx))
      expect(await Promise.all([outcomeOf(statement), outcomeOf(transaction)])).toEqual(['unknown', 'unknown'])
      expect(await outcomeOf(readNotes(database))).toBe('unavailable')
      // The barrier is tried again and again, and each one that was not confirmed is taken back before the next.
      const started = new Set<string>()
      let atOnce = 0
      await poll('the second barrier', async () => {
        const rows = await primary.query(
          `select pid::text from pg_stat_activity where wait_event = 'SyncRep' and query like '%barrier%'`,
        )
        for (const { pid } of rows) started.add(pid)
        atOnce = Math.max(atOnce, rows.length)
        return started.size === 2
      })
      expect(atOnce).toBe(1)
    } finally {
      standby.resume()
    }
    await awaitService(database)
    expect(await readNotes(database)).toEqual(expect.arrayContaining([14, 15]))
  })

  test.each([
    [
      'of the whole server',
      21,
      async () => {
        await primary.kill()
        await primary.start()
      },
    ],
    ['of one of its processes, after which the server restarts by itself', 22, () => primary.crashBackends()],
  ])('is not served after a crash %s, until a standby has it', async (_name, id, crash) => {
    const database = open()
    await readNotes(database)
    standby.pause()
    try {
      const outcome = outcomeOf(database.pool.query(`insert into notes values (${id})`))
      await awaitSyncWait(primary, 'insert into notes%')
      await crash()
      expect(await outcome).toBe('unknown')
      // The commit is visible to whoever asks the server itself.
      await poll('the server to be back', async () => {
        const rows = await withClient(primary.url(), (client) => client.query('select id from notes'))
        return rows.rows.some((row) => row.id === id)
      })
      for (let attempt = 0; attempt < 3; attempt += 1) expect(await outcomeOf(readNotes(database))).toBe('unavailable')
    } finally {
      standby.resume()
    }
    await awaitService(database)
    expect(await readNotes(database)).toContain(id)
  })
})

describe('synchronous replication', () => {
  test('is found when it is configured, and a primary without it is refused when it is required', async () => {
    const required = { syncReplication: 'required' } as const
    expect(await open(undefined, required).readReplication()).toBe(true)
    await primary.configure('synchronous_standby_names', '')
    const lax = open(undefined, { syncReplication: 'preferred' })
    await poll('the setting to be read', async () => !(await lax.readReplication()))
    const strict = open(primary.url(), required)
    await expect(strict.pool.query('select 1')).rejects.toThrow('DATABASE_SYNC_REPLICATION=preferred')
    await expect(strict.connect()).rejects.toThrow('DATABASE_SYNC_REPLICATION=preferred')
    await primary.configure('synchronous_standby_names', '*')
    await awaitService(strict)
    for (const mode of ['off', 'local']) {
      await primary.query(`alter role countersign set synchronous_commit = ${mode}`)
      await expect(open(primary.url(), required).pool.query('select 1')).rejects.toThrow(
        `synchronous_commit is ${mode}`,
      )
    }
    await primary.query('alter role countersign reset synchronous_commit')
  })
})

describe('failover', () => {
  test('what only the dead primary had is never shown, the new primary serves, and the old one is not gone back to', async () => {
    await startCluster()
    const database = open()
    await database.pool.query('insert into notes values (31)')
    // A paused standby could still have it in the buffer of its socket.
    await standby.kill()
    const lost = outcomeOf(database.pool.query('insert into notes values (32)'))
    await awaitSyncWait(primary, 'insert into notes%')
    await primary.kill()
    expect(await lost).toBe('unknown')
    await standby.start()
    await standby.promote()
    // No standby follows the new primary yet, so nothing is served from it.
    expect(await outcomeOf(database.pool.query('insert into notes values (33)'))).toBe('unavailable')
    await standby.configure('synchronous_standby_names', '')
    await awaitService(database)
    expect(await readNotes(database)).toEqual([31])
    await database.pool.query('insert into notes values (34)')

    // The old primary comes back as it was: a second primary with another history.
    await primary.start()
    await primary.configure('synchronous_standby_names', '')
    await standby.kill()
    // The loss of an idle connection may be seen only by the statement that is sent on it.
    expect(['unavailable', 'unknown']).toContain(await outcomeOf(database.pool.query('insert into notes values (35)')))
    expect(await outcomeOf(readNotes(database))).toBe('unavailable')
    await standby.start()
    await awaitService(database)
    expect(await readNotes(database)).toEqual([31, 34])

    // Of two primaries, a process that knows neither takes the one with the newer history.
    expect(await readNotes(open())).toEqual([31, 34])
  })
})
