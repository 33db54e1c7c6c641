import { randomUUID } from 'node:crypto'
import { closeSync, fsyncSync, mkdirSync, openSync, readFileSync, renameSync, unlinkSync, writeSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { CliError } from './cli-error.ts'

/** Replaces a file so that after a crash it has the old or the new contents; it is on the disk when this returns. */
export function writeDurably(path: string, text: string) {
  const folder = dirname(path)
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const temporaryPath = `${path}.${randomUUID()}.tmp`
  const file = openSync(temporaryPath, 'wx', 0o600)
  try {
    writeSync(file, text)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
  renameSync(temporaryPath, path)
  // Windows cannot open a folder; its file systems write the names of files through.
  if (process.platform === 'win32') return
  const handle = openSync(folder, 'r')
  try {
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
}

/** The text of a file, or undefined when there is none. */
export function readIfPresent(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw new CliError(`${path} cannot be read: ${(error as Error).message}`)
  }
}

export type FolderLock = {
  /** Throws when another process has taken the folder over. */
  assertHeld(): void
  release(): void
}

const LOCK_FILE = 'lock'

/**
 * Keeps a second process out of a state folder. A lock whose process is gone is taken over; should two processes do so at
 * once, the one that lost finds another token in the file before its next write.
 */
export function lockFolder(folder: string): FolderLock {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const path = join(folder, LOCK_FILE)
  const token = `${process.pid} ${randomUUID()}`
  const holder = readIfPresent(path)
  if (holder !== undefined) {
    if (isRunning(Number.parseInt(holder, 10)))
      throw new CliError(`${folder} is in use by process ${Number.parseInt(holder, 10)}.`)
    unlinkSync(path)
  }
  let file: number
  try {
    file = openSync(path, 'wx', 0o600)
  } catch {
    throw new CliError(`${folder} is in use by another process.`)
  }
  writeSync(file, token)
  closeSync(file)
  const isHeld = () => readIfPresent(path) === token
  return {
    assertHeld() {
      if (!isHeld()) throw new CliError(`${folder} was taken over by another process.`)
    },
    release() {
      if (isHeld()) unlinkSync(path)
    },
  }
}

/** A restarted container may have the id of its predecessor. */
function isRunning(pid: number): boolean {
  if (!Number.isSafeInteger(pid) || pid <= 0 || pid === process.pid) return false
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
