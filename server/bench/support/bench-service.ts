import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import pg from 'pg'
import { startEmbeddedPostgres } from '../../src/adapters/postgres/embedded.ts'
import { createLog } from '../../src/platform/log.ts'
import { clients } from '../../test/harness.ts'

export const REPOSITORY = resolve(import.meta.dirname, '../../..')

const serviceEnv = {
  NODE_ENV: 'test',
  PORT: '0',
  LOG_LEVEL: 'silent',
  RATE_LIMIT_ANON_PER_MINUTE: '0',
  RATE_LIMIT_KEY_PER_MINUTE: '0',
  PAYER_EXPOSURE_USDC: '1000000',
  BENCHMARK_SUITE: 'off',
}

export type BenchService = Awaited<ReturnType<typeof startBenchService>>

/** `root` is the checkout to start; `arguments` follow `serve`. */
export type BenchServiceOptions = { root?: string; arguments?: string[]; env?: Record<string, string> }

/**
 * Starts the service as operators do: a process of its own with its embedded PostgreSQL and a new data folder, fsync on.
 * The cluster additionally has pg_stat_statements, which records nothing until `measureWrites`.
 */
export async function startBenchService(options: BenchServiceOptions = {}) {
  const dataDir = mkdtempSync(join(tmpdir(), 'countersign-bench-'))
  try {
    await prepareCluster(dataDir)
    return await startOn(dataDir, options)
  } catch (error) {
    rmSync(dataDir, { recursive: true, force: true })
    throw error
  }
}

/** Creates the cluster before the service does, because the library of the statement statistics is loaded at its start. */
async function prepareCluster(dataDir: string) {
  const postgres = await startEmbeddedPostgres({ dataDir, log: createLog('silent') })
  try {
    const { host, port, database } = postgres.connection
    const client = new pg.Client({ host, port, user: 'postgres', database })
    await client.connect()
    await client.query(`alter system set shared_preload_libraries = 'pg_stat_statements'`)
    await client.query('create schema bench')
    await client.query('create extension pg_stat_statements schema bench')
    await client.query('create extension pg_walinspect schema bench')
    await client.end()
  } finally {
    await postgres.stop()
  }
}

async function startOn(dataDir: string, { root = REPOSITORY, arguments: flags = [], env = {} }: BenchServiceOptions) {
  const child = spawn(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', 'server/src/main.ts', 'serve', ...flags],
    {
      cwd: root,
      env: {
        PATH: process.env.PATH,
        HOME: process.env.HOME,
        TMPDIR: process.env.TMPDIR,
        ...serviceEnv,
        COUNTERSIGN_DATA_DIR: dataDir,
        ...env,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  )
  const exited = new Promise<number | string>((resolveExit) =>
    child.once('exit', (code, signal) => resolveExit(signal ?? code ?? 0)),
  )
  let output = ''
  const url = await new Promise<string>((resolveUrl, reject) => {
    const readOutput = (chunk: Buffer) => {
      output = `${output}${chunk}`.slice(-20_000)
      const match = /listens on (http:\/\/\S+)/.exec(output)
      if (match) resolveUrl(match[1]!)
    }
    child.stdout.on('data', readOutput)
    child.stderr.on('data', readOutput)
    exited.then((reason) => reject(new Error(`The service ended (${reason}) before it listened:\n${output}`)))
  })
  const [postmasterPid, , , , socketFolder] = readFileSync(join(dataDir, 'postgres', 'postmaster.pid'), 'utf8').split(
    '\n',
  )
  const client = new pg.Client({ host: socketFolder, port: 5432, user: 'postgres', database: 'countersign' })
  await client.connect()
  /** Runs one statement as the superuser. */
  const query = async <Row extends pg.QueryResultRow>(text: string, values: unknown[] = []): Promise<Row[]> =>
    (await client.query<Row>(text, values)).rows
  await query(`alter system set pg_stat_statements.track = 'none'`)
  await query('select pg_reload_conf()')
  return {
    url,
    port: Number(new URL(url).port),
    pid: child.pid!,
    postmasterPid: Number(postmasterPid),
    dataDir,
    socketFolder: socketFolder!,
    query,
    ...clients(url),
    output: () => output,
    async stop() {
      await client.end()
      child.kill('SIGTERM')
      await exited
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
}
