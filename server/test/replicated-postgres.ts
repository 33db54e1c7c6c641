import { type ChildProcess, execFile, spawn } from 'node:child_process'
import {
  appendFileSync,
  chmodSync,
  chownSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { cp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import pg from 'pg'
import { findNativeDir, prepareBinaries } from '../src/adapters/postgres/binaries.ts'
import { type Account, chooseAccount } from '../src/adapters/postgres/os-account.ts'
import { serverEnvironment } from '../src/adapters/postgres/server-environment.ts'
import { findFreePort } from './free-port.ts'

const execFileAsync = promisify(execFile)
const WAIT_MS = 60_000
const POLL_MS = 50

export type ReplicatedPostgresOptions = {
  standbys?: number
  /** What `synchronous_standby_names` is on every node; `*` by default, so that each commit waits for a standby. */
  synchronousStandbyNames?: string
  settings?: Record<string, string>
  /** The folder with `initdb` and `postgres`; by default the programs that npm installed. */
  binDir?: string
}

export type PostgresNode = ReturnType<typeof createNode>
export type ReplicatedPostgres = Awaited<ReturnType<typeof startReplicatedPostgres>>

/**
 * A real primary with real streaming standbys on loopback, run by an unprivileged account. A standby begins as a copy
 * of the primary before its first start, so no backup program is needed.
 */
export async function startReplicatedPostgres({
  standbys = 1,
  synchronousStandbyNames = '*',
  settings = {},
  binDir,
}: ReplicatedPostgresOptions = {}) {
  const account = chooseAccount(undefined)
  const root = mkdtempSync(join(tmpdir(), 'cs-replicated-'))
  chmodSync(root, 0o755)
  if (account) chownSync(root, account.uid, account.gid)
  const { initdb, postgres } = binDir
    ? { initdb: join(binDir, 'initdb'), postgres: join(binDir, 'postgres') }
    : await prepareBinaries({ nativeDir: findNativeDir(), copiesDir: root, account, log: quietLog })
  const first = join(root, 'node1')
  const identity = account && { uid: account.uid, gid: account.gid }
  const flags = ['-U', 'postgres', '-E', 'UTF8', '--no-locale', '--auth=trust', '--no-sync', '--data-checksums']
  await execFileAsync(initdb, ['-D', first, ...flags], { cwd: '/', env: serverEnvironment, ...identity })
  const options = {
    fsync: 'off',
    shared_buffers: '32MB',
    max_connections: '100',
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    wal_receiver_status_interval: '1s',
    hot_standby: 'on',
    // A standby that joins again after a failover needs the log since the fork.
    wal_keep_size: '256MB',
    synchronous_standby_names: synchronousStandbyNames,
    logging_collector: 'off',
    ...settings,
  }
  const lines = Object.entries(options).map(([name, value]) => `${name} = '${value}'\n`)
  appendFileSync(join(first, 'postgresql.conf'), lines.join(''))
  const nodes: PostgresNode[] = []
  for (let number = 1; number <= standbys + 1; number += 1) {
    const folder = join(root, `node${number}`)
    if (number > 1) await cp(first, folder, { recursive: true })
    if (account && number > 1) await execFileAsync('chown', ['-R', `${account.uid}:${account.gid}`, folder])
    nodes.push(createNode({ name: `node${number}`, folder, port: await findFreePort(), postgres, account }))
  }
  const [primary, ...others] = nodes as [PostgresNode, ...PostgresNode[]]
  for (const standby of others) standby.follow(primary)
  const close = async () => {
    for (const node of nodes) await node.kill()
    rmSync(root, { recursive: true, force: true })
  }
  try {
    await primary.start()
    for (const standby of others) await standby.start()
    if (others.length > 0) await awaitStandbys(primary, others.length)
    // Created before anything waits for it, because the owner of the tables must not be a superuser.
    await primary.query(
      `set synchronous_commit = remote_apply; create role countersign login createrole; create database countersign owner countersign`,
    )
  } catch (error) {
    await close()
    throw error
  }
  return {
    nodes,
    /** The address of all nodes, as the service takes it. */
    url: (database = 'countersign', user = 'countersign') =>
      `postgres://${user}@${nodes.map(({ port }) => `127.0.0.1:${port}`).join(',')}/${database}?target_session_attrs=read-write`,
    close,
  }
}

/** Waits until so many standbys stream from the primary. */
export async function awaitStandbys(primary: PostgresNode, count: number) {
  await poll(`${count} standbys of ${primary.name}`, async () => {
    const [row] = await primary.query(
      `select count(*)::int as streaming from pg_stat_replication where state = 'streaming'`,
    )
    return row!.streaming >= count
  })
}

type NodeOptions = { name: string; folder: string; port: number; postgres: string; account: Account | undefined }

function createNode({ name, folder, port, postgres, account }: NodeOptions) {
  let child: ChildProcess | undefined
  let exited: Promise<unknown> = Promise.resolve()
  let output = ''

  const signalAll = (signal: NodeJS.Signals) => {
    if (child?.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
    // The children of a server are sessions of their own, so no signal to a group reaches them.
    for (const pid of [child.pid, ...childrenOf(child.pid)]) {
      try {
        process.kill(pid, signal)
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
      }
    }
  }

  const query = async <Row extends pg.QueryResultRow = pg.QueryResultRow>(
    text: string,
    values?: unknown[],
  ): Promise<Row[]> => {
    const client = new pg.Client({ host: '127.0.0.1', port, user: 'postgres', database: 'postgres' })
    client.on('error', () => {})
    await client.connect()
    try {
      // `create database` cannot share a statement with others.
      let rows: Row[] = []
      for (const statement of values ? [text] : text.split(';').filter((part) => part.trim() !== ''))
        rows = (await client.query<Row>(statement, values)).rows
      return rows
    } finally {
      await client.end().catch(() => {})
    }
  }

  return {
    name,
    port,
    query,
    url: (database = 'countersign', user = 'countersign') => `postgres://${user}@127.0.0.1:${port}/${database}`,
    output: () => output,
    pid: () => child?.pid,

    /** Makes a stopped node a standby of another one at its next start. */
    follow(primary: { port: number }) {
      const signalFile = join(folder, 'standby.signal')
      writeFileSync(signalFile, '')
      const conninfo = `host=127.0.0.1 port=${primary.port} user=postgres application_name=${name}`
      appendFileSync(join(folder, 'postgresql.conf'), `primary_conninfo = '${conninfo}'\n`)
      if (account) chownSync(signalFile, account.uid, account.gid)
    },

    /** Resolves when the node answers queries. */
    async start() {
      output = ''
      child = spawn(postgres, ['-D', folder, '-p', String(port)], {
        cwd: '/',
        env: serverEnvironment,
        stdio: ['ignore', 'pipe', 'pipe'],
        ...(account && { uid: account.uid, gid: account.gid }),
      })
      const started = child
      for (const stream of [started.stdout!, started.stderr!])
        stream.on('data', (chunk: Buffer) => {
          output = (output + chunk).slice(-20_000)
        })
      exited = new Promise((resolve) => started.once('exit', resolve))
      await poll(`the start of ${name}`, async () => {
        if (started.exitCode !== null) throw new Error(`${name} did not start:\n${output}`)
        await query('select 1')
        return true
      })
    },

    /** `kill -9` of the server and all its processes, as a power failure of its machine does. */
    async kill() {
      signalAll('SIGKILL')
      await exited
    },

    /** Stops all processes of the node without closing its connections. */
    pause: () => signalAll('SIGSTOP'),
    resume: () => signalAll('SIGCONT'),

    /** Kills one process of the server, which then restarts by itself after a recovery: connections end, the postmaster stays. */
    async crashBackends() {
      const [row] = await query<{ pid: number }>(`select pid from pg_stat_activity where backend_type = 'walwriter'`)
      process.kill(row!.pid, 'SIGKILL')
    },

    promote: () => query('select pg_promote(true, 60)'),

    /** Changes a setting of the running node. */
    configure: (setting: string, value: string) =>
      query(`alter system set ${setting} = '${value}'; select pg_reload_conf()`),
  }
}

function childrenOf(parent: number): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        const stat = readFileSync(`/proc/${name}/stat`, 'utf8')
        return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]) === parent ? [Number(name)] : []
      } catch {
        return []
      }
    })
}

/** Asks until the answer is true; an error counts as "not yet", except one that says that it never will be. */
export async function poll(what: string, ask: () => Promise<boolean>, limitMs = WAIT_MS): Promise<void> {
  const deadline = performance.now() + limitMs
  let last: unknown
  while (performance.now() < deadline) {
    try {
      if (await ask()) return
    } catch (error) {
      if (/did not start/.test((error as Error).message)) throw error
      last = error
    }
    await sleep(POLL_MS)
  }
  throw new Error(`Waited too long for ${what}.`, { cause: last })
}

const quietLog = { info() {}, warn() {}, error() {} }
