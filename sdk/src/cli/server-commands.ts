import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { Command } from 'commander'

/** Commands for operators, which run the server's own commands in a child process. */
const serverMain = fileURLToPath(new URL('../../../server/src/main.ts', import.meta.url))

const runServer = (...args: string[]) =>
  new Promise<never>(() => {
    const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', serverMain, ...args], {
      stdio: 'inherit',
    })
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
