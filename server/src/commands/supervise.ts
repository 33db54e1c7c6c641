import cluster from 'node:cluster'
import { mkdirSync } from 'node:fs'
import { resolve } from 'node:path'
import { createChainReader } from '../adapters/chain/chain-reader.ts'
import { serveChain } from '../adapters/chain/chain-server.ts'
import { USDC } from '../adapters/chain/edr.ts'
import { createSharedChain } from '../adapters/chain/shared-chain.ts'
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../adapters/postgres/embedded.ts'
import { systemClock } from '../platform/clock.ts'
import { type Config, ConfigError, usesEmbeddedChain } from '../platform/config.ts'
import { type Database, openDatabase } from '../platform/db.ts'
import { openInstances } from '../platform/instances.ts'
import { createLog, type Log } from '../platform/log.ts'
import { createMetrics } from '../platform/metrics.ts'
import { migrate } from '../platform/migrate.ts'
import { createProcessPool, type ProcessSpec } from '../platform/process-pool.ts'
import { openSecretFolder } from '../platform/secrets.ts'
import { type FromSupervisor, type MetricSeries, type ToSupervisor, toEnvironment } from '../platform/supervised.ts'
import { within } from '../platform/within.ts'
import { fundDevelopmentPayer } from './development-payer.ts'
import { findPort } from './find-port.ts'
import { announceStart } from './serve.ts'
import { onStopSignal } from './stop-signals.ts'

const BACKGROUND = 'background'
const MAX_CONNECTIONS = 100
const OWN_CONNECTIONS = 8
const CHECK_CHAIN_MS = 2_000
const READ_METRICS_MS = 2_000
/** A process that has not ended this long after SHUTDOWN_SECONDS is killed. */
const STOP_MARGIN_MS = 15_000
const STOP_DATABASE_MS = 5_000

/**
 * `serve --workers N`: runs the embedded database and chain, N processes that share the port and one that does the
 * background work. It answers no requests itself, so nothing that a request does can end it.
 */
export async function supervise(config: Config) {
  checkSenderKeys(config)
  const startedAt = performance.now()
  // A port of 0 is chosen once, so that all processes keep it when they are started again.
  const port = await findPort(config)
  const log = createLog(config.LOG_LEVEL)
  const dataDir = resolve(config.COUNTERSIGN_DATA_DIR)
  mkdirSync(dataDir, { recursive: true, mode: 0o700 })
  const secrets = openSecretFolder(dataDir)
  const closers: (() => Promise<unknown>)[] = []
  const closeShared = async () => {
    for (const closer of closers.splice(0).reverse())
      await closer().catch((error) => log.warn({ err: error }, 'a component could not be closed'))
  }

  let pool: ReturnType<typeof createPool> | undefined
  let stopping: Promise<void> | undefined
  let postgres: EmbeddedPostgres | undefined
  const onDatabase = (started: EmbeddedPostgres) => {
    postgres = started
    closers.push(started.stop)
  }
  const openShared = async () => {
    const { database, connection } = await openSharedDatabase(config, dataDir, log, closers, onDatabase)
    const chain = usesEmbeddedChain(config) ? await openChainOwner(config, database, log, closers) : undefined
    return { connection, chain }
  }
  const shared = openShared()
  const stop = () => {
    stopping ??= (async () => {
      // What is being opened would otherwise outlive this process.
      await shared.catch(() => undefined)
      const graceful = (await pool?.stop()) ?? true
      await closeShared()
      if (!graceful) throw new Error('A process did not end in time and was killed.')
    })()
    return stopping
  }
  onStopSignal({
    stop,
    stopAtOnce: async () => {
      pool?.kill()
      if (postgres) await within(STOP_DATABASE_MS, postgres.stop()).catch(() => undefined)
    },
  })

  try {
    const { connection, chain } = await shared
    if (stopping) return
    pool = createPool({ ...config, PORT: port }, connection, log, (message) => {
      console.error(`${message} Stopping everything; its messages above say why.`)
      void stop().finally(() => process.exit(1))
    })
    const [{ address }] = (await pool.start()) as [{ address: string }]
    const payer =
      chain && config.NODE_ENV !== 'production' ? await fundDevelopmentPayer({ secrets, ...chain }) : undefined
    announceStart({
      address,
      dataDir,
      keyFolder: secrets.folder,
      payer,
      isDevelopmentChain: chain !== undefined,
      startedAt,
      processes: describeProcesses(config),
    })
  } catch (error) {
    if (stopping) return
    console.error(error instanceof ConfigError ? error.message : error)
    await stop().finally(() => process.exit(1))
  }
}

const hasBackground = (config: Config) => config.BACKGROUND_WORK === 'on'
const processCount = (config: Config) => config.WORKERS + (hasBackground(config) ? 1 : 0)
const describeProcesses = (config: Config) =>
  `${config.WORKERS} for requests${hasBackground(config) ? ', 1 for background work' : ''}`

