/**
 * A cluster for tests, on one machine and on loopback: three PostgreSQL nodes under Patroni, three members of etcd and
 * HAProxy, from the templates that real machines use.
 *
 *   node launch.mjs ops/cluster/cluster.ts start FOLDER
 *   node launch.mjs ops/cluster/cluster.ts status FOLDER
 *   node launch.mjs ops/cluster/cluster.ts stop FOLDER
 */
import { spawn, spawnSync } from 'node:child_process'
import { randomBytes, randomInt } from 'node:crypto'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { join, resolve } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'

const NODE_NAMES = ['n1', 'n2', 'n3'] as const
const POSTGRES_VERSION = '15'
const PROGRAMS: Record<string, string> = {
  '/usr/bin/etcd': 'etcd-server',
  '/usr/bin/patroni': 'patroni',
  '/usr/sbin/haproxy': 'haproxy',
  [`/usr/lib/postgresql/${POSTGRES_VERSION}/bin/postgres`]: `postgresql-${POSTGRES_VERSION}`,
}
const START_DEADLINE_MS = 120_000
const STOP_DEADLINE_MS = 30_000
const REST_TIMEOUT_MS = 3_000

export type ClusterNode = {
  name: string
  postgresPort: number
  restPort: number
  etcdPort: number
  etcdPeerPort: number
}

type Description = {
  folder: string
  nodes: ClusterNode[]
  proxyPort: number
  metricsPort: number
  passwords: { superuser: string; replication: string; rewind: string; service: string }
}

/** What Patroni says of a member: `leader`, `sync_standby` or `replica`, and whether it runs or streams. */
export type Member = { name: string; role: string; state: string; timeline?: number; lag?: number | string }

export type Cluster = ReturnType<typeof openCluster>

/** Packages of Debian that are not installed here. */
export const missingPackages = (): string[] => [
  ...new Set(Object.entries(PROGRAMS).flatMap(([path, name]) => (existsSync(path) ? [] : [name]))),
]

/** PostgreSQL refuses to run as root, so everything runs as the user of Debian's package then. */
function findAccount(): { uid?: number; gid?: number } {
  if (process.getuid?.() !== 0) return {}
  const [, , uid, gid] = spawnSync('getent', ['passwd', 'postgres'], { encoding: 'utf8' }).stdout.split(':')
  if (!uid || !gid) throw new Error('There is no user postgres: install the packages first.')
  return { uid: Number(uid), gid: Number(gid) }
}

function fillTemplate(name: string, values: Record<string, string>): string {
  return readFileSync(join(import.meta.dirname, name), 'utf8').replace(/\$\{([A-Z_]+)\}/g, (_, variable: string) => {
    const value = values[variable]
    if (value === undefined) throw new Error(`${name} needs ${variable}.`)
    return value
  })
}

const isFree = (port: number) =>
  new Promise<boolean>((settle) => {
    const server = createServer()
    server.once('error', () => settle(false))
    server.listen(port, '127.0.0.1', () => server.close(() => settle(true)))
  })

/** Below the range from which the system hands out ports, so that they stay free until they are used. */
async function findPorts(count: number): Promise<number[]> {
  for (;;) {
    const first = randomInt(12_000, 31_900)
    const ports = Array.from({ length: count }, (_, index) => first + index)
    if ((await Promise.all(ports.map(isFree))).every(Boolean)) return ports
  }
}

const password = () => randomBytes(18).toString('base64url')

