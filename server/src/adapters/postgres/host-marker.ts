import { readFileSync, readlinkSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'

const MARKER_TTL_MS = 15_000

/**
 * PostgreSQL detects by process ids and shared memory whether a cluster is in use, and neither is visible across
 * containers or hosts that share one volume: two servers would then write the same files. So the supervisor keeps a file
 * with the host it runs on up to date, and a recent file of another host prevents a second server.
 */
export type HostMarker = {
  write(): void
  /** The other host that used the cluster within the last seconds. */
  otherHost(): string | undefined
  /** Removes the file if it is ours: another host's file protects a running server. */
  remove(): void
}

export function createHostMarker(path: string): HostMarker {
  const currentHost = `${hostname()} ${readPidNamespace()}`

  const readMarker = () => {
    const writtenAt = statSync(path, { throwIfNoEntry: false })?.mtimeMs
    return writtenAt === undefined ? undefined : { writtenAt, host: readFileSync(path, 'utf8').trim() }
  }

  return {
    write: () => writeFileSync(path, `${currentHost}\n`, { mode: 0o600 }),
    otherHost: () => {
      const marker = readMarker()
      if (!marker || marker.host === currentHost || Date.now() - marker.writtenAt > MARKER_TTL_MS) return undefined
      return marker.host
    },
    remove: () => {
      if (readMarker()?.host === currentHost) rmSync(path, { force: true })
    },
  }
}

/** Process ids are only comparable within one PID namespace. */
function readPidNamespace(): string {
  try {
    return readlinkSync('/proc/self/ns/pid')
  } catch {
    return process.platform
  }
}
