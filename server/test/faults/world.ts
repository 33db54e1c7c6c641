import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statfsSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { startEmbeddedPostgres } from '../../src/adapters/postgres/embedded.ts'
import { createLog } from '../../src/platform/log.ts'
import { findFreePort } from '../free-port.ts'
import { spawnService } from '../harness.ts'
import { startModelServer } from '../model-server.ts'
import { openReceiver } from '../webhooks/receiver.ts'
import { type FaultProxy, startFaultProxy } from './fault-proxy.ts'

export const PARTS = ['postgres', 'redis', 'facilitator', 'chain', 'webhooks', 'models'] as const
export type Part = (typeof PARTS)[number]

export type Service = Awaited<ReturnType<typeof spawnService>>
export type FaultWorld = Awaited<ReturnType<typeof openFaultWorld>>

const DISK_MEGABYTES = 700
const PAY_TO = '0x00000000000000000000000000000000000000fa'
const secrets = { SIGNING_KEY: 's'.repeat(40), ENCRYPTION_KEY: 'e'.repeat(40), ADMIN_KEY: 'a'.repeat(40) }

/** What a soak cannot do on this machine, and how to make it possible. */
export function findMissing(): string[] {
  const has = (command: string) =>
    (process.env.PATH ?? '').split(':').some((folder) => existsSync(join(folder, command)))
  return [
    ...(has('redis-server') ? [] : ['no redis-server: no faults of Redis (apt-get install redis-server)']),
    ...(findFaketime() ? [] : ['no libfaketime: no steps of the clock (apt-get install faketime)']),
    ...(process.getuid?.() === 0
      ? []
      : ['not root, so no file system of its own for PostgreSQL: the disk is never full']),
  ]
}

function findFaketime(): string | undefined {
  return readdirSync('/usr/lib')
    .map((name) => join('/usr/lib', name, 'faketime/libfaketime.so.1'))
    .find((path) => existsSync(path))
}

/**
 * Two service processes as an operator runs them, with a fault proxy before every part they need. PostgreSQL's files are on
 * a file system of their own, which can be filled, and the second process has a clock that can be moved.
 */
export async function openFaultWorld({
  seed,
  log,
  serviceCount = 2,
}: {
  seed: number
  log: (line: string) => void
  serviceCount?: number
}) {
  const cleanups: (() => unknown)[] = []
  const close = async () => {
    for (const clean of cleanups.splice(0).reverse())
      await Promise.resolve(clean()).catch((error) => log(`cleaning up: ${error}`))
  }
  try {
    const folder = mkdtempSync(join(tmpdir(), 'countersign-faults-'))
    cleanups.push(() => rmSync(folder, { recursive: true, force: true }))
    execFileSync('chmod', ['755', folder])
    const disk = mountDisk(join(folder, 'disk'), cleanups)
    const postgres = await startEmbeddedPostgres({
      dataDir: join(folder, 'disk/data'),
      systemDir: join(folder, 'system'),
      log: createLog('silent'),
      settings: { max_wal_size: '128MB', min_wal_size: '64MB' },
    })
    cleanups.push(() => postgres.stop())
    const { host, port, user, database } = postgres.connection
    const directUrl = `postgres://${user}@localhost:${port}/${database}?host=${encodeURIComponent(host)}`
    const pool = new pg.Pool({ connectionString: directUrl, max: 3 })
    pool.on('error', () => {})
    cleanups.push(() => pool.end())

    // The chain and the facilitator are another Countersign with a database of its own, as in another company.
    const chain = await spawnService({ COUNTERSIGN_DATA_DIR: join(folder, 'chain') })
    cleanups.push(() => chain.stop())
    const chainPort = Number(new URL(chain.url).port)
    const models = await startModelServer({ answerTask: () => ({ text: 'Why did the clock blush? It was wound up.' }) })
    cleanups.push(() => models.close())
    const receiver = await openReceiver()
    cleanups.push(() => receiver.close())
    const redisPort = await startRedis(cleanups)

    const proxies = {} as Record<Part, FaultProxy>
    const targets: Record<Part, Parameters<typeof startFaultProxy>[0] | undefined> = {
      postgres: { path: join(host, `.s.PGSQL.${port}`) },
      redis: redisPort === undefined ? undefined : { port: redisPort },
      facilitator: { port: chainPort },
      chain: { port: chainPort },
      webhooks: { port: receiver.port },
      models: { port: Number(new URL(models.url).port) },
    }
    for (const [index, part] of PARTS.entries()) {
      const target = targets[part]
      if (!target) continue
      proxies[part] = await startFaultProxy(target, { seed: seed * 100 + index })
      cleanups.push(() => proxies[part].close())
    }

    const settings = {
      ...secrets,
      PAY_TO_ADDRESS: PAY_TO,
      RATE_LIMIT_ANON_PER_MINUTE: '1000000',
      RATE_LIMIT_KEY_PER_MINUTE: '1000000',
      PREAUTH_CLOSE_SECONDS: '7200',
      LANE_PROVIDER: 'openai-compatible',
      LANE_MODEL: 'test-model',
      LANE_USD_PER_MILLION_INPUT: '1',
      LANE_USD_PER_MILLION_OUTPUT: '2',
      LANE_TIMEOUT_MS: '10000',
      LANE_STALL_MS: '5000',
      LANE_RETRIES: '1',
      RUN_DEADLINE_SECONDS: '30',
    }
    const direct = {
      DATABASE_URL: directUrl,
      FACILITATOR_URL: `${chain.url}/facilitator`,
      CHAIN_RPC_URL: `${chain.url}/api/dev/rpc`,
      LANE_BASE_URL: models.url,
    }
    const proxied = {
      DATABASE_URL: `postgres://${user}@127.0.0.1:${proxies.postgres.port}/${database}`,
      ...(proxies.redis && { REDIS_URL: `redis://127.0.0.1:${proxies.redis.port}` }),
      FACILITATOR_URL: `${proxies.facilitator.url}/facilitator`,
      CHAIN_RPC_URL: `${proxies.chain.url}/api/dev/rpc`,
      LANE_BASE_URL: `${proxies.models.url}/v1`,
    }
    const clock = makeClock(join(folder, 'clock'))
    const services: Service[] = []
    for (const env of [{}, clock.env].slice(0, serviceCount)) {
      const service = await spawnService({
        ...settings,
        ...proxied,
        LOG_LEVEL: 'warn',
        COUNTERSIGN_DATA_DIR: join(folder, `service-${services.length}`),
        ...env,
      })
      services.push(service)
      cleanups.push(() => service.stop())
    }
    return {
      folder,
      services,
      chain,
      proxies,
      pool,
      receiver,
      payTo: PAY_TO,
      webhookUrl: `${proxies.webhooks.url}/hook`,
      disk,
      clock: clock.env.LD_PRELOAD ? clock : undefined,
      /** The settings of a service process that no fault reaches, for `ledger-check`. */
      directSettings: { ...settings, ...direct },
      close,
    }
  } catch (error) {
    await close()
    throw error
  }
}

