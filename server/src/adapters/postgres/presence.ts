import { readFileSync, readlinkSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'

const FRESH_MS = 15_000

/**
 * PostgreSQL tells by process ids and shared memory whether a cluster is in use, and neither is seen across containers
 * or hosts that share one volume: two servers would then write the same files. So whoever supervises a server keeps a
 * dated note of where it runs, and a note from elsewhere that is fresh keeps us from starting a second one.
 */
export type Presence = {
  note(): void
  /** Where else the cluster was in use a moment ago. */
  elsewhere(): string | undefined
  /** Takes our own note away, never another's: that one protects a server that runs. */
  clear(): void
}

export function createPresence(path: string): Presence {
  const here = `${hostname()} ${readPidNamespace()}`

  const read = () => {
    const writtenAt = statSync(path, { throwIfNoEntry: false })?.mtimeMs
    return writtenAt === undefined ? undefined : { writtenAt, where: readFileSync(path, 'utf8').trim() }
  }

  return {
    note: () => writeFileSync(path, `${here}\n`, { mode: 0o600 }),
    elsewhere: () => {
      const found = read()
      if (!found || found.where === here || Date.now() - found.writtenAt > FRESH_MS) return undefined
      return found.where
    },
    clear: () => {
      if (read()?.where === here) rmSync(path, { force: true })
    },
  }
}

/** Process ids mean the same only to processes that share this. */
function readPidNamespace(): string {
  try {
    return readlinkSync('/proc/self/ns/pid')
  } catch {
    return process.platform
  }
}
