import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Where the service of a data folder listens, so that commands beside it find it on whatever port it has. */
const FILE = 'service.json'

export function writeServiceAddress(dataDir: string, url: string) {
  writeFileSync(join(dataDir, FILE), `${JSON.stringify({ url, pid: process.pid })}\n`)
}

/** Undefined when no service was started or its process has ended, in which case something else may listen there now. */
export function readServiceAddress(dataDir: string): string | undefined {
  try {
    const { url, pid } = JSON.parse(readFileSync(join(dataDir, FILE), 'utf8')) as { url: string; pid: number }
    process.kill(pid, 0)
    return url
  } catch {
    return undefined
  }
}
