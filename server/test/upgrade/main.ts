/**
 * `npm run test:soak -- upgrade`: real processes of an earlier commit under mixed load, replaced one after the other by
 * processes of this one on the same database, with a `kill -9` on each side in between. Everything that was acknowledged
 * must be there, charged once.
 *
 * Options: --from COMMIT, --seed N, --seconds N (of load in each stage).
 */
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { checkOut } from '../../bench/support/old-checkout.ts'
import { startEmbeddedPostgres } from '../../src/adapters/postgres/embedded.ts'
import { silentLog } from '../database.ts'
import { checkEverything } from '../failover/checks.ts'
import { createLoad } from '../failover/load.ts'
import { serviceEnv } from '../failover/processes.ts'
import { createRandom } from '../failover/random.ts'
import { clients, spawnService } from '../harness.ts'
import { openReceiver } from '../webhooks/receiver.ts'

/** The last commit without leases and schema versions. */
const RELEASE_BEFORE = 'e0cfaf9'
const PROCESSES = 3

const { values } = parseArgs({
  options: {
    from: { type: 'string', default: RELEASE_BEFORE },
    seed: { type: 'string', default: '1' },
    seconds: { type: 'string', default: '8' },
  },
})
const stageMs = Number(values.seconds) * 1000
const checkout = checkOut(values.from)
if ('reason' in checkout) {
  console.error(`No earlier commit to start from: ${checkout.reason}.`)
  process.exit(2)
}
const oldRoot = checkout.root
const folder = mkdtempSync(join(tmpdir(), 'countersign-upgrade-'))
// The database server runs as another user when root starts it.
chmodSync(folder, 0o755)
const postgres = await startEmbeddedPostgres({
  dataDir: join(folder, 'database'),
  systemDir: join(folder, 'system'),
  log: silentLog,
})
const { host, port, user, database } = postgres.connection
const databaseUrl = `postgres://${user}@localhost:${port}/${database}?host=${encodeURIComponent(host)}`
const env = serviceEnv(databaseUrl, join(folder, 'data'))

type Service = Awaited<ReturnType<typeof spawnService>> & { release: 'old' | 'new' }
const services: Service[] = []
const deaths: string[] = []
const stopped = new Set<Service>()

async function start(release: 'old' | 'new') {
  const started = await spawnService(env, release === 'old' ? oldRoot : undefined)
  const service = Object.assign(started, { release })
  services.push(service)
  service.exited.then((reason) => {
    if (!stopped.has(service))
      deaths.push(`a process of the ${release} release ended (${reason}):\n${service.output().slice(-3_000)}`)
  })
}

/** As behind a load balancer: no new request, then the signal. */
async function stop(release: 'old' | 'new', signal: NodeJS.Signals) {
  const service = services.find((candidate) => candidate.release === release)!
  stopped.add(service)
  // A killed process is noticed by its callers only.
  if (signal !== 'SIGKILL') services.splice(services.indexOf(service), 1)
  await service.stop(signal)
  if (signal === 'SIGKILL') services.splice(services.indexOf(service), 1)
}

let turn = 0
const nextUrl = () => services[turn++ % services.length]!.url
const balancedFetch: typeof fetch = async (input, init) => {
  const { pathname, search } = new URL(String(input))
  return fetch(`${nextUrl()}${pathname}${search}`, init)
}
const http = new Proxy({} as ReturnType<typeof clients>, {
  get: (_, name: keyof ReturnType<typeof clients>) => clients(nextUrl())[name],
})

const startedAt = performance.now()
const say = (text: string) =>
  console.log(`${((performance.now() - startedAt) / 1000).toFixed(0).padStart(5)} s  ${text}`)
const receiver = await openReceiver()
const random = createRandom(Number(values.seed))
let failures: string[] = []
let load: Awaited<ReturnType<typeof createLoad>> | undefined
try {
  for (let index = 0; index < PROCESSES; index++) await start('old')
  load = await createLoad({ fetch: balancedFetch, http, random, receiverUrl: receiver.url })
  const stage = async (what: string, act: () => Promise<void>) => {
    const before = load!.acknowledged.length
    const from = performance.now()
    await act()
    await pause(stageMs)
    const outage = Math.max(0, ...load!.outages.filter((gap) => gap.from + gap.ms > from).map((gap) => gap.ms))
    const processes = services.map(({ release }) => release).join(', ')
    say(
      `${what}: ${load!.acknowledged.length - before} runs acknowledged, ${(outage / 1000).toFixed(1)} s without service at most; now running: ${processes}`,
    )
  }
  load.start()
  await stage(`${PROCESSES} processes of ${values.from}`, async () => {})
  await stage('the first new process migrates', () => start('new'))
  await stage('an old process stopped', () => stop('old', 'SIGTERM'))
  await stage('an old process killed', () => stop('old', 'SIGKILL'))
  await stage('a second new process', () => start('new'))
  await stage('a new process killed beside an old one', () => stop('new', 'SIGKILL'))
  await stage('and replaced', () => start('new'))
  await stage('the last old process stopped', () => stop('old', 'SIGTERM'))
  await load.stop()
  failures = [
    ...(await checkEverything({ load, http, receiver, databaseUrl, env, random }, { all: true })),
    ...load.faults,
    ...deaths,
  ]
} catch (error) {
  failures.push(String((error as Error).stack ?? error), ...(load?.faults ?? []), ...deaths)
} finally {
  console.log(JSON.stringify(load?.counts ?? {}))
  for (const failure of failures) console.log(`FAULT ${failure}`)
  say(
    failures.length === 0
      ? `${load?.acknowledged.length} acknowledged runs: none lost, none charged twice, books balanced, log consistent, webhooks delivered`
      : `${failures.length} faults`,
  )
  for (const service of services) {
    stopped.add(service)
    await service.stop('SIGKILL')
  }
  await receiver.close()
  await postgres.stop()
  checkout.remove()
  rmSync(folder, { recursive: true, force: true })
}
process.exit(failures.length === 0 ? 0 : 1)
