import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { verifyReceipt } from '@countersign/proof'
import { type Config, ConfigError } from '../platform/config.ts'
import { MADE_PAYER_FILE, PAYER_KEY_FILE } from './development-payer.ts'
import { findRunningService } from './running-service.ts'
import { onStopSignal } from './stop-signals.ts'

/** Shows a paid run in the terminal: discovery, 402, payment, output, receipt, verification. Starts a service if none runs. */
export async function demo(config: Config, { allowDevelopmentChain = false } = {}) {
  const url = await findRunningService(config)
  if (url) print(`The service at ${url} is running.`)
  const service = url ? { url, stop: async () => {} } : await startService(config)
  try {
    await runDemo(service.url, readPayer(config), allowDevelopmentChain)
  } finally {
    await service.stop()
  }
}

type RunningService = { url: string; stop(): Promise<void> }

async function startService(config: Config): Promise<RunningService> {
  const [{ createService }, { fundDevelopmentPayer }, { createLog }] = await Promise.all([
    import('../app.ts'),
    import('./development-payer.ts'),
    import('../platform/log.ts'),
  ])
  print('No service is running, so the demo starts one.')
  const starting = createService({ ...config, PORT: 0 }, { log: createLog('silent') })
  const stop = async () => (await starting).close()
  onStopSignal({ stop, stopAtOnce: stop })
  const service = await starting
  const url = await service.listen()
  await fundDevelopmentPayer(service)
  return { url, stop: service.close }
}

type DemoPayer = { privateKey: `0x${string}`; madeAddress: string }

function readPayer(config: Config): DemoPayer {
  const folder = join(resolve(config.COUNTERSIGN_DATA_DIR), 'keys')
  const read = (name: string) => {
    try {
      return readFileSync(join(folder, name), 'utf8').trim()
    } catch {
      throw new ConfigError(
        `There is no ${name} in ${folder}, so nobody can pay. A service on the development chain makes it: set COUNTERSIGN_DATA_DIR to its data folder.`,
      )
    }
  }
  return { privateKey: read(PAYER_KEY_FILE) as `0x${string}`, madeAddress: read(MADE_PAYER_FILE) }
}

async function runDemo(url: string, { privateKey, madeAddress }: DemoPayer, allowDevelopmentChain: boolean) {
  const [{ privateKeyToAccount }, { ExactEvmScheme }, { wrapFetchWithPaymentFromConfig }] = await Promise.all([
    import('viem/accounts'),
    import('@x402/evm'),
    import('@x402/fetch'),
  ])
  const account = privateKeyToAccount(privateKey)
  const task = 'Quarterly revenue was 120, 135, 128 and 190 thousand. What stands out?'
  const request = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ task }) }

  printHeading('1. Discover lanes and prices')
  const pricing = await readJson(await fetch(`${url}/api/pricing`))
  for (const lane of pricing.agents)
    print(`${lane.agent_id.padEnd(15)} ${String(lane.price_usdc).padEnd(6)} USDC  ${lane.description}`)

  printHeading('2. Request without payment: 402 with a signed quote')
  const unpaidResponse = await fetch(`${url}/api/run`, request)
  const challenge = await readJson(unpaidResponse)
  print(`${unpaidResponse.status} ${challenge.message}`)
  print(
    `network ${challenge.accepts[0].network}, asset ${challenge.accepts[0].asset}, pay to ${challenge.accepts[0].payTo}`,
  )

  const isMade = account.address.toLowerCase() === madeAddress.toLowerCase()
  if (challenge.accepts[0].extra.development === true && !isMade && !allowDevelopmentChain)
    throw new Error(
      `The service is on a development chain that has Base's id, and ${PAYER_KEY_FILE} is not the key that was made for it: with money on Base its signature would be live. Remove the file, or pass --allow-development-chain.`,
    )

  printHeading('3. Pay with the official x402 client, unmodified')
  const payingFetch = wrapFetchWithPaymentFromConfig(fetch, {
    schemes: [{ network: 'eip155:8453', client: new ExactEvmScheme(account) }],
  })
  const paidResponse = await payingFetch(`${url}/api/run`, request)
  const run = await readJson(paidResponse)
  if (paidResponse.status !== 200)
    throw new Error(`The paid run returned ${paidResponse.status}: ${JSON.stringify(run)}`)
  print(
    `${paidResponse.status} lane ${run.agent_id} for ${run.price_usdc} USDC, settled in transaction ${run.settlement.transaction}`,
  )

  printHeading('4. Output')
  print(run.output)
  print(`(mode ${run.execution.mode}, graded ${run.verification.grade})`)

  printHeading('5. Receipt and log entry')
  const receipt = await fetchLoggedReceipt(`${url}${run.receipt_url}`)
  print(`${receipt.receipt_id}: request ${receipt.request_hash}`)
  print(`output ${receipt.output_hash}, log index ${receipt.log?.index ?? 'not yet'}`)

  printHeading('6. Verify the receipt with public keys alone')
  const jwks = await readJson(await fetch(`${url}/.well-known/jwks.json`))
  const verification = verifyReceipt(receipt, { jwks })
  for (const check of verification.checks)
    print(
      `${check.ok === true ? 'ok     ' : check.ok === false ? 'FAILED ' : 'skipped'} ${check.name}: ${check.reason}`,
    )
  if (!verification.ok) throw new Error('The receipt does not verify.')
  print('The receipt is valid.')
}

/** The sequencer adds a receipt to the log within about a second. */
// biome-ignore lint/suspicious/noExplicitAny: the API response is printed as it is
async function fetchLoggedReceipt(address: string): Promise<any> {
  for (let attempt = 0; attempt < 30; attempt++) {
    const receipt = await readJson(await fetch(address))
    if (receipt.log) return receipt
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  return readJson(await fetch(address))
}

// biome-ignore lint/suspicious/noExplicitAny: the API response is printed as it is
const readJson = (response: Response): Promise<any> => response.json()
const print = (text: string) => console.log(text.replace(/^/gm, '  '))
const printHeading = (text: string) => console.log(`\n${text}\n`)
