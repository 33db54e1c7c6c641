import { parseArgs } from 'node:util'
import { startEmbeddedPostgres } from '../adapters/postgres/embedded.ts'
import { type Config, ConfigError } from '../platform/config.ts'
import { openDatabase } from '../platform/db.ts'
import { createLog } from '../platform/log.ts'
import { migrate } from '../platform/migrate.ts'
import { describePlan, planMigrations } from '../platform/migration-plan.ts'

/** Migrates the database and exits, for operators who migrate before a rollout; `--plan` only says what would be done. */
export async function migrateOnly(config: Config, args: string[]) {
  const { plan } = readFlags(args)
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
    if (plan) return console.log(describePlan(await planMigrations(database)))
    const { applied, warnings } = await migrate(database, { log })
    console.log(applied.length > 0 ? `Applied ${applied.join(', ')}.` : 'The database is up to date.')
    for (const warning of warnings) console.log(warning)
  } finally {
    await database.close()
    await postgres?.stop()
  }
}

function readFlags(args: string[]) {
  try {
    return parseArgs({ args, options: { plan: { type: 'boolean', default: false } } }).values
  } catch (error) {
    throw new ConfigError((error as Error).message)
  }
}