/** Two processes that send from one account use conflicting nonces. */
function checkSenderKeys(config: Config) {
  const keys = config.FACILITATOR_URL ? undefined : config.FACILITATOR_PRIVATE_KEY
  if (keys && keys.length < processCount(config))
    throw new ConfigError(
      `FACILITATOR_PRIVATE_KEY has ${keys.length} keys for ${processCount(config)} processes (${describeProcesses(config)}): each process needs at least one of its own.`,
    )
}

async function openSharedDatabase(
  config: Config,
  dataDir: string,
  log: Log,
  closers: (() => Promise<unknown>)[],
  onDatabase: (postgres: EmbeddedPostgres) => void,
) {
  const connections = processCount(config) * (config.DATABASE_POOL + 1) + OWN_CONNECTIONS
  const settings = { max_connections: String(Math.max(MAX_CONNECTIONS, connections)) }
  const postgres = config.DATABASE_URL ? undefined : await startEmbeddedPostgres({ dataDir, log, settings })
  if (postgres) onDatabase(postgres)
  const database = openDatabase(config.DATABASE_URL ?? postgres!.connection, {
    max: 4,
    log,
    direct: config.DATABASE_DIRECT_URL,
    syncReplication: config.DATABASE_URL ? config.DATABASE_SYNC_REPLICATION : 'off',
  })
  closers.push(database.close)
  const { warnings } = await migrate(database, { log })
  for (const warning of warnings) log.warn(warning)
  return { database, connection: postgres?.connection }
}

/** The processes reach the chain over a port of this one, which is loopback only. */
async function openChainOwner(config: Config, database: Database, log: Log, closers: (() => Promise<unknown>)[]) {
  const { pool, connect } = database
  const instances = await openInstances(database, config, log)
  closers.push(instances.close)
  const shared = await createSharedChain({ pool, connect, instances, clock: systemClock, log, mayOwn: true })
  closers.push(shared.close)
  const server = await serveChain(config.NODE_ENV === 'production' ? { request: shared.request } : shared)
  closers.push(server.close)
  await shared.announce(server.url)
  // A process of another start may own the chain; this request takes it over when that process is gone.
  const timer = setInterval(() => {
    if (!shared.isOwner()) shared.request('eth_chainId', []).catch(() => {})
  }, CHECK_CHAIN_MS)
  closers.push(async () => clearInterval(timer))
  return {
    chain: { reader: createChainReader({ request: shared.request }), asset: USDC, dev: { mint: shared.mint } },
  }
}

function createPool(
  config: Config,
  connection: Parameters<typeof toEnvironment>[0]['connection'],
  log: Log,
  onCrashLoop: (message: string) => void,
) {
  const names = Array.from({ length: config.WORKERS }, (_, index) => `api-${index + 1}`)
  const count = processCount(config)
  const describe = (name: string, index: number, command: string): ProcessSpec => ({
    name,
    fork() {
      cluster.setupPrimary({ args: [command] })
      const parameters = { name, senderShare: { index, count }, ...(connection && { connection }) }
      const env = { PORT: String(config.PORT), ...(command === 'serve' && { BACKGROUND_WORK: 'off' }) }
      return cluster.fork({ ...toEnvironment(parameters), ...env })
    },
  })
  const processes = [
    ...names.map((name, index) => describe(name, index, 'serve')),
    ...(hasBackground(config) ? [describe(BACKGROUND, config.WORKERS, 'work')] : []),
  ]
  const metrics = createMetrics('supervisor')
  const reads = new Map<number, (series: MetricSeries) => void>()
  let lastRead = 0

  const readMetrics = (name: string): Promise<MetricSeries> =>
    new Promise((resolve) => {
      lastRead += 1
      const id = lastRead
      const finish = (series: MetricSeries) => {
        clearTimeout(timer)
        reads.delete(id)
        resolve(series)
      }
      const timer = setTimeout(finish, READ_METRICS_MS, [])
      reads.set(id, finish)
      send(name, { kind: 'read-metrics', id })
    })

  const onMessage = async (from: string, message: ToSupervisor) => {
    const others = pool.ready().filter((name) => name !== from)
    if (message.kind === 'admitted')
      for (const name of others) if (name !== BACKGROUND) send(name, { kind: 'admitted', requests: message.requests })
    if (message.kind === 'metrics') reads.get(message.id)?.(message.series)
    if (message.kind === 'collect') {
      const series = await Promise.all([metrics.registry.getMetricsAsJSON(), ...others.map(readMetrics)])
      send(from, { kind: 'collected', id: message.id, series })
    }
  }

  const onChange = () => {
    const ready = pool.ready()
    const background = !hasBackground(config) ? 'off' : ready.includes(BACKGROUND) ? 'running' : 'restarting'
    const workersReady = ready.filter((name) => name !== BACKGROUND).length
    const counts = { workers: config.WORKERS, workers_ready: workersReady, background } as const
    for (const name of ready) send(name, { kind: 'counts', counts })
  }

  const pool = createProcessPool({
    processes,
    log,
    stopTimeoutMs: config.SHUTDOWN_SECONDS * 1000 + STOP_MARGIN_MS,
    onMessage: (name, message) => void onMessage(name, message as ToSupervisor),
    onChange,
    onCrashLoop,
  })
  const send = (name: string, message: FromSupervisor) => pool.send(name, message)
  return pool
}
