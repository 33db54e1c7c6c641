// A process that runs an embedded database until it is stopped or killed, for tests of crashes. It reads its options
// from the command line and writes JSON lines. With `insert` it also inserts rows as fast as it can and reports each one
// after it was acknowledged.
import pg from 'pg'
import { startEmbeddedPostgres } from '../../src/adapters/postgres/embedded.ts'

type Options = {
  dataDir: string
  systemDir?: string
  nativeDir?: string
  settings?: Record<string, string>
  insert?: boolean
}

const { insert, ...options } = JSON.parse(process.argv[2]!) as Options
const report = (line: object) => process.stdout.write(`${JSON.stringify(line)}\n`)
const log = (_details: object, message: string) => report({ log: message })

process.stdin.resume()
const stopRequested = new Promise<void>((resolve) => {
  process.stdin.once('data', () => resolve())
  // A test that dies must not leave this process and its database behind.
  process.stdin.once('end', () => resolve())
})

const database = await startEmbeddedPostgres({ ...options, log: { info: log, warn: log, error: log } })
report({ ready: { connection: database.connection, pid: database.pid(), uid: process.getuid?.() } })
if (insert) void insertForever()
await stopRequested
await database.stop()
process.exit(0)

async function insertForever(): Promise<void> {
  for (;;) {
    const client = new pg.Client(database.connection)
    client.on('error', () => undefined)
    try {
      await client.connect()
      await client.query('create table if not exists acknowledged (id bigint generated always as identity primary key)')
      for (;;) {
        const { rows } = await client.query<{ id: string }>('insert into acknowledged default values returning id')
        report({ acknowledged: Number(rows[0]!.id) })
      }
    } catch {
      // The server is down: a row that was not acknowledged was not reported.
      await client.end().catch(() => undefined)
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
}
