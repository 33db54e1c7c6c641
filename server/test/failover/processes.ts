import { setTimeout as pause } from 'node:timers/promises'
import { clients, spawnService, testEnv } from '../harness.ts'

type Service = Awaited<ReturnType<typeof spawnService>>
const START_ATTEMPTS = 30

export const serviceEnv = (databaseUrl: string, dataDir: string): Record<string, string> => ({
  ...testEnv,
  PATH: process.env.PATH ?? '',
  HOME: process.env.HOME ?? '',
  DATABASE_URL: databaseUrl,
  COUNTERSIGN_DATA_DIR: dataDir,
  SIGNING_KEY: 's'.repeat(40),
  ENCRYPTION_KEY: 'e'.repeat(40),
  ADMIN_KEY: 'a'.repeat(40),
  LOG_LEVEL: 'warn',
})

/** Service processes behind a load balancer that knows which of them run. */
export function createProcesses(envs: readonly Record<string, string>[]) {
  const count = envs.length
  const services: (Service | undefined)[] = Array.from({ length: count })
  const deaths: string[] = []
  const outputs: (() => string)[] = []
  let closing = false
  let turn = 0

  async function start(index: number) {
    for (let attempt = 1; ; attempt += 1)
      try {
        const service = await spawnService(envs[index]!)
        services[index] = service
        outputs.push(service.output)
        service.exited.then((reason) => {
          if (services[index] === service) services[index] = undefined
          if (!closing && reason !== 'SIGKILL')
            deaths.push(`a process ended by itself (${reason}):\n${service.output().slice(-3_000)}`)
        })
        return
      } catch (error) {
        // The database may be failing over while it starts; systemd would start it again.
        if (closing || attempt === START_ATTEMPTS) throw error
        await pause(2_000)
      }
  }

  const nextUrl = (): string => {
    for (let tries = 0; tries < services.length; tries += 1) {
      const service = services[turn++ % services.length]
      if (service) return service.url
    }
    throw new TypeError('No process runs.')
  }
  const balancedFetch: typeof fetch = async (input, init) => {
    const { pathname, search } = new URL(String(input))
    return fetch(`${nextUrl()}${pathname}${search}`, init)
  }
  const current = () => clients(nextUrl())

  return {
    count,
    env: envs[0]!,
    /** Processes that ended without having been killed. */
    deaths,
    fetch: balancedFetch,
    http: {
      get: (path: string, headers?: Record<string, string>) => current().get(path, headers),
      balance: (address: string) => current().balance(address),
    },
    start,
    async startAll() {
      for (let index = 0; index < count; index += 1) await start(index)
    },
    async kill(index: number) {
      const service = services[index]
      service?.child.kill('SIGKILL')
      await service?.exited
    },
    /** What all of them wrote, one after the other. */
    output: () => outputs.map((read) => read()).join('\n--- another process\n'),
    async close() {
      closing = true
      await Promise.all(services.map((service) => service?.stop('SIGKILL')))
    },
  }
}
