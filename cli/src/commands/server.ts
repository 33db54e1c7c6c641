import { spawn } from 'node:child_process'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { Command } from 'commander'

/** Commands of the server, run in a child process because the server may need a newer Node than this one. */
export function findServer(): string {
  const manifest = createRequire(import.meta.url).resolve('@countersign/server/package.json')
  return join(dirname(manifest), 'bin', 'countersign-server.mjs')
}

export const runServer = (...args: string[]) =>
  new Promise<never>(() => {
    const child = spawn(process.execPath, [findServer(), ...args], { stdio: 'inherit' })
    child.on('exit', (code) => process.exit(code ?? 1))
  })

export function ledgerCommand(): Command {
  const ledger = new Command('ledger').description('Ledger commands')
  ledger
    .command('check')
    .description('recompute all balances from the entries, compare them with the chain, and report differences')
    .option('--json', 'print the result as JSON')
    .option('--no-chain', 'check the ledger without the chain')
    .option('--allow-surplus', 'accept an on-chain balance above the ledger, for an address that receives other income')
    .action(({ json, chain, allowSurplus }: { json?: boolean; chain: boolean; allowSurplus?: boolean }) =>
      runServer(
        'ledger-check',
        ...(json ? ['--json'] : []),
        ...(chain ? [] : ['--no-chain']),
        ...(allowSurplus ? ['--allow-surplus'] : []),
      ),
    )
  return ledger
}

export const benchmarkCommand = (): Command =>
  new Command('benchmark')
    .description('run the benchmark suite on every lane and store the results for /api/benchmark')
    .action(() => runServer('benchmark'))
