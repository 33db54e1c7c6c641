import cluster from 'node:cluster'
import { parseArgs } from 'node:util'
import { ConfigError, readConfig, requireProductionSettings } from './platform/config.ts'

/** serve | migrate | work | demo | demo-seed | ledger-check | benchmark | check-settings */
const command = process.argv[2] ?? 'serve'

const commands: Record<string, () => Promise<void>> = {
  serve: async () => {
    const config = requireProductionSettings(readConfig({ ...process.env, ...readWorkersFlag(process.argv.slice(3)) }))
    // The processes of a supervisor have its settings, but are not supervisors themselves.
    if (config.WORKERS > 1 && cluster.isPrimary) return (await import('./commands/supervise.ts')).supervise(config)
    return (await import('./commands/serve.ts')).serve(config)
  },
  work: async () => {
    const config = requireProductionSettings(readConfig(process.env))
    return (await import('./commands/work.ts')).work(config)
  },
  /** For `countersign init`: reads the settings and starts nothing. */
  'check-settings': async () => void requireProductionSettings(readConfig(process.env)),
  migrate: async () =>
    (await import('./commands/migrate.ts')).migrateOnly(readConfig(process.env), process.argv.slice(3)),
  'ledger-check': async () =>
    process.exit(
      await (await import('./commands/ledger-check.ts')).ledgerCheck(readConfig(process.env), process.argv.slice(3)),
    ),
  benchmark: async () => (await import('./commands/benchmark.ts')).benchmark(readConfig(process.env)),
  demo: async () =>
    (await import('./commands/demo.ts')).demo(readConfig(process.env), {
      allowDevelopmentChain: process.argv.includes('--allow-development-chain'),
    }),
  'demo-seed': async () => (await import('./commands/demo-seed.ts')).demoSeed(readConfig(process.env)),
}

/** `serve --workers N` is the setting WORKERS. */
function readWorkersFlag(args: string[]): { WORKERS?: string } {
  try {
    const { workers } = parseArgs({ args, options: { workers: { type: 'string' } } }).values
    return workers === undefined ? {} : { WORKERS: workers }
  } catch (error) {
    throw new ConfigError((error as Error).message)
  }
}

try {
  const run = commands[command]
  if (!run) throw new ConfigError(`Unknown command '${command}'. Commands: ${Object.keys(commands).join(', ')}.`)
  await run()
} catch (error) {
  console.error(error instanceof ConfigError ? error.message : error)
  // For ledger-check, exit code 1 means that differences were found, so a failure to check exits with 2.
  process.exit(command === 'ledger-check' ? 2 : 1)
}