/** A file system in memory with the size of a small disk; undefined when this process is not root. */
function mountDisk(path: string, cleanups: (() => unknown)[]) {
  mkdirSync(path, { mode: 0o755 })
  if (process.getuid?.() !== 0) return undefined
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK_MEGABYTES}m,mode=0755`, 'tmpfs', path])
  cleanups.push(() => execFileSync('umount', ['-l', path]))
  const ballast = join(path, 'ballast')
  return {
    fill() {
      const { bavail, bsize } = statfsSync(path)
      writeFileSync(ballast, '')
      // What is allocated cannot be used by anybody else, and costs no time.
      try {
        execFileSync('fallocate', ['-l', String(bavail * bsize), ballast], { stdio: 'ignore' })
      } catch {
        // The server took some of it meanwhile.
        execFileSync('fallocate', ['-l', String(Math.max(4096, (bavail - 64) * bsize)), ballast], { stdio: 'ignore' })
      }
    },
    free: () => rmSync(ballast, { force: true }),
  }
}

async function startRedis(cleanups: (() => unknown)[]): Promise<number | undefined> {
  if (findMissing().some((line) => line.startsWith('no redis-server'))) return undefined
  const port = await findFreePort()
  const child: ChildProcess = spawn(
    'redis-server',
    ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'],
    { stdio: ['ignore', 'pipe', 'ignore'] },
  )
  cleanups.push(() => child.kill())
  await new Promise<void>((ready, failed) => {
    child.stdout!.on('data', (chunk) => String(chunk).includes('Ready to accept') && ready())
    child.once('exit', (code) => failed(new Error(`redis-server ended with ${code}.`)))
  })
  return port
}

/** The clock of one process, moved by Debian's libfaketime; its monotonic clock runs on, as after a real step. */
function makeClock(file: string) {
  const library = findFaketime()
  const step = (seconds: number) => writeFileSync(file, `${seconds < 0 ? '' : '+'}${seconds}\n`)
  step(0)
  const env: Record<string, string> = library
    ? { LD_PRELOAD: library, FAKETIME_TIMESTAMP_FILE: file, FAKETIME_NO_CACHE: '1', FAKETIME_DONT_FAKE_MONOTONIC: '1' }
    : {}
  return { env, step }
}

export function readRssMegabytes(pid: number): number {
  const line = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))
  return Math.round(Number(line?.[1] ?? 0) / 1024)
}
