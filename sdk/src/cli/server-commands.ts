import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { Command } from 'commander'

/** What an operator does beside a running service. The work is the server's own; here it only gets its name. */
const serverMain = fileURLToPath(new URL('../../../server/src/main.ts', import.meta.url))

const runServer = (...args: string[]) =>
  new Promise<never>(() => {
    const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', serverMain, ...args], {
      stdio: 'inherit',
    })
    child.on('exit', (code) => process.exit(code ?? 1))
  })

export function ledgerCommand(): Command {
  const ledger = new Command('ledger').description('Look after the books')
  ledger
    .command('check')
    .description('recompute everything from the entries and against the chain, and say what differs')
    .option('--json', 'print the result as JSON')
    .option('--no-chain', 'check the books alone')
    .option('--allow-surplus', 'for an address that has other income too')
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
    .description('run the committed suite over every lane and keep the results for /api/benchmark')
    .action(() => runServer('benchmark'))
