import type { EmbeddedPostgres } from '../adapters/postgres/embedded.ts'
import { createService, type Overrides, type Service } from '../app.ts'
import type { Config } from '../platform/config.ts'
import { writeServiceAddress } from '../platform/service-address.ts'
import { openSupervised } from '../platform/supervised.ts'
import { within } from '../platform/within.ts'
import { createCrashProbe } from './crash-probe.ts'
import { fundDevelopmentPayer } from './development-payer.ts'
import { describeTakenPort, findPort } from './find-port.ts'
import { onStopSignal } from './stop-signals.ts'

/** How long a second signal waits for the database server to stop. */
const STOP_DATABASE_MS = 5_000

export async function serve(config: Config) {
  const startedAt = performance.now()
  const supervised = openSupervised(process.env)
  // Opening the database takes seconds; a port in use is said before.
  if (!supervised) await findPort(config)
  const { service, isStopping } = await startStoppable(config, { probe: createCrashProbe(process.env), supervised })
  if (isStopping()) return
  const address = await service.listen().catch(async (error) => {
    // Otherwise the embedded database server would keep running without its service.
    await service.close()
    throw describeTakenPort(error, config)
  })
  // A failure would be one of reading the suite, which the benchmark reports.
  void service.warmUp().catch(() => undefined)
  if (supervised) return supervised.announceReady(address)
  const isDevelopment = service.chain.dev && config.NODE_ENV !== 'production'
  const payer = isDevelopment ? await fundDevelopmentPayer(service) : undefined
  const { dataDir, secrets } = service
  const isDevelopmentChain = service.chain.dev !== undefined
  announceStart({ address, dataDir, keyFolder: secrets.folder, payer, isDevelopmentChain, startedAt })
}

/** Prints the start for people, and writes the address for commands. */
export function announceStart(start: {
  address: string
  dataDir: string
  keyFolder: string
  payer: { address: string; balanceUsdc: number } | undefined
  isDevelopmentChain: boolean
  startedAt: number
  processes?: string
}) {
  const { address, payer } = start
  writeServiceAddress(start.dataDir, address)
  // The demo looks for the service in the same data folder.
  const folder = process.env.COUNTERSIGN_DATA_DIR ? `COUNTERSIGN_DATA_DIR=${start.dataDir} ` : ''
  const demo = `${folder}${import.meta.filename.endsWith('.ts') ? 'npm run demo' : 'npx countersign demo'}`
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
      ...(start.isDevelopmentChain
        ? [
            "  Chain       for development, with Base's id and USDC address: never sign its 402s with a key that has money on Base",
          ]
        : []),
      '',
      ...(payer ? [`  Try it:     ${demo}`] : []),
      `  ${payer ? '   or  ' : 'Try it:'}     curl ${address}/api/pricing`,
      '',
    ].join('\n'),
  )
}

/** Creates the service so that signals stop it, also while it is being created. */
export async function startStoppable(
  config: Config,
  overrides: Overrides,
): Promise<{ service: Service; isStopping: () => boolean }> {
  let postgres: EmbeddedPostgres | undefined
  const onDatabase = (started: EmbeddedPostgres) => {
    postgres = started
  }
  const starting = createService(config, { ...overrides, onDatabase })
  const isStopping = onStopSignal({
    stop: async () => {
      const service = await starting.catch(() => undefined)
      await service?.stop()
    },
    stopAtOnce: async () => postgres && (await within(STOP_DATABASE_MS, postgres.stop()).catch(() => undefined)),
    isSupervised: overrides.supervised !== undefined,
  })
  return { service: await starting, isStopping }
}
