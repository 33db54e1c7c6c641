/**
 * `npm run test:soak -- failover`: a few kills. `npm run test:failover`: twenty minutes of them.
 *
 * Real service processes on a real cluster (ops/cluster) under mixed load, while the database's primary, a service process
 * and etcd's leader are killed with SIGKILL. After each kill everything that was acknowledged must be there, charged once.
 *
 * Options: --seed N, --rounds N, --minutes N, --processes N, --folder PATH, --connect proxy|hosts|both (through HAProxy, with
 * several hosts in DATABASE_URL, or one process after the other), --chain embedded|outside (whose journal is in the
 * database, or a facilitator and a chain that no kill touches), --only TEXT (kills with
 * this in their names), --asynchronous (a cluster that loses commits: passes when the checks find that).
 */
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { createCluster, missingPackages, waitFor } from '../../../ops/cluster/cluster.ts'
import { openReceiver } from '../webhooks/receiver.ts'
import { checkEverything } from './checks.ts'
import { createLoad } from './load.ts'
import { startOutsideChain } from './outside-chain.ts'
import { createProcesses, serviceEnv } from './processes.ts'
import { createRandom } from './random.ts'

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    rounds: { type: 'string', default: '7' },
    minutes: { type: 'string' },
    processes: { type: 'string', default: '2' },
    folder: { type: 'string' },
    connect: { type: 'string', default: 'proxy' },
    chain: { type: 'string', default: 'embedded' },
    only: { type: 'string', default: '' },
    asynchronous: { type: 'boolean', default: false },
  },
})
const missing = missingPackages()
if (missing.length > 0) {
  console.error(
    `Not installed: ${missing.join(', ')}. On Debian: apt-get update && apt-get install -y ${missing.join(' ')}`,
  )
  process.exit(2)
}
const PRINTED_FAULTS = 25
/** `ttl` less `safety_margin` of patroni.yaml. */
const WATCHDOG_MS = 15_000
const seed = Number(values.seed)
const random = createRandom(seed)
const folder = values.folder ?? mkdtempSync(join(tmpdir(), 'countersign-failover-'))
// The cluster runs as another user when root starts it.
chmodSync(folder, 0o755)
const cluster = await createCluster(join(folder, 'cluster'), { synchronous: !values.asynchronous })

const usesHosts = (index: number) => values.connect === 'hosts' || (values.connect === 'both' && index % 2 === 1)
const outside = values.chain === 'outside' ? await startOutsideChain(folder) : undefined
const processes = createProcesses(
  Array.from({ length: Number(values.processes) }, (_, index) => ({
    ...serviceEnv(usesHosts(index) ? cluster.hostsUrl : cluster.url, join(folder, `data-${index}`)),
    ...outside?.env,
  })),
)

/**
 * Stops the processes that receive the write-ahead log on the standbys: what commits now is on the primary only. They are
 * killed afterwards, so that what is in their sockets is lost as with a network that is cut.
 */
function cutReplication(primaryName: string): () => void {
  const pids = cluster.nodes.flatMap((node) => (node.name === primaryName ? [] : cluster.receiversOf(node)))
  for (const pid of pids) process.kill(pid, 'SIGSTOP')
  return () => {
    for (const pid of pids)
      try {
        process.kill(pid, 'SIGKILL')
      } catch {
        // It has ended.
      }
  }
}

const requirePrimary = () => waitFor('a primary', () => cluster.primary())

/** Each kind of kill; returns what starts again what was killed. */
const kills: Record<string, () => Promise<() => Promise<void> | void>> = {
  'PostgreSQL primary': async () => {
    cluster.killPostgres(await requirePrimary())
    return () => {}
  },
  'PostgreSQL primary and its Patroni': async () => {
    const node = await requirePrimary()
    cluster.killPostgres(node, { patroni: true })
    return async () => {
      await waitFor('another primary', async () => {
        const primary = await cluster.primary()
        return primary && primary.name !== node.name
      })
      cluster.startPatroni(node)
    }
  },
  'PostgreSQL primary, cut off from its standbys': async () => {
    const node = await requirePrimary()
    const killReceivers = cutReplication(node.name)
    await pause(1_500)
    cluster.killPostgres(node)
    killReceivers()
    return () => {}
  },
  'Patroni of the primary': async () => {
    const node = await requirePrimary()
    cluster.killPatroni(node)
    if (values.connect !== 'proxy') {
      // Nothing but the watchdog cuts these connections: it resets the machine before another node becomes primary.
      await pause(WATCHDOG_MS)
      cluster.killPostgres(node)
    }
    return async () => {
      await waitFor('another primary', async () => {
        const primary = await cluster.primary()
        return primary && primary.name !== node.name
      })
      // Through HAProxy there was no reset, and two accept connections now. Only one can acknowledge a commit.
      await pause(random.integer(30_000))
      cluster.startPatroni(node)
    }
  },
  'both standbys': async () => {
    const primary = await requirePrimary()
    for (const node of cluster.nodes) if (node.name !== primary.name) cluster.killPostgres(node)
    return () => {}
  },
  'service process': async () => {
    const index = random.integer(processes.count)
    await processes.kill(index)
    return () => processes.start(index)
  },
  "etcd's leader": async () => {
    const node = await waitFor("etcd's leader", () => cluster.etcdLeader())
    cluster.killEtcd(node)
    return async () => {
      await pause(3_000)
      cluster.startEtcd(node)
    }
  },
  'PostgreSQL primary and a service process': async () => {
    const index = random.integer(processes.count)
    cluster.killPostgres(await requirePrimary())
    await processes.kill(index)
    return () => processes.start(index)
  },
}

