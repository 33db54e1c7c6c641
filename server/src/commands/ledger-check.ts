import { resolve } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { openChain } from '../adapters/chain/open-chain.ts'
import { startEmbeddedPostgres } from '../adapters/postgres/embedded.ts'
import { type Check, checkBooks } from '../modules/ledger/check-books.ts'
import { checkChain } from '../modules/payments/check-chain-balance.ts'
import { systemClock } from '../platform/clock.ts'
import { type Config, ConfigError } from '../platform/config.ts'
import { type Database, openDatabase } from '../platform/db.ts'
import { openInstances } from '../platform/instances.ts'
import { createKeys } from '../platform/keys.ts'
import { createLog, type Log } from '../platform/log.ts'
import { openSecretFolder } from '../platform/secrets.ts'

const knownOptions = ['--json', '--no-chain', '--allow-surplus'] as const

/**
 * Recomputes all balances from the entries, compares them with the chain and reports differences. May run beside a
 * service. Exit codes: 0 no differences, 1 differences, 2 could not be checked. `--no-chain` skips the chain;
 * `--allow-surplus` accepts a higher on-chain balance, for an address with other income; `--json` prints JSON.
 */
export async function ledgerCheck(config: Config, args: readonly string[]): Promise<number> {
  const unknownOption = args.find((arg) => !knownOptions.some((option) => option === arg))
  if (unknownOption)
    throw new ConfigError(`Unknown option '${unknownOption}' of ledger-check. Options: ${knownOptions.join(', ')}.`)
  const log = createLog('silent')
  const dataDir = resolve(config.COUNTERSIGN_DATA_DIR)
  const postgres = config.DATABASE_URL ? undefined : await startEmbeddedPostgres({ dataDir, log })
  const database = openDatabase(config.DATABASE_URL ?? postgres!.connection, {
    max: 4,
    log,
    direct: config.DATABASE_DIRECT_URL,
  })
  try {
    const ledgerChecks = await checkBooks(database.db)
    const chainChecks = args.includes('--no-chain') ? [] : await checkAgainstChain(config, dataDir, database, log)
    const checks = [...ledgerChecks, ...chainChecks].map((check) =>
      args.includes('--allow-surplus') ? ignoreSurplus(check) : check,
    )
    console.log(args.includes('--json') ? JSON.stringify(toReport(checks), null, 2) : formatChecks(checks))
    return checks.every((check) => check.differences.length === 0) ? 0 : 1
  } finally {
    await database.close()
    await postgres?.stop()
  }
}

async function checkAgainstChain(config: Config, dataDir: string, database: Database, log: Log): Promise<Check[]> {
  const secrets = openSecretFolder(dataDir)
  const keys = createKeys({
    signing: config.SIGNING_KEY ?? secrets.readOrCreateFor('SIGNING_KEY'),
    encryption: config.ENCRYPTION_KEY ?? secrets.readOrCreateFor('ENCRYPTION_KEY'),
  })
  const instances = await openInstances(database, config, log)
  const chain = await openChain({
    config,
    database,
    clock: systemClock,
    log,
    secrets,
    keys,
    instances,
    mayOwn: true,
    onMined: () => {},
  }).catch(async (error) => {
    await instances.close()
    throw error
  })
  try {
    const { reader, asset, payTo } = chain
    if (!reader) throw new ConfigError('No chain is configured: set CHAIN_RPC_URL, or skip the chain with --no-chain.')
    return await checkChain({ db: database.db, chain: reader, asset, payTo, pause })
  } finally {
    await chain.close()
    await instances.close()
  }
}

const ignoreSurplus = (check: Check): Check =>
  check.name === 'chain: balance'
    ? { ...check, differences: check.differences.filter(({ found }) => !found.includes('more by')) }
    : check

const toReport = (checks: readonly Check[]) => ({
  ok: checks.every((check) => check.differences.length === 0),
  checks: checks.map((check) => ({ ...check, examined: Number(check.examined) })),
})

function formatChecks(checks: readonly Check[]): string {
  const width = Math.max(...checks.map((check) => check.name.length))
  const lines = checks.flatMap(({ name, holds, examined, differences }) => [
    `${differences.length === 0 ? 'ok  ' : 'DIFF'}  ${name.padEnd(width)}  ${examined} checked: ${differences.length === 0 ? holds : `NOT TRUE that ${holds}`}`,
    ...differences.map(({ subject, expected, found }) => `      ${subject}: expected ${expected}, found ${found}`),
  ])
  const differenceCount = checks.reduce((sum, check) => sum + check.differences.length, 0)
  return [
    ...lines,
    '',
    differenceCount === 0
      ? 'No differences.'
      : `${differenceCount} ${differenceCount === 1 ? 'difference' : 'differences'}.`,
  ].join('\n')
}
