import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import { computeBalances, readTransfers } from '../money/external-chain.ts'

const PAY_TO_ADDRESS = `0x${'c0'.repeat(20)}`

/**
 * A facilitator in a process of its own whose chain is a file: what was charged stays charged whatever happens to the
 * database. The embedded chain's journal is in the database and fails over with it.
 */
export async function startOutsideChain(folder: string) {
  const file = join(folder, 'chain.jsonl')
  const child: ChildProcess = spawn(process.execPath, [join(import.meta.dirname, '../money/faulty-facilitator.ts')], {
    env: { PATH: process.env.PATH, FILE: file, FAULTS: 'none' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const url = await new Promise<string>((resolve, reject) => {
    child.stdout!.on('data', (output: Buffer) => resolve(/http:\S+/.exec(String(output))![0]))
    child.once('exit', (code) => reject(new Error(`The facilitator ended with ${code}.`)))
  })
  return {
    env: { FACILITATOR_URL: url, CHAIN_RPC_URL: `${url}/rpc`, PAY_TO_ADDRESS },
    async mint(to: string, amountMicro: bigint) {
      const body = JSON.stringify({ to, amount: amountMicro.toString() })
      await (await fetch(`${url}/mint`, { method: 'POST', body })).text()
    },
    balance: async (address: string) => computeBalances(readTransfers(file)).get(address.toLowerCase()) ?? 0n,
    close: () => child.kill('SIGKILL'),
  }
}