const http = outside ? { ...processes.http, balance: outside.balance } : processes.http
const startedAt = performance.now()
const elapsed = () => `${((performance.now() - startedAt) / 1000).toFixed(0).padStart(5)} s`
const say = (text: string) => console.log(`${elapsed()}  ${text}`)
const receiver = await openReceiver()
let failures: string[] = []
const killCounts: Record<string, number> = {}
const longest: Record<string, number> = {}
let load: Awaited<ReturnType<typeof createLoad>> | undefined
let ledgerChecks = 0
// Nothing is left running when somebody stops it.
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, async () => {
    await processes.close()
    outside?.close()
    await cluster.stop()
    process.exit(1)
  })
try {
  say(`seed ${seed}; the cluster is in ${folder}`)
  await cluster.start({ synchronous: !values.asynchronous })
  const metrics = await cluster.metrics()
  const rules = readFileSync(join(import.meta.dirname, '../../../ops/cluster/prometheus-rules.yaml'), 'utf8')
  for (const name of new Set(rules.match(/\b(?:patroni|etcd|haproxy)_[a-z_]+/g)))
    if (!new RegExp(`^${name}[ {]`, 'm').test(metrics)) failures.push(`the cluster has no metric ${name}`)
  await processes.startAll()
  load = await createLoad({ fetch: processes.fetch, http, random, receiverUrl: receiver.url, mint: outside?.mint })
  say(
    `${processes.count} service processes on three PostgreSQL nodes, connected by ${values.connect}, ${values.chain} chain`,
  )
  const loadStarted = performance.now()
  const isOver = (round: number) =>
    values.minutes ? performance.now() - loadStarted > Number(values.minutes) * 60_000 : round >= Number(values.rounds)
  const checkNow = (all = false) => {
    ledgerChecks += 1
    return checkEverything(
      {
        load: load!,
        http,
        receiver,
        databaseUrl: cluster.url,
        env: processes.env,
        random,
        isExpectedToFail: values.asynchronous,
      },
      { all },
    )
  }
  let planned: string[] = []
  for (let round = 0; !isOver(round) && failures.length === 0; round += 1) {
    if (planned.length === 0) planned = random.shuffle(Object.keys(kills).filter((kind) => kind.includes(values.only)))
    const kind = values.asynchronous ? 'PostgreSQL primary, cut off from its standbys' : planned.pop()!
    load.start()
    await pause(2_000 + random.integer(4_000))
    const killedAt = performance.now()
    const acknowledgedBefore = load.acknowledged.length
    const restart = await kills[kind]!()
    killCounts[kind] = (killCounts[kind] ?? 0) + 1
    await restart()
    await waitFor('the cluster to be whole', () => cluster.isWhole(!values.asynchronous), 180_000)
    // Work goes on until somebody was served after the kill, and a little longer.
    await waitFor(
      'a run that is acknowledged after the kill',
      () => load!.outages.some(({ from, ms }) => from + ms > killedAt + 500),
      180_000,
    )
    await pause(2_000)
    const outage = Math.max(0, ...load.outages.filter(({ from, ms }) => from + ms > killedAt).map(({ ms }) => ms))
    longest[kind] = Math.max(longest[kind] ?? 0, outage)
    await load.settle()
    writeFileSync(join(folder, 'service.log'), processes.output())
    say(
      `round ${round + 1}: ${kind} killed; ${(outage / 1000).toFixed(1)} s without service; ${load.acknowledged.length - acknowledgedBefore} runs acknowledged since, ${load.acknowledged.length} in all`,
    )
    failures = [...(await checkNow()), ...load.faults, ...processes.deaths]
  }
  await load.stop()
  if (failures.length === 0) failures = [...(await checkNow(true)), ...load.faults, ...processes.deaths]
} catch (error) {
  failures.push(String((error as Error).stack ?? error), ...(load?.faults ?? []), ...processes.deaths)
} finally {
  console.log(JSON.stringify(load?.counts ?? {}))
  console.table(
    Object.fromEntries(
      Object.entries(killCounts).map(([kind, kills]) => [
        kind,
        { kills, 'longest without service, s': Number(((longest[kind] ?? 0) / 1000).toFixed(1)) },
      ]),
    ),
  )
  const total = Object.values(killCounts).reduce((all, number) => all + number, 0)
  say(
    `${total} kills, ${load?.acknowledged.length ?? 0} acknowledged runs, ${receiver.received.length} webhooks, ${ledgerChecks} checks; longest time without service ${(Math.max(0, ...Object.values(longest)) / 1000).toFixed(1)} s, longest wait of one caller ${((load?.longestCallMs() ?? 0) / 1000).toFixed(1)} s`,
  )
  for (const failure of failures.slice(0, PRINTED_FAULTS)) console.log(`FAULT ${failure}`)
  if (failures.length > PRINTED_FAULTS) console.log(`FAULT … and ${failures.length - PRINTED_FAULTS} more`)
  say(
    failures.length === 0
      ? 'no acknowledged run lost, none charged twice, books balanced, log consistent, webhooks delivered'
      : `${failures.length} faults`,
  )
  writeFileSync(join(folder, 'service.log'), processes.output())
  await processes.close()
  outside?.close()
  await cluster.stop()
  await receiver.close()
  if (failures.length === 0 && !values.folder) rmSync(folder, { recursive: true, force: true })
  else say(`logs are in ${folder}`)
}
process.exit((failures.length === 0) === !values.asynchronous ? 0 : 1)
