import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { verifyReceipt } from '@countersign/proof'
import type { Config } from '../platform/config.ts'

/** The whole story in the terminal: discover, 402, pay, output, receipt, verification. Starts a service if none runs. */
export async function demo(config: Config) {
  const running = await findRunning(config)
  const service = running ?? (await startQuietly(config))
  try {
    await tell(service.url, readPayerKey(config))
  } finally {
    await service.stop()
  }
}

type Running = { url: string; stop(): Promise<void> }

async function findRunning(config: Config): Promise<Running | undefined> {
  const url = config.PUBLIC_URL ?? `http://${config.HOST}:${config.PORT}`
  const health = await fetch(`${url}/api/health`, { signal: AbortSignal.timeout(1_000) }).catch(() => undefined)
  return health?.ok ? { url, stop: async () => {} } : undefined
}

async function startQuietly(config: Config): Promise<Running> {
  const [{ createService }, { fundDevelopmentPayer }, { createLog }] = await Promise.all([
    import('../app.ts'),
    import('./development-payer.ts'),
    import('../platform/log.ts'),
  ])
  say('No service runs here yet, so this demo starts one for itself.')
  const service = await createService({ ...config, PORT: 0 }, { log: createLog('silent') })
  const url = await service.listen()
  await fundDevelopmentPayer(service)
  return { url, stop: service.close }
}

function readPayerKey(config: Config): `0x${string}` {
  const path = join(resolve(config.COUNTERSIGN_DATA_DIR), 'keys', 'dev-payer.key')
  return readFileSync(path, 'utf8').trim() as `0x${string}`
}

async function tell(url: string, privateKey: `0x${string}`) {
  const [{ privateKeyToAccount }, { ExactEvmScheme }, { wrapFetchWithPaymentFromConfig }] = await Promise.all([
    import('viem/accounts'),
    import('@x402/evm'),
    import('@x402/fetch'),
  ])
  const account = privateKeyToAccount(privateKey)
  const task = 'Quarterly revenue was 120, 135, 128 and 190 thousand. What stands out?'
  const request = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ task }) }

  heading('1. Discover: what is offered, at what price?')
  const pricing = await json(await fetch(`${url}/api/pricing`))
  for (const lane of pricing.agents)
    say(`${lane.agent_id.padEnd(15)} ${String(lane.price_usdc).padEnd(6)} USDC  ${lane.description}`)

  heading('2. Ask without paying: the answer is 402, with a signed quote')
  const unpaid = await fetch(`${url}/api/run`, request)
  const challenge = await json(unpaid)
  say(`${unpaid.status} ${challenge.message}`)
  say(
    `network ${challenge.accepts[0].network}, asset ${challenge.accepts[0].asset}, pay to ${challenge.accepts[0].payTo}`,
  )

  heading('3. Pay with the official x402 client, unmodified')
  const pay = wrapFetchWithPaymentFromConfig(fetch, {
    schemes: [{ network: 'eip155:8453', client: new ExactEvmScheme(account) }],
  })
  const paid = await pay(`${url}/api/run`, request)
  const run = await json(paid)
  if (paid.status !== 200) throw new Error(`The paid run answered ${paid.status}: ${JSON.stringify(run)}`)
  say(
    `${paid.status} lane ${run.agent_id} for ${run.price_usdc} USDC, settled in transaction ${run.settlement.transaction}`,
  )

  heading('4. The output')
  say(run.output)
  say(`(mode ${run.execution.mode}, graded ${run.verification.grade})`)

  heading('5. The receipt, and its place in the public log')
  const receipt = await placed(`${url}${run.receipt_url}`)
  say(`${receipt.receipt_id}: request ${receipt.request_hash}`)
  say(`output ${receipt.output_hash}, log index ${receipt.log?.index ?? 'not yet'}`)

  heading('6. Verified with public keys alone, as anyone could')
  const jwks = await json(await fetch(`${url}/.well-known/jwks.json`))
  const verdict = verifyReceipt(receipt, { jwks })
  for (const check of verdict.checks)
    say(`${check.ok === true ? 'ok     ' : check.ok === false ? 'FAILED ' : 'skipped'} ${check.name}: ${check.reason}`)
  if (!verdict.ok) throw new Error('The receipt does not verify.')
  say('The receipt holds.')
}

/** The sequencer gives a receipt its place within about a second. */
// biome-ignore lint/suspicious/noExplicitAny: what the API answers is shown as it is
async function placed(address: string): Promise<any> {
  for (let tries = 0; tries < 30; tries++) {
    const receipt = await json(await fetch(address))
    if (receipt.log) return receipt
    await new Promise((resume) => setTimeout(resume, 100))
  }
  return json(await fetch(address))
}

// biome-ignore lint/suspicious/noExplicitAny: what the API answers is shown as it is
const json = (response: Response): Promise<any> => response.json()
const say = (text: string) => console.log(text.replace(/^/gm, '  '))
const heading = (text: string) => console.log(`\n${text}\n`)
