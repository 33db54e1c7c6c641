// Runs what takes longer than `.ci/run` can bear, one after the other. `npm run test:soak -- fuzz mutation` runs some of it;
// options after the names go to each of them: `npm run test:soak -- failover --minutes 20`.
import { spawn } from 'node:child_process'

const soaks = [
  { name: 'fuzz', about: '200,000 mutated requests', args: ['server/test/fuzz/main.ts', '--requests=200000'] },
  {
    name: 'neighbours',
    about: 'a victim beside each attack, the table printed',
    args: ['server/bench/bench.ts', 'neighbours'],
  },
  {
    name: 'worlds',
    about: '3,000 random worlds against the model of governance, then 200 under parallel callers',
    args: ['scripts/test-long.mjs', 'server/test/governance/worlds'],
    env: { WORLDS: '3000', RACE_WORLDS: '200' },
  },
  {
    name: 'image',
    about: 'the steps of deploy/Dockerfile in clean folders, and its service as a user who owns nothing there',
    args: ['server/test/deploy/image.ts'],
  },
  {
    name: 'facilitator-faults',
    about: 'a facilitator with every kind of fault and 1,000 paid runs, compared with what the chain shows',
    args: ['scripts/test-long.mjs', 'server/test/money/faults'],
    env: { FACILITATOR_FAULT_RUNS: '1000' },
  },
  {
    name: 'sdk-faults',
    about: 'the SDK against 503s, drops, 30-second answers and restarts, 200 runs each, counted on the chain',
    args: ['scripts/test-long.mjs', 'sdk/test/faults'],
    env: { SDK_FAULT_RUNS: '200', SDK_FAULT_SLOW_MS: '30000' },
  },
  {
    name: 'other-software',
    about: 'clients, servers and tools of other people, installed from npm (two gigabytes, one after the other)',
    args: ['server/test/other-software/main.ts'],
  },
  {
    name: 'release',
    about: 'npm run release in a clone, published to a registry on loopback, and what it must refuse',
    args: ['scripts/test-long.mjs', 'server/test/packages/release'],
    env: { RELEASE_REGISTRY: 'verdaccio' },
  },
  {
    name: 'split-view',
    about: 'a log that lies to a monitor and three witnesses over 1,000 seeds an attack, and 10,000 honest logs',
    args: ['server/test/split-view/main.ts'],
  },
  {
    name: 'sumdb',
    about: "a log, a witness and a verifier on Go's golang.org/x/mod/sumdb, from Debian's packages",
    args: ['server/test/sumdb/main.ts'],
  },
  {
    name: 'upgrade',
    about: 'processes of an earlier commit under load, replaced one after the other by new ones on the same database',
    args: ['server/test/upgrade/main.ts'],
  },
  {
    name: 'old-folder',
    about: 'a data folder of an earlier commit with 100,000 runs, opened by this one, the time printed (15 minutes)',
    args: ['server/test/old-folder/main.ts'],
  },
  {
    name: 'idle',
    about: 'what an idle service asks its database in a minute, behind 100,000 rows',
    args: ['scripts/test-long.mjs', 'server/test/idle-cost'],
    env: { IDLE_COST: 'on' },
  },
  {
    name: 'failover',
    about:
      "SIGKILL of the database's primary, of service processes and of etcd's leader under load (Debian's packages)",
    args: ['server/test/failover/main.ts'],
  },
  {
    name: 'restore',
    about: 'a base backup and archived WAL restored to a point in time, its books and its log checked',
    args: ['server/test/failover/restore.ts'],
  },
  {
    name: 'faults',
    about: 'faults of database, Redis, facilitator, chain, webhooks, models, disk and clock under load (--minutes 4)',
    args: ['server/test/faults/main.ts'],
  },
  { name: 'mutation', about: 'mutation tests of the pure files', args: ['scripts/test-mutation.mjs'] },
]

const words = process.argv.slice(2)
const firstOption = words.findIndex((word) => word.startsWith('--'))
const names = firstOption === -1 ? words : words.slice(0, firstOption)
const options = firstOption === -1 ? [] : words.slice(firstOption)
if (options.length > 0 && names.length === 0) {
  console.error('Options go to a soak: name it first.')
  process.exit(2)
}
const unknown = names.filter((name) => !soaks.some((soak) => soak.name === name))
if (unknown.length > 0) {
  console.error(`Unknown: ${unknown.join(', ')}. There are ${soaks.map(({ name }) => name).join(', ')}.`)
  process.exit(2)
}

const run = ({ args, env }) =>
  new Promise((resolve) =>
    spawn(process.execPath, ['--disable-warning=ExperimentalWarning', ...args, ...options], {
      stdio: 'inherit',
      env: { ...process.env, ...env },
    }).on('exit', (code) => resolve(code ?? 1)),
  )

const results = []
for (const soak of soaks.filter(({ name }) => names.length === 0 || names.includes(name))) {
  console.log(`\n=== ${soak.name}: ${soak.about}`)
  const started = Date.now()
  const code = await run(soak)
  results.push({ name: soak.name, code, minutes: ((Date.now() - started) / 60_000).toFixed(1) })
}
for (const { name, code, minutes } of results)
  console.log(`${code === 0 ? 'passed' : 'FAILED'} ${name} (${minutes} min)`)
process.exit(results.some(({ code }) => code !== 0) ? 1 : 0)
