import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'

export type PoolMode = 'session' | 'transaction'

const readGuide = () => readFileSync(join(import.meta.dirname, '../../docs/operations.md'), 'utf8')

/** The time limits that docs/operations.md gives the role of the service. */
async function setLimits(databaseUrl: string) {
  const { username, pathname } = new URL(databaseUrl)
  const statements = readGuide().match(/^alter role countersign in database countersign set .*;$/gm)!
  const client = new pg.Client({ connectionString: databaseUrl })
  await client.connect()
  for (const statement of statements)
    await client.query(
      statement.replace(
        'role countersign in database countersign',
        `role ${username} in database ${pathname.slice(1)}`,
      ),
    )
  await client.end()
}

/** The file of docs/operations.md, with the addresses and the authentication of the tests. */
function configure(mode: PoolMode, database: URL, port: number, userFile: string): string {
  const documented = /```ini\n(\[databases\]\n[\s\S]*?)```/.exec(readGuide())![1]!
  const server = `host=${database.searchParams.get('host')} port=${database.port} dbname=${database.pathname.slice(1)}`
  const replacements: [RegExp, string][] = [
    [/host=127\.0\.0\.1 port=5432 dbname=countersign/, server],
    [/listen_port = 6432/, `listen_port = ${port}`],
    [/auth_type = .*/, 'auth_type = trust'],
    [/auth_file = .*/, `auth_file = ${userFile}`],
    [/pool_mode = .*/, `pool_mode = ${mode}`],
  ]
  const text = replacements.reduce((file, [pattern, replacement]) => {
    if (!pattern.test(file)) throw new Error(`The pgbouncer.ini of docs/operations.md has no ${pattern}.`)
    return file.replace(pattern, replacement)
  }, documented)
  return `${text}unix_socket_dir =\n`
}

async function findFreePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

/** Starts Debian's PgBouncer before a test database. */
export async function startPgbouncer(mode: PoolMode, databaseUrl: string) {
  const database = new URL(databaseUrl)
  const folder = mkdtempSync(join(tmpdir(), 'pgbouncer-'))
  chmodSync(folder, 0o755)
  await setLimits(databaseUrl)
  const port = await findFreePort()
  const userFile = join(folder, 'userlist.txt')
  writeFileSync(userFile, `"${database.username}" ""\n`)
  const file = join(folder, 'pgbouncer.ini')
  writeFileSync(file, configure(mode, database, port, userFile))
  // It does not run as root; whoever runs the database server may enter the folder of its socket.
  const { uid, gid } = statSync(database.searchParams.get('host')!)
  const child: ChildProcess = spawn('pgbouncer', ['-q', file], {
    stdio: ['ignore', 'ignore', 'pipe'],
    ...(process.getuid?.() === 0 && { uid, gid }),
  })
  let output = ''
  child.stderr!.on('data', (chunk) => {
    output = (output + chunk).slice(-4_000)
  })
  const failed = new Promise<never>((_resolve, reject) => {
    child.once('error', () => reject(new Error('pgbouncer is missing: apt-get install pgbouncer')))
    child.once('exit', () => reject(new Error(`pgbouncer ended:\n${output}`)))
  })
  failed.catch(() => undefined)
  const url = `postgres://${database.username}@127.0.0.1:${port}/countersign`
  const untilItAnswers = async (): Promise<void> => {
    const client = new pg.Client({ connectionString: url })
    try {
      await client.connect()
      await client.query('select 1')
    } catch (error) {
      if (!/ECONNREFUSED/.test(String((error as { code?: string }).code))) throw error
      await sleep(50)
      return untilItAnswers()
    } finally {
      await client.end().catch(() => undefined)
    }
  }
  await Promise.race([untilItAnswers(), failed])
  return {
    url,
    async stop() {
      if (child.exitCode === null && child.signalCode === null) {
        child.kill('SIGKILL')
        await once(child, 'exit')
      }
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
