// A process that holds an embedded database until it is told to stop, or killed: tests of what a crash leaves behind.
// It reads its options from the command line and speaks in JSON lines. If `insert` is given, it also writes rows as
// fast as it can and tells each one only after it was acknowledged.
import pg from 'pg'
import { startEmbeddedPostgres } from '../../src/adapters/postgres/embedded.ts'

type HolderOptions = {
  dataDir: string
  systemDir?: string
  nativeDir?: string
  settings?: Record<string, string>
  insert?: boolean
}

const { insert, ...options } = JSON.parse(process.argv[2]!) as HolderOptions
const tell = (line: object) => process.stdout.write(`${JSON.stringify(line)}\n`)
const log = (_details: object, message: string) => tell({ log: message })

process.stdin.resume()
const told = new Promise<void>((resolve) => {
  process.stdin.once('data', () => resolve())
  // A test that dies must not leave this process and its database behind.
  process.stdin.once('end', () => resolve())
})

const database = await startEmbeddedPostgres({ ...options, log: { info: log, warn: log, error: log } })
tell({ ready: { connection: database.connection, pid: database.pid(), uid: process.getuid?.() } })
if (insert) void insertForever()
await told
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
        tell({ acknowledged: Number(rows[0]!.id) })
      }
    } catch {
      // The server is down: what was not acknowledged was not told.
      await client.end().catch(() => undefined)
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
}
