import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import type { Client, ClientOptions } from '@countersign/sdk'
import { fileStore } from '@countersign/sdk/file-store'
import { accountFromKey, type PayingAccount } from '@countersign/sdk/pay'
import type { Command } from 'commander'
import { textOrInput, usdc } from '../arguments.ts'
import { CliError } from '../cli-error.ts'
import { bold, formatFields, green, progress, red, safeText, show } from '../output.ts'
import { connect, dataFolder, readKeyFile, type ServiceOptions, serviceCommand, serviceUrl } from '../service.ts'

/** Paid calls: from a wallet of the tenant, or by x402 with a private key. */
type PayOptions = ServiceOptions & {
  wallet?: string
  payerKeyFile?: string
  maxUsdc: number
  idempotencyKey?: string
  agent?: string
  session?: string
  approval?: string
  receipt?: string
  async?: boolean
}

const payCommand = (name: string): Command =>
  serviceCommand(name)
    .option('--wallet <wallet_id>', 'pay from this wallet; needs an API key')
    .option('--payer-key-file <file>', 'private key that pays by x402; else COUNTERSIGN_PAYER_KEY')
    .option('--max-usdc <amount>', 'what it may cost', usdc, 1)
    .option('--agent <lane>', 'the lane to use')
    .option('--session <id>', 'session, for memory and budgets')
    .option('--approval <approval_id>', 'the approval that was given for this request')
    .option('--idempotency-key <key>', 'to repeat a call whose outcome is not known; never pays twice')
    .option('--receipt <file>', 'write the receipt to this file')

/** The key that the service of this folder made for itself pays on its own development chain, and nowhere else. */
async function findDevelopmentPayer(options: ServiceOptions): Promise<PayingAccount | undefined> {
  const { hostname } = new URL(serviceUrl(options))
  const keys = join(dataFolder(), 'keys')
  const [keyFile, addressFile] = [join(keys, 'dev-payer.key'), join(keys, 'dev-payer.address')]
  if (!['127.0.0.1', 'localhost', '[::1]'].includes(hostname) || !existsSync(keyFile) || !existsSync(addressFile))
    return undefined
  const account = await accountFromKey(readKeyFile(keyFile) as `0x${string}`)
  const madeAddress = readFileSync(addressFile, 'utf8').trim()
  return account.address.toLowerCase() === madeAddress.toLowerCase() ? account : undefined
}

/** A signed payment is kept on disk until its outcome is known, so that a command that was killed can be repeated. */
const callStore = () => fileStore(process.env.COUNTERSIGN_CALLS_DIR ?? join(homedir(), '.countersign', 'calls'))

async function connectPaying(options: PayOptions): Promise<Client> {
  const pay: Partial<ClientOptions> = { maxUsdc: options.maxUsdc, walletId: options.wallet, store: callStore() }
  if (options.wallet === undefined) {
    const key = options.payerKeyFile ? readKeyFile(options.payerKeyFile) : process.env.COUNTERSIGN_PAYER_KEY?.trim()
    if (key !== undefined && !/^0x[0-9a-fA-F]{64}$/.test(key))
      throw new CliError('The payer key must be 0x and 64 hexadecimal digits.')
    pay.account = key ? await accountFromKey(key as `0x${string}`) : undefined
    if (!pay.account) {
      pay.account = await findDevelopmentPayer(options)
      pay.allowDevelopmentChain = pay.account !== undefined
    }
  }
  return connect(options, pay)
}

function saveReceipt(receipt: object, { receipt: file }: PayOptions) {
  if (file === undefined) return
  writeFileSync(file, `${JSON.stringify(receipt, null, 2)}\n`)
  console.error(`The receipt is in ${file}.`)
}

const formatVerified = (verified: boolean | null) =>
  verified === true ? green('verified') : verified === false ? red('NOT VERIFIED') : 'not checked'

const requestOf = (options: PayOptions) => ({
  ...(options.agent !== undefined && { agent_id: options.agent }),
  ...(options.session !== undefined && { session_id: options.session }),
  ...(options.approval !== undefined && { approval_id: options.approval }),
})

/** Shows the states on standard error; the answer alone goes to standard output. */
async function followRun(client: Client, ...[request, call]: Parameters<Client['startRun']>) {
  const run = await client.startRun(request, call)
  for await (const { status } of run.events()) console.error(`${run.runId} ${status}`)
  return run.result()
}

export const runCommand = () =>
  payCommand('run')
    .description('run a task: routed, governed, paid and receipted')
    .argument('<task>', 'the task, or - for standard input')
    .option('--async', 'for a run that may take long: show its states, and wait without keeping a request open')
    .action(async (task: string, options: PayOptions) => {
      const client = await connectPaying(options)
      const done = progress('running')
      const call = options.idempotencyKey === undefined ? {} : { idempotencyKey: options.idempotencyKey }
      const request = { task: textOrInput(task), ...requestOf(options) }
      const result = await (options.async ? followRun(client, request, call) : client.run(request, call)).finally(done)
      const { run, receipt } = result
      saveReceipt(receipt, options)
      const json = { ...run, receipt, receipt_verified: receipt.verified }
      show(json, options, () =>
        [
          safeText(result.output),
          '',
          formatFields([
            ['lane', run.agent_id],
            ['price', `${run.price_usdc} USDC`],
            ['run', run.run_id],
            ['receipt', `${receipt.receipt_id} ${formatVerified(receipt.verified)}`],
          ]),
        ].join('\n'),
      )
      if (receipt.verified === false) throw new CliError('The receipt does not verify: keep it and report it.', 1)
    })

export const loopCommand = () =>
  payCommand('loop')
    .description('run one step of the loop of an agent: governed, paid and receipted')
    .argument('<input>', 'the input, or - for standard input')
    .action(async (task: string, options: PayOptions) => {
      const client = await connectPaying(options)
      const done = progress('running')
      const call = options.idempotencyKey === undefined ? {} : { idempotencyKey: options.idempotencyKey }
      const result = await client.loop({ input: textOrInput(task), ...requestOf(options) }, call).finally(done)
      saveReceipt(result.receipt, options)
      show({ ...result.loop, receipt: result.receipt }, options, () =>
        [
          bold('Output'),
          safeText(result.output),
          '',
          `receipt ${result.receipt.receipt_id} ${formatVerified(result.receipt.verified)}`,
        ].join('\n'),
      )
    })
