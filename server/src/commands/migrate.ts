import { startEmbeddedPostgres } from '../adapters/postgres/embedded.ts'
import type { Config } from '../platform/config.ts'
import { openDatabase } from '../platform/db.ts'
import { createLog } from '../platform/log.ts'
import { migrate } from '../platform/migrate.ts'

/** Migrates the database and exits, for operators who migrate before a rollout. */
export async function migrateOnly(config: Config) {
  const log = createLog(config.LOG_LEVEL)
  const postgres = config.DATABASE_URL
    ? undefined
    : await startEmbeddedPostgres({ dataDir: config.COUNTERSIGN_DATA_DIR, log })
  const database = openDatabase(config.DATABASE_URL ?? postgres!.connection, {
    max: 1,
    log,
    direct: config.DATABASE_DIRECT_URL,
  })
  try {
    const { applied, warnings } = await migrate(database)
    console.log(applied.length > 0 ? `Applied ${applied.join(', ')}.` : 'The database is up to date.')
    for (const warning of warnings) console.log(warning)
  } finally {
    await database.close()
    await postgres?.stop()
  }
}
