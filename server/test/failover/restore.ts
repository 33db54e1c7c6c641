/**
 * `npm run test:soak -- restore`: a base backup of a cluster under load, a failover, then everything is restored from the
 * backup and the archived write-ahead log: once to a point in time, once to the end. The books must balance, what was
 * acknowledged before that point must be there, and a client that remembers a checkpoint from before must find the log
 * consistent; one that remembers a later checkpoint must object.
 */
import { spawnSync } from 'node:child_process'
import {
  appendFileSync,
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { type CheckpointStore, memoryCheckpoints, rememberCheckpoint } from '@countersign/proof'
import pg from 'pg'
import { createCluster, missingPackages, waitFor } from '../../../ops/cluster/cluster.ts'
import { findFreePort } from '../free-port.ts'
import { openReceiver } from '../webhooks/receiver.ts'
import { checkLedger } from './checks.ts'
import { type Acknowledged, createLoad, type Http } from './load.ts'
import { createProcesses, serviceEnv } from './processes.ts'
import { createRandom } from './random.ts'

const missing = missingPackages()
if (missing.length > 0) {
  console.error(
    `Not installed: ${missing.join(', ')}. On Debian: apt-get update && apt-get install -y ${missing.join(' ')}`,
  )
  process.exit(2)
}
const LOAD_MS = 4_000
const PG_CTL = '/usr/lib/postgresql/15/bin/pg_ctl'
const folder = mkdtempSync(join(tmpdir(), 'countersign-restore-'))
chmodSync(folder, 0o755)
const cluster = await createCluster(join(folder, 'cluster'))
const processes = createProcesses([serviceEnv(cluster.url, join(folder, 'data'))])
const receiver = await openReceiver()
const failures: string[] = []
const stops: (() => void)[] = []

const run = (program: string, ...args: string[]) => {
  const { status, stdout, stderr } = spawnSync(program, args, {
    ...cluster.account,
    cwd: cluster.folder,
    encoding: 'utf8',
    timeout: 120_000,
  })
  if (status !== 0) throw new Error(`${program} ${args.join(' ')} ended with ${status}: ${stdout}${stderr}`)
  return stdout
}
const expect = (condition: boolean, text: string) => {
  console.log(`${condition ? 'ok   ' : 'FAULT'} ${text}`)
  if (!condition) failures.push(text)
}

/** What a client that remembers this checkpoint says of the log as it is now. */
async function compareLog(http: Http, rememberedNote: string) {
  const store: CheckpointStore = memoryCheckpoints()
  const { body: jwks } = await http.get('/.well-known/jwks.json')
  const origin = rememberedNote.split('\n')[0]!
  await store.write(origin, rememberedNote)
  const { text } = await http.get('/api/log/checkpoint')
  const { check } = await rememberCheckpoint(text, {
    store,
    origin,
    keys: jwks.keys,
    before: rememberedNote,
    fetchConsistency: async (from, to) =>
      (await http.get(`/api/log/consistency?from=${from}&to=${to}`)).body.proof ?? [],
    now: new Date(),
  })
  return check
}

/** Restores to a time and starts PostgreSQL and the service on it. */
async function restoreTo(name: string, time: string) {
  const target = join(cluster.folder, name)
  run(join(cluster.folder, 'restore'), join(cluster.folder, 'backup'), cluster.archiveFolder, target, time)
  appendFileSync(join(target, 'pg_hba.conf'), 'host all all 127.0.0.1/32 scram-sha-256\n')
  const port = await findFreePort()
  const sockets = join(cluster.folder, `${name}-socket`)
  mkdirSync(sockets)
  if (cluster.account.uid !== undefined) chownSync(sockets, cluster.account.uid, cluster.account.gid!)
  const options = `-c port=${port} -c listen_addresses=127.0.0.1 -c unix_socket_directories=${sockets}`
  const log = join(cluster.folder, 'log', `${name}.log`)
  run('/bin/sh', '-c', `${PG_CTL} -D ${target} -w -t 100 -l ${log} -o "${options}" start`)
  stops.push(() => run(PG_CTL, '-D', target, '-m', 'fast', '-w', 'stop'))
  const url = cluster.url.replace(/:\d+\/countersign$/, `:${port}/countersign`)
  const client = new pg.Client({ connectionString: url })
  await waitFor('the restored server to accept writes', async () => {
    const probe = new pg.Client({ connectionString: url })
    await probe.connect()
    const { rows } = await probe.query<{ recovering: boolean }>('select pg_is_in_recovery() as recovering')
    await probe.end()
    return rows[0]?.recovering === false
  })
  await client.connect()
  const restored = createProcesses([serviceEnv(url, join(folder, `data-${name}`))])
  await restored.startAll()
  return {
    http: restored.http,
    env: restored.env,
    async missingOf(list: readonly Acknowledged[]) {
      const { rows } = await client.query<{ id: string }>(
        `select asked.id from unnest($1::text[]) as asked(id)
         where not exists (select from runs join receipts on receipts.run_id = runs.id and receipts.kind = 'run'
                           where runs.id = asked.id and runs.state = 'completed')`,
        [list.map(({ runId }) => runId)],
      )
      return rows.map(({ id }) => id)
    },
    async close() {
      await client.end()
      await restored.close()
    },
  }
}

// Nothing is left running when somebody stops it.
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, async () => {
    await processes.close()
    for (const stop of stops) stop()
    await cluster.stop()
    process.exit(1)
  })