/** Writes the configuration of a new cluster into an empty or missing folder; nothing is started. */
export async function createCluster(folder: string, { synchronous = true } = {}): Promise<Cluster> {
  const missing = missingPackages()
  if (missing.length > 0)
    throw new Error(`Not installed: ${missing.join(', ')}. On Debian: apt-get install -y ${missing.join(' ')}`)
  const path = resolve(folder)
  if (existsSync(path) && readdirSync(path).length > 0) throw new Error(`${path} is not empty.`)
  const ports = await findPorts(14)
  const description: Description = {
    folder: path,
    nodes: NODE_NAMES.map((name, index) => {
      const [postgresPort, restPort, etcdPort, etcdPeerPort] = ports.slice(index * 4, index * 4 + 4) as [
        number,
        number,
        number,
        number,
      ]
      return { name, postgresPort, restPort, etcdPort, etcdPeerPort }
    }),
    proxyPort: ports[12]!,
    metricsPort: ports[13]!,
    passwords: { superuser: password(), replication: password(), rewind: password(), service: password() },
  }
  const { nodes, passwords } = description
  const own = createOwner()
  for (const name of ['', 'log', 'pid', 'archive', ...nodes.flatMap((node) => [node.name, `${node.name}/socket`])])
    own.folder(join(path, name))
  const common = {
    POSTGRES_VERSION,
    NODE_ADDRESS: '127.0.0.1',
    ETCD_HOSTS: nodes.map((node) => `127.0.0.1:${node.etcdPort}`).join(','),
    ETCD_PEERS: nodes.map((node) => `${node.name}=http://127.0.0.1:${node.etcdPeerPort}`).join(','),
    CLUSTER_NETWORK: '127.0.0.0/8',
    CLIENT_NETWORK: '127.0.0.0/8',
    SYNCHRONOUS_MODE: String(synchronous),
    // There is one machine: resetting it would end the test.
    WATCHDOG_MODE: 'off',
    ARCHIVE_FOLDER: join(path, 'archive'),
    SCRIPTS_FOLDER: path,
    SUPERUSER_PASSWORD: passwords.superuser,
    REPLICATION_PASSWORD: passwords.replication,
    REWIND_PASSWORD: passwords.rewind,
    PROXY_ADDRESS: '127.0.0.1',
    PROXY_PORT: String(description.proxyPort),
    PROXY_METRICS_PORT: String(description.metricsPort),
    PROXY_SERVERS: nodes
      .map((node) => `  server ${node.name} 127.0.0.1:${node.postgresPort} check port ${node.restPort}`)
      .join('\n'),
  }
  for (const node of nodes) {
    const values = {
      ...common,
      NODE_NAME: node.name,
      POSTGRES_PORT: String(node.postgresPort),
      REST_PORT: String(node.restPort),
      ETCD_PORT: String(node.etcdPort),
      ETCD_PEER_PORT: String(node.etcdPeerPort),
      DATA_FOLDER: join(path, node.name, 'data'),
      SOCKET_FOLDER: join(path, node.name, 'socket'),
      PASSWORD_FILE: join(path, node.name, 'pgpass'),
      ETCD_FOLDER: join(path, node.name, 'etcd'),
    }
    own.file(join(path, node.name, 'patroni.yaml'), fillTemplate('patroni.yaml', values))
    own.file(join(path, node.name, 'etcd.yaml'), fillTemplate('etcd.yaml', values))
  }
  own.file(join(path, 'haproxy.cfg'), fillTemplate('haproxy.cfg', common))
  // The repository may be in a folder that the user of PostgreSQL cannot read.
  for (const name of ['archive-wal', 'base-backup', 'restore']) {
    own.file(join(path, name), readFileSync(join(import.meta.dirname, name), 'utf8'))
    chmodSync(join(path, name), 0o755)
  }
  own.file(join(path, 'cluster.json'), JSON.stringify(description, null, 2))
  return openCluster(path)
}

function createOwner() {
  const { uid, gid } = findAccount()
  const give = (path: string) => uid !== undefined && gid !== undefined && chownSync(path, uid, gid)
  return {
    folder(path: string) {
      mkdirSync(path, { recursive: true, mode: 0o700 })
      give(path)
    },
    file(path: string, text: string) {
      writeFileSync(path, text, { mode: 0o600 })
      give(path)
    },
  }
}

