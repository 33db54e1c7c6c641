import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { spawnService } from '../harness.ts'
import { fuzz } from './fuzz.ts'
import { openSurroundings } from './world.ts'

/** `npm run fuzz -- --seed=N --requests=N [--only=INDEX] [--concurrency=N]` against a service of its own, with its own database. */
const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: String(Math.floor(Date.now() / 86_400_000)) },
    requests: { type: 'string', default: '20000' },
    only: { type: 'string' },
    concurrency: { type: 'string', default: '8' },
  },
})
const dataDir = mkdtempSync(join(tmpdir(), 'countersign-fuzz-'))
const surroundings = await openSurroundings()
const service = await spawnService({ ...surroundings.env, COUNTERSIGN_DATA_DIR: dataDir, LOG_LEVEL: 'error' })
let failed = true
try {
  const started = Date.now()
  const { findings, sent, reached, statuses } = await fuzz({
    url: service.url,
    surroundings,
    seed: Number(values.seed),
    requests: Number(values.requests),
    only: values.only === undefined ? undefined : Number(values.only),
    concurrency: Number(values.concurrency),
    print: console.log,
  })
  failed = findings.length > 0
  const seconds = Math.round((Date.now() - started) / 1000)
  console.log(
    `seed ${values.seed}: ${sent} requests in ${seconds} s, ${reached.length} operations reached, ${findings.length} findings; answers by status ${JSON.stringify(statuses)}`,
  )
  if (failed) console.log(`Send one again with --seed=${values.seed} --only=INDEX.\n${service.output().slice(-6_000)}`)
} finally {
  await service.stop()
  await surroundings.close()
  rmSync(dataDir, { recursive: true, force: true })
}
process.exit(failed ? 1 : 0)
