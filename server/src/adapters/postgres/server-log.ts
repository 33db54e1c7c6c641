import { closeSync, copyFileSync, openSync, readSync, statSync, truncateSync } from 'node:fs'

const MAX_LOG_BYTES = 8 * 1024 * 1024
const MAX_TAIL_BYTES = 4096

/**
 * The server's log: one file and its predecessor, both bounded. The server appends to the open file, so truncating it in
 * place is safe and needs no signal. We open it, so the server's account needs no access to its folder.
 */
export type ServerLog = { open(): number; size(): number; readSince(offset: number): string; rotate(): void }

export function createServerLog(path: string): ServerLog {
  const size = () => statSync(path, { throwIfNoEntry: false })?.size ?? 0

  return {
    open: () => openSync(path, 'a', 0o600),
    size,
    readSince: (offset) => {
      const end = size()
      const from = Math.max(Math.min(offset, end), end - MAX_TAIL_BYTES)
      const buffer = Buffer.alloc(end - from)
      if (buffer.length === 0) return ''
      const file = openSync(path, 'r')
      try {
        return buffer.toString('utf8', 0, readSync(file, buffer, 0, buffer.length, from)).trim()
      } finally {
        closeSync(file)
      }
    },
    rotate: () => {
      if (size() <= MAX_LOG_BYTES) return
      copyFileSync(path, `${path}.1`)
      truncateSync(path)
    },
  }
}
