import { randomBytes } from 'node:crypto'
import { resolve } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { openChain } from '../adapters/chain/open-chain.ts'
import { startEmbeddedPostgres } from '../adapters/postgres/embedded.ts'
import { type Check, checkBooks } from '../modules/ledger/check-books.ts'
import { checkChain } from '../modules/payments/check-chain.ts'
import { systemClock } from '../platform/clock.ts'
import { type Config, ConfigError } from '../platform/config.ts'
import { type Database, openDatabase } from '../platform/db.ts'
import { createKeys } from '../platform/keys.ts'
import { createLog, type Log } from '../platform/log.ts'
import { openSecretFolder } from '../platform/secrets.ts'

const options = ['--json', '--no-chain', '--allow-surplus'] as const

/**
 * Recomputes everything from the entries and against the chain, and says what differs. It may run beside a service.
 * Exit code 0: all agrees. 1: something differs. 2: it could not be looked at. `--no-chain` leaves the chain out;
 * `--allow-surplus` is for an address that has other income too; `--json` is for programs.
 */
export async function ledgerCheck(config: Config, args: readonly string[]): Promise<number> {
  const unknown = args.find((arg) => !options.some((option) => option === arg))
  if (unknown) throw new ConfigError(`ledger-check does not know '${unknown}'. It knows ${options.join(', ')}.`)
  const log = createLog('silent')
  const dataDir = resolve(config.COUNTERSIGN_DATA_DIR)
  const postgres = config.DATABASE_URL ? undefined : await startEmbeddedPostgres({ dataDir, log })
  const database = openDatabase(config.DATABASE_URL ?? postgres!.connection, { max: 4, log })
  try {
    const books = await checkBooks(database.db)
    const chain = args.includes('--no-chain') ? [] : await askChain(config, dataDir, database, log)
    const checks = [...books, ...chain].map((check) =>
      args.includes('--allow-surplus') ? withoutSurplus(check) : check,
    )
    console.log(args.includes('--json') ? JSON.stringify(report(checks), null, 2) : told(checks))
    return checks.every((check) => check.differences.length === 0) ? 0 : 1
  } finally {
    await database.close()
    await postgres?.stop()
  }
}

async function askChain(config: Config, dataDir: string, database: Database, log: Log): Promise<Check[]> {
  const secrets = openSecretFolder(dataDir)
  const keys = createKeys({
    signing: config.SIGNING_KEY ?? secrets.readOrCreate('signing.key'),
    encryption: config.ENCRYPTION_KEY ?? secrets.readOrCreate('encryption.key'),
  })
  const instance = randomBytes(12).toString('hex')
  const chain = await openChain({
    config,
    database,
    clock: systemClock,
    log,
    secrets,
    keys,
    instance,
    listens: true,
    onMined: () => {},
  })
  try {
    const { reader, asset, payTo } = chain
    if (!reader)
      throw new ConfigError('No chain can be asked: set CHAIN_RPC_URL, or check the books alone with --no-chain.')
    return await checkChain({ db: database.db, chain: reader, asset, payTo, pause })
  } finally {
    await chain.close()
  }
}

const withoutSurplus = (check: Check): Check =>
  check.name === 'chain: balance'
    ? { ...check, differences: check.differences.filter(({ found }) => !found.includes('more by')) }
    : check

const report = (checks: readonly Check[]) => ({
  ok: checks.every((check) => check.differences.length === 0),
  checks: checks.map((check) => ({ ...check, examined: Number(check.examined) })),
})

function told(checks: readonly Check[]): string {
  const width = Math.max(...checks.map((check) => check.name.length))
  const lines = checks.flatMap(({ name, holds, examined, differences }) => [
    `${differences.length === 0 ? 'ok  ' : 'DIFF'}  ${name.padEnd(width)}  ${examined} looked at: ${differences.length === 0 ? holds : `it is not so that ${holds}`}`,
    ...differences.map(({ subject, expected, found }) => `      ${subject}: expected ${expected}, found ${found}`),
  ])
  const wrong = checks.reduce((sum, check) => sum + check.differences.length, 0)
  return [
    ...lines,
    '',
    wrong === 0 ? 'Everything agrees.' : `${wrong} ${wrong === 1 ? 'difference' : 'differences'}.`,
  ].join('\n')
}