const isAlive = (pid: number) => {
  try {
    // A zombie has ended, though its parent has not asked for it.
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}

function childrenOf(parent: number): number[] {
  return readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name)) return []
    try {
      return Number(/^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${name}/status`, 'utf8'))?.[1]) === parent
        ? [Number(name)]
        : []
    } catch {
      return []
    }
  })
}

const signal = (pid: number, name: NodeJS.Signals) => {
  try {
    process.kill(pid, name)
  } catch (error) {
    if ((error as { code?: string }).code !== 'ESRCH') throw error
  }
}

/** Polls until `read` returns something, and says what was waited for when it does not. */
export async function waitFor<T>(
  what: string,
  read: () => Promise<T | undefined | false> | T | undefined | false,
  deadlineMs = START_DEADLINE_MS,
): Promise<T> {
  const end = performance.now() + deadlineMs
  let problem: unknown
  for (;;) {
    try {
      const value = await read()
      if (value !== undefined && value !== false) return value
    } catch (error) {
      problem = error
    }
    if (performance.now() > end)
      throw new Error(`Waited ${deadlineMs / 1000} s for ${what}${problem ? `: ${(problem as Error).message}` : ''}.`)
    await pause(200)
  }
}

export function openCluster(folder: string) {
  const description = JSON.parse(readFileSync(join(folder, 'cluster.json'), 'utf8')) as Description
  const { nodes, passwords } = description
  const account = findAccount()

  const pidOf = (name: string): number | undefined => {
    const file = join(folder, 'pid', name)
    if (!existsSync(file)) return undefined
    const pid = Number(readFileSync(file, 'utf8'))
    return isAlive(pid) ? pid : undefined
  }

  function startProgram(name: string, program: string, args: string[]) {
    if (pidOf(name) !== undefined) return
    const output = openSync(join(folder, 'log', `${name}.log`), 'a')
    const child = spawn(program, args, {
      ...account,
      cwd: folder,
      detached: true,
      stdio: ['ignore', output, output],
      env: { PATH: process.env.PATH, HOME: folder, LANG: 'C.UTF-8' },
    })
    child.on('error', (error) => console.error(`${name}: ${error.message}`))
    child.unref()
    writeFileSync(join(folder, 'pid', name), String(child.pid))
  }

  const startEtcd = (node: ClusterNode) =>
    startProgram(`etcd-${node.name}`, '/usr/bin/etcd', ['--config-file', join(folder, node.name, 'etcd.yaml')])
  const startPatroni = (node: ClusterNode) =>
    startProgram(`patroni-${node.name}`, '/usr/bin/patroni', [join(folder, node.name, 'patroni.yaml')])
  const startProxy = () => startProgram('haproxy', '/usr/sbin/haproxy', ['-f', join(folder, 'haproxy.cfg')])

  const postmasterOf = (node: ClusterNode): number | undefined => {
    const file = join(folder, node.name, 'data', 'postmaster.pid')
    if (!existsSync(file)) return undefined
    const pid = Number(readFileSync(file, 'utf8').split('\n')[0])
    return isAlive(pid) ? pid : undefined
  }

  async function members(): Promise<Member[]> {
    for (const node of nodes)
      try {
        const answer = await fetch(`http://127.0.0.1:${node.restPort}/cluster`, {
          signal: AbortSignal.timeout(REST_TIMEOUT_MS),
        })
        if (answer.ok) return ((await answer.json()) as { members: Member[] }).members
      } catch {
        // The next one is asked.
      }
    throw new Error('No Patroni answers')
  }

  /** The node whose Patroni says that it is the primary now. */
  async function primary(): Promise<ClusterNode | undefined> {
    const answers = await Promise.all(
      nodes.map(async (node) => {
        const answer = await fetch(`http://127.0.0.1:${node.restPort}/primary`, {
          signal: AbortSignal.timeout(REST_TIMEOUT_MS),
        }).catch(() => undefined)
        return answer?.status === 200 ? node : undefined
      }),
    )
    return answers.find((node) => node !== undefined)
  }

  /** A connection string for a user of the cluster, to one node or to the proxy. */
  const urlOf = (user: 'postgres' | 'countersign', port: number, database: string) =>
    `postgresql://${user}:${user === 'postgres' ? passwords.superuser : passwords.service}@127.0.0.1:${port}/${database}`

  /** A primary to which every other node streams; Patroni trusts one of them with a failover. */
  async function isWhole(synchronous = true): Promise<boolean> {
    const leader = await primary()
    if (!leader) return false
    const standbys = await asAdmin<{ sync_state: string }>(
      leader,
      `select sync_state from pg_stat_replication where state = 'streaming' and application_name ~ '^n[0-9]$'`,
    )
    return (
      standbys.length === nodes.length - 1 &&
      (!synchronous || (await members()).some(({ role }) => role === 'sync_standby'))
    )
  }

  async function asAdmin<Row extends pg.QueryResultRow>(node: ClusterNode, text: string, database = 'postgres') {
    const client = new pg.Client({
      connectionString: urlOf('postgres', node.postgresPort, database),
      connectionTimeoutMillis: 5_000,
    })
    client.on('error', () => {})
    await client.connect()
    try {
      return (await client.query<Row>(text)).rows
    } finally {
      await client.end()
    }
  }

  return {
    folder,
    nodes,
    /** Through HAProxy. */
    url: urlOf('countersign', description.proxyPort, 'countersign'),
    /** To the nodes themselves, for a client that looks for the primary. */
    hostsUrl: `postgresql://countersign:${passwords.service}@${nodes.map((node) => `127.0.0.1:${node.postgresPort}`).join(',')}/countersign?target_session_attrs=read-write`,
    replicationUrl: (node: ClusterNode) =>
      `postgresql://replicator:${passwords.replication}@127.0.0.1:${node.postgresPort}/postgres`,
    archiveFolder: join(folder, 'archive'),
    account,
    members,
    primary,
    isWhole,
    asAdmin,
    startPatroni,
    startEtcd,
    postmasterOf,

    /** The processes of a standby that receive the write-ahead log. */
    receiversOf: (node: ClusterNode): number[] =>
      childrenOf(postmasterOf(node) ?? -1).filter((pid) => {
        try {
          return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('walreceiver')
        } catch {
          return false
        }
      }),

    async start({ synchronous = true } = {}) {
      for (const node of nodes) startEtcd(node)
      for (const node of nodes) startPatroni(node)
      startProxy()
      const leader = await waitFor('a primary', primary)
      await waitFor('all nodes to stream', () => isWhole(synchronous))
      const roles = await asAdmin(leader, `select from pg_roles where rolname = 'countersign'`)
      if (roles.length > 0) return
      await asAdmin(leader, `create role countersign login password '${passwords.service}'`)
      await asAdmin(leader, 'create role countersign_reader nologin')
      await asAdmin(leader, 'grant countersign_reader to countersign')
      await asAdmin(leader, 'create database countersign owner countersign')
    },

    killPatroni(node: ClusterNode) {
      const pid = pidOf(`patroni-${node.name}`)
      if (pid) signal(pid, 'SIGKILL')
    },

    /** Kills PostgreSQL of a node with all its processes, and its Patroni too if asked. */
    killPostgres(node: ClusterNode, { patroni = false } = {}) {
      const postmaster = postmasterOf(node)
      if (patroni) this.killPatroni(node)
      if (postmaster === undefined) return
      // The postmaster first, so that it starts nothing instead of what dies.
      const children = childrenOf(postmaster)
      signal(postmaster, 'SIGKILL')
      for (const child of children) signal(child, 'SIGKILL')
    },

    async etcdLeader(): Promise<ClusterNode | undefined> {
      for (const node of nodes) {
        const answer = await fetch(`http://127.0.0.1:${node.etcdPort}/v3/maintenance/status`, {
          method: 'POST',
          body: '{}',
          signal: AbortSignal.timeout(REST_TIMEOUT_MS),
        }).catch(() => undefined)
        if (!answer?.ok) continue
        const { header, leader } = (await answer.json()) as { header: { member_id: string }; leader?: string }
        if (leader !== undefined && header.member_id === leader) return node
      }
      return undefined
    },

    /** What Prometheus would read from HAProxy, Patroni and etcd. */
    async metrics(): Promise<string> {
      const ports = [description.metricsPort, nodes[0]!.restPort, nodes[0]!.etcdPort]
      const answers = ports.map(async (port) => (await fetch(`http://127.0.0.1:${port}/metrics`)).text())
      return (await Promise.all(answers)).join('\n')
    },

    killEtcd(node: ClusterNode) {
      const pid = pidOf(`etcd-${node.name}`)
      if (pid) signal(pid, 'SIGKILL')
    },

    status: () => ({
      postgres: Object.fromEntries(nodes.map((node) => [node.name, postmasterOf(node)])),
      patroni: Object.fromEntries(nodes.map((node) => [node.name, pidOf(`patroni-${node.name}`)])),
      etcd: Object.fromEntries(nodes.map((node) => [node.name, pidOf(`etcd-${node.name}`)])),
      haproxy: pidOf('haproxy'),
    }),

    /** Stops what this cluster started, and nothing else: first Patroni, which stops its PostgreSQL. */
    async stop() {
      const names = readdirSync(join(folder, 'pid'))
      const stopAll = async (chosen: string[]) => {
        for (const name of chosen) {
          const pid = pidOf(name)
          if (pid) signal(pid, 'SIGTERM')
        }
        const end = performance.now() + STOP_DEADLINE_MS
        while (chosen.some((name) => pidOf(name) !== undefined) && performance.now() < end) await pause(100)
        for (const name of chosen) {
          const pid = pidOf(name)
          if (pid) signal(pid, 'SIGKILL')
        }
      }
      await stopAll(names.filter((name) => name.startsWith('patroni-')))
      for (const node of nodes) this.killPostgres(node)
      await waitFor(
        'PostgreSQL to end',
        () => nodes.every((node) => postmasterOf(node) === undefined),
        STOP_DEADLINE_MS,
      )
      await stopAll(names.filter((name) => !name.startsWith('patroni-')))
    },
  }
}

if (import.meta.main) {
  const [command, folder] = process.argv.slice(2)
  if (!folder || !['start', 'stop', 'status'].includes(command ?? '')) {
    console.error('Usage: cluster.ts start|status|stop FOLDER')
    process.exit(2)
  }
  const cluster = existsSync(join(folder, 'cluster.json'))
    ? openCluster(resolve(folder))
    : command === 'start'
      ? await createCluster(folder)
      : undefined
  if (!cluster) {
    console.error(`There is no cluster in ${folder}.`)
    process.exit(1)
  }
  if (command === 'start') {
    await cluster.start()
    console.log(`DATABASE_URL=${cluster.url}`)
    console.log(`or without HAProxy: DATABASE_URL=${cluster.hostsUrl}`)
  } else if (command === 'stop') await cluster.stop()
  if (command !== 'stop') console.table(await cluster.members())
  console.log(cluster.status())
}
