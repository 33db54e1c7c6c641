import { resolve } from 'node:path'
import type { Config } from '../platform/config.ts'
import { readServiceAddress } from '../platform/service-address.ts'

/** The address of a service that runs with this data folder or these settings, if one answers. */
export async function findRunningService(config: Config): Promise<string | undefined> {
  const started = readServiceAddress(resolve(config.COUNTERSIGN_DATA_DIR))
  for (const url of [started, config.PUBLIC_URL ?? `http://${config.HOST}:${config.PORT}`]) {
    if (!url) continue
    const health = await fetch(`${url}/api/health`, { signal: AbortSignal.timeout(1_000) }).catch(() => undefined)
    if (health?.ok) return url
  }
  return undefined
}
