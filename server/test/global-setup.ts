import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startEmbeddedPostgres } from '../src/adapters/postgres/embedded.ts'
import { openDatabase } from '../src/platform/db.ts'
import { createLog } from '../src/platform/log.ts'
import { migrate } from '../src/platform/migrate.ts'

/** Starts one PostgreSQL server for the whole test run, with a migrated template that each test file clones. */
export default async function setup() {
  const dataDir = mkdtempSync(join(tmpdir(), 'countersign-test-'))
  const log = createLog('error')
  // Durability tests start their own servers, with fsync on.
  const postgres = await startEmbeddedPostgres({
    dataDir,
    log,
    settings: { fsync: 'off' },
    systemDir: join(dataDir, 'system'),
  })
  const { host, port, user } = postgres.connection
  const url = (database: string) => `postgres://${user}@localhost:${port}/${database}?host=${encodeURIComponent(host)}`
  const admin = openDatabase(url('countersign'), { max: 1, log })
  await admin.pool.query('create database template_test')
  await admin.close()
  const template = openDatabase(url('template_test'), { max: 1, log })
  try {
    await migrate(template)
  } catch (error) {
    await template.close()
    await postgres.stop()
    throw error
  }
  await template.close()
  process.env.COUNTERSIGN_TEST_DATABASE = url('countersign')

  return async () => {
    await postgres.stop()
    rmSync(dataDir, { recursive: true, force: true })
  }
}
