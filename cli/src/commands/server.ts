import { type ChildProcess, spawn } from 'node:child_process'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { Command } from 'commander'
import { CliError } from '../cli-error.ts'

/** Commands of the server. They run in a child process, because the server may need a newer Node than this one. */
export function findServer(): string {
  try {
    const manifest = createRequire(import.meta.url).resolve('@countersign/server/package.json')
    return join(dirname(manifest), 'bin', 'countersign-server.mjs')
  } catch {
    throw new CliError(
      'The server is not installed: npm install @countersign/server, or install without --omit=optional.',
    )
  }
}

/** Ends this process with the exit code of the server's command. */
export function runServer(...args: string[]): Promise<never> {
  const child = spawn(process.execPath, [findServer(), ...args], { stdio: 'inherit' })
  // Ctrl-C reaches the whole foreground process group; a signal sent to this process alone is forwarded.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => child.kill(signal))
  if (process.env.npm_lifecycle_event) stopWithParent(child)
  return new Promise((_, reject) => {
    child.on('error', reject)
    child.on('exit', (code) => process.exit(code ?? 1))
  })
}

const PARENT_CHECK_MS = 300

/** npm and npx start this under a shell, which ends at a signal without passing it on. */
function stopWithParent(child: ChildProcess) {
  const parent = process.ppid
  const timer = setInterval(() => {
    if (process.ppid === parent) return
    clearInterval(timer)
    child.kill('SIGTERM')
  }, PARENT_CHECK_MS)
}

function loadSettings(file: string) {
  try {
    process.loadEnvFile(file)
  } catch (cause) {
    throw new CliError(`The settings of ${file} cannot be read: ${(cause as Error).message}`)
  }
}

const flags = (options: Record<string, string | boolean | undefined>): string[] =>
  Object.entries(options).flatMap(([name, value]) =>
    value === true ? [`--${name}`] : typeof value === 'string' ? [`--${name}`, value] : [],
  )

export const serveCommand = () =>
  new Command('serve')
    .description('serve the API and do the background work; settings are environment variables (docs/settings.md)')
    .option('--workers <count>', 'processes that share the port')
    .option('--port <port>', 'port to listen on, instead of PORT')
    .option('--env-file <file>', 'file of settings, as `countersign init` writes it; the environment comes first')
    .action(({ workers, port, envFile }: { workers?: string; port?: string; envFile?: string }) => {
      if (envFile !== undefined) loadSettings(envFile)
      if (port !== undefined) process.env.PORT = port
      return runServer('serve', ...flags({ workers }))
    })

export const workCommand = () =>
  new Command('work')
    .description('do the background work only')
    .option('--env-file <file>', 'file of settings, as `countersign init` writes it')
    .action(({ envFile }: { envFile?: string }) => {
      if (envFile !== undefined) loadSettings(envFile)
      return runServer('work')
    })

export const migrateCommand = () =>
  new Command('migrate')
    .description('apply the database migrations and exit')
    .option('--plan', 'only say which tables the pending migrations would lock')
    .option('--env-file <file>', 'file of settings, as `countersign init` writes it')
    .action(({ envFile, plan }: { envFile?: string; plan?: boolean }) => {
      if (envFile !== undefined) loadSettings(envFile)
      return runServer('migrate', ...flags({ plan }))
    })

export const demoCommand = () =>
  new Command('demo')
    .description('show a paid run: discover, 402, pay, output, receipt, verification; starts a service if none runs')
    .option('--allow-development-chain', 'pay on a development chain with a key that was not made for it')
    .action(({ allowDevelopmentChain }: { allowDevelopmentChain?: boolean }) =>
      runServer('demo', ...flags({ 'allow-development-chain': allowDevelopmentChain })),
    )

export function ledgerCommand(): Command {
  const ledger = new Command('ledger').description('the double-entry ledger')
  ledger
    .command('check')
    .description('recompute all balances from the entries, compare them with the chain, and report differences')
    .option('--json', 'print the result as JSON')
    .option('--no-chain', 'check the ledger without the chain')
    .option('--allow-surplus', 'accept an on-chain balance above the ledger, for an address that receives other income')
    .action(({ json, chain, allowSurplus }: { json?: boolean; chain: boolean; allowSurplus?: boolean }) =>
      runServer('ledger-check', ...flags({ json, 'no-chain': !chain, 'allow-surplus': allowSurplus })),
    )
  return ledger
}

export const benchmarkCommand = (): Command =>
  new Command('benchmark')
    .description('run the benchmark suite on every lane and store the results for /api/benchmark')
    .action(() => runServer('benchmark'))