try {
  await cluster.start()
  await processes.startAll()
  const load = await createLoad({
    fetch: processes.fetch,
    http: processes.http,
    random: createRandom(1),
    receiverUrl: receiver.url,
  })
  const work = async () => {
    load.start()
    await pause(LOAD_MS)
    await load.settle()
    // Receipts get their place in the log a moment later.
    await waitFor('all receipts to be in the log', async () => {
      const last = load.acknowledged.at(-1)
      if (!last) return true
      const { body } = await processes.http.get(`/api/receipts/${last.receiptId}`, load.tenant.headers)
      return body?.log?.checkpoint !== undefined
    })
    return (await processes.http.get('/api/log/checkpoint')).text
  }
  await work()
  // The backup is taken while the load goes on.
  load.start()
  const primary = await waitFor('a primary', () => cluster.primary())
  run(join(cluster.folder, 'base-backup'), join(cluster.folder, 'backup'), cluster.replicationUrl(primary))
  await load.settle()
  cluster.killPostgres(primary)
  await waitFor('another primary', async () => {
    const next = await cluster.primary()
    return next && next.name !== primary.name
  })
  await waitFor('the cluster to be whole', () => cluster.isWhole())

  const checkpointBefore = await work()
  const acknowledgedBefore = [...load.acknowledged]
  const current = await waitFor('a primary', () => cluster.primary())
  const [{ time }] = (await cluster.asAdmin<{ time: string }>(
    current,
    `select (clock_timestamp() at time zone 'utc')::text || '+00' as time`,
  )) as [{ time: string }]
  const checkpointAfter = await work()
  const acknowledgedAfter = load.acknowledged.slice(acknowledgedBefore.length)
  await load.stop()
  failures.push(...load.faults)
  await processes.close()
  const [{ segment }] = (await cluster.asAdmin<{ segment: string }>(
    current,
    'select pg_walfile_name(pg_switch_wal()) as segment',
  )) as [{ segment: string }]
  await waitFor('the last segment in the archive', () => readdirSync(cluster.archiveFolder).includes(segment))
  await cluster.stop()
  console.log(
    `${acknowledgedBefore.length} runs acknowledged before ${time} and ${acknowledgedAfter.length} after it; ${readdirSync(cluster.archiveFolder).length} files in the archive`,
  )

  const past = await restoreTo('past', time)
  const lostBefore = await past.missingOf(acknowledgedBefore)
  expect(lostBefore.length === 0, `what was acknowledged before the point in time is there: ${lostBefore.join(', ')}`)
  const lostAfter = await past.missingOf(acknowledgedAfter)
  expect(
    acknowledgedAfter.length > 0 && lostAfter.length === acknowledgedAfter.length,
    'what was acknowledged after it is not',
  )
  const pastFaults = await checkLedger(past.env)
  expect(pastFaults.length === 0, `ledger check of the point in time: ${pastFaults.join('\n')}`)
  const consistent = await compareLog(past.http, checkpointBefore)
  expect(consistent.ok === true, `a client with a checkpoint from before: ${JSON.stringify(consistent)}`)
  const rolledBack = await compareLog(past.http, checkpointAfter)
  expect(rolledBack.ok === false, `a client with a checkpoint from after objects: ${JSON.stringify(rolledBack)}`)
  await past.close()

  const end = await restoreTo('end', 'latest')
  const lost = await end.missingOf(load.acknowledged)
  expect(lost.length === 0, `restored to the end of the archive nothing is lost: ${lost.join(', ')}`)
  const endFaults = await checkLedger(end.env)
  expect(endFaults.length === 0, `ledger check of the end: ${endFaults.join('\n')}`)
  const whole = await compareLog(end.http, checkpointAfter)
  expect(whole.ok === true, `a client with the last checkpoint: ${JSON.stringify(whole)}`)
  await end.close()
} catch (error) {
  failures.push(String((error as Error).stack ?? error))
} finally {
  for (const failure of failures) console.log(`FAULT ${failure}`)
  await processes.close()
  for (const stop of stops) stop()
  await cluster.stop()
  await receiver.close()
  if (failures.length === 0) rmSync(folder, { recursive: true, force: true })
  else {
    writeFileSync(join(folder, 'service.log'), processes.output())
    console.log(`logs are in ${folder}`)
  }
}
process.exit(failures.length === 0 ? 0 : 1)
