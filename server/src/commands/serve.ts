import { createService, type Service } from '../app.ts'
import type { Config } from '../platform/config.ts'
import { openSupervised, type Supervised } from '../platform/supervised.ts'
import { createCrashProbe } from './crash-probe.ts'
import { fundDevelopmentPayer } from './development-payer.ts'

const SHUTDOWN_MS = 10_000

export async function serve(config: Config) {
  const startedAt = performance.now()
  const supervised = openSupervised(process.env)
  const service = await createService(config, { probe: createCrashProbe(process.env), supervised })
  stopOnSignal(service, supervised)
  const address = await service.listen().catch(async (error) => {
    // Otherwise the embedded database server would keep running without its service.
    await service.close()
    throw error
  })
  if (supervised) return supervised.announceReady(address)
  const isDevelopment = service.chain.dev && config.NODE_ENV !== 'production'
  const payer = isDevelopment ? await fundDevelopmentPayer(service) : undefined
  printStart({ address, dataDir: service.dataDir, keyFolder: service.secrets.folder, payer, startedAt })
}

export function printStart(start: {
  address: string
  dataDir: string
  keyFolder: string
  payer: { address: string; balanceUsdc: number } | undefined
  startedAt: number
  processes?: string
}) {
  const { address, payer } = start
  const seconds = ((performance.now() - start.startedAt) / 1000).toFixed(1)
  console.log(
    [
      '',
      `  Countersign listens on ${address} (ready in ${seconds} s)`,
      `  Dashboard   ${address}/dashboard`,
      `  API page    ${address}/docs`,
      `  Data        ${start.dataDir}`,
      `  Keys        ${start.keyFolder} (admin key: admin.key)`,
      ...(start.processes ? [`  Processes   ${start.processes}`] : []),
      ...(payer ? [`  Payer       ${payer.address} has ${payer.balanceUsdc} test USDC (key: dev-payer.key)`] : []),
      '',
      payer ? '  Try it:     npm run demo' : `  Try it:     curl ${address}/api/pricing`,
      '',
    ].join('\n'),
  )
}

/** The first signal shuts down gracefully; a second one exits at once. */
export function stopOnSignal(service: Service, supervised?: Supervised) {
  let stopping = false
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, async () => {
      // Ctrl-C reaches the supervisor too, which then sends SIGTERM, so here neither counts as a second signal.
      if (supervised && (stopping || signal === 'SIGINT')) return
      if (stopping) process.exit(1)
      stopping = true
      setTimeout(() => process.exit(1), SHUTDOWN_MS).unref()
      await service.close()
      process.exit(0)
    })
  }
}
