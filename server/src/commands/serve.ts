import { createService, type Service } from '../app.ts'
import type { Config } from '../platform/config.ts'
import { createCrashProbe } from './crash-probe.ts'
import { fundDevelopmentPayer } from './development-payer.ts'

const SHUTDOWN_MS = 10_000

export async function serve(config: Config) {
  const startedAt = performance.now()
  const service = await createService(config, { probe: createCrashProbe(process.env) })
  stopOnSignal(service)
  const address = await service.listen().catch(async (error) => {
    // Otherwise the embedded database server would keep running without its service.
    await service.close()
    throw error
  })
  const isDevelopment = service.chain.dev && config.NODE_ENV !== 'production'
  const payer = isDevelopment ? await fundDevelopmentPayer(service) : undefined
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1)
  console.log(
    [
      '',
      `  Countersign listens on ${address} (ready in ${seconds} s)`,
      `  Dashboard   ${address}/dashboard`,
      `  API page    ${address}/docs`,
      `  Data        ${service.dataDir}`,
      `  Keys        ${service.secrets.folder} (admin key: admin.key)`,
      ...(payer ? [`  Payer       ${payer.address} has ${payer.balanceUsdc} test USDC (key: dev-payer.key)`] : []),
      '',
      payer ? '  Try it:     npm run demo' : `  Try it:     curl ${address}/api/pricing`,
      '',
    ].join('\n'),
  )
}

/** The first signal shuts down gracefully; a second one exits at once. */
export function stopOnSignal(service: Service) {
  let stopping = false
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, async () => {
      if (stopping) process.exit(1)
      stopping = true
      setTimeout(() => process.exit(1), SHUTDOWN_MS).unref()
      await service.close()
      process.exit(0)
    })
  }
}
