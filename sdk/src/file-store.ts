import { createHash, randomUUID } from 'node:crypto'
import { link, mkdir, open, readdir, readFile, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { CallStore } from './call-store.ts'

/** Beyond this nothing new is begun: the folder would have calls that nobody finishes. */
const MAX_ENTRIES = 100_000

/**
 * A store in a folder, one file for each entry, readable by its owner only. An entry is on the disk (fsync of file and
 * folder) before `create` resolves. Several processes on one machine may share the folder: of two that create the same
 * entry one wins, and no reader sees half of one. Network file systems are not supported: they may not keep this promise.
 */
export function fileStore(folder: string): CallStore {
  const filePath = (name: string) => join(folder, `${createHash('sha256').update(name).digest('hex')}.json`)

  const syncFolder = async () => {
    // Windows cannot open a folder; its file systems write the names of files through.
    if (process.platform === 'win32') return
    const handle = await open(folder, 'r')
    try {
      await handle.sync()
    } finally {
      await handle.close()
    }
  }

  const readEntry = async (path: string): Promise<{ name: string; value: string } | undefined> => {
    const text = await readFile(path, 'utf8').catch(ignore('ENOENT'))
    return text === undefined ? undefined : JSON.parse(text)
  }

  const files = async () => {
    const names = (await readdir(folder).catch(ignore('ENOENT'))) ?? []
    return names.filter((name) => /^[0-9a-f]{64}\.json$/.test(name))
  }

  return {
    async create(name, value) {
      await mkdir(folder, { recursive: true, mode: 0o700 })
      if ((await files()).length >= MAX_ENTRIES) throw new Error(`${folder} has ${MAX_ENTRIES} entries.`)
      const temporaryPath = join(folder, `${randomUUID()}.tmp`)
      const handle = await open(temporaryPath, 'wx', 0o600)
      try {
        await handle.writeFile(JSON.stringify({ name, value }))
        await handle.sync()
      } finally {
        await handle.close()
      }
      try {
        // A link fails when its name exists, unlike a rename, and the file is whole from its first moment.
        await link(temporaryPath, filePath(name))
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
        throw error
      } finally {
        await unlink(temporaryPath)
      }
      await syncFolder()
      return true
    },
    async read(name) {
      const entry = await readEntry(filePath(name))
      return entry?.name === name ? entry.value : undefined
    },
    async names() {
      const entries = await Promise.all((await files()).map((file) => readEntry(join(folder, file))))
      return entries.flatMap((entry) => (entry ? [entry.name] : []))
    },
    async remove(name) {
      await unlink(filePath(name)).catch(ignore('ENOENT'))
    },
  }
}

const ignore = (code: string) => (error: NodeJS.ErrnoException) => {
  if (error.code === code) return undefined
  throw error
}
