import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative, resolve } from 'node:path'
import openapiTS, { astToString } from 'openapi-typescript'
import { startEmbeddedPostgres } from '../src/adapters/postgres/embedded.ts'
import { createService } from '../src/app.ts'
import { readConfig } from '../src/platform/config.ts'
import { openDatabase } from '../src/platform/db.ts'
import { describeApi } from '../src/platform/http-openapi.ts'
import { createLog } from '../src/platform/log.ts'
import { migrate } from '../src/platform/migrate.ts'
import { generateDbTypes } from './gen-db-types.ts'
import { generateSettingsPage } from './gen-settings-table.ts'

/** Writes all generated files. `--check` only reports which are out of date. */
const root = resolve(import.meta.dirname, '../..')
const isCheck = process.argv.includes('--check')
const dataDir = mkdtempSync(join(tmpdir(), 'countersign-gen-'))
const log = createLog('silent')
const postgres = await startEmbeddedPostgres({
  dataDir,
  log,
  settings: { fsync: 'off' },
  systemDir: join(dataDir, 'system'),
})
const stale: string[] = []

function writeGenerated(path: string, text: string) {
  const file = join(root, path)
  const current = readOrEmpty(file)
  if (current === text) return
  stale.push(relative(root, file))
  if (!isCheck) writeFileSync(file, text)
}

function readOrEmpty(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}

try {
  const database = openDatabase(postgres.connection, { max: 1, log })
  await migrate(database)
  const client = await database.connect()
  writeGenerated('server/src/platform/generated/db.ts', await generateDbTypes(client))
  await client.end()
  await database.close()

  const { host, port, user, database: name } = postgres.connection
  const url = `postgres://${user}@localhost:${port}/${name}?host=${encodeURIComponent(host)}`
  const config = readConfig({
    NODE_ENV: 'test',
    COUNTERSIGN_DATA_DIR: dataDir,
    DATABASE_URL: url,
    LOG_LEVEL: 'silent',
    PUBLIC_URL: 'http://127.0.0.1:4020',
  })
  const service = await createService(config, { log })
  await service.app.ready()
  const description = describeApi(service.app)
  await service.close()
  writeGenerated('openapi.json', `${JSON.stringify(description, null, 2)}\n`)
  writeGenerated(
    'sdk/src/generated/api.ts',
    `// Made by \`npm run gen\` from openapi.json; not edited by hand.\n${astToString(await openapiTS(JSON.stringify(description), { rootTypes: true, rootTypesNoSchemaPrefix: true }))}`,
  )
  writeGenerated('docs/settings.md', generateSettingsPage())
} finally {
  await postgres.stop()
  rmSync(dataDir, { recursive: true, force: true })
}

if (stale.length === 0) console.log('Generated files are up to date.')
else if (!isCheck) console.log(`Wrote ${stale.join(', ')}.`)
else {
  console.error(`Out of date: ${stale.join(', ')}. Run npm run gen and commit.`)
  process.exit(1)
}
process.exit(0)
