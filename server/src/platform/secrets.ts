import { randomBytes } from 'node:crypto'
import { chmodSync, linkSync, mkdirSync, readFileSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Secrets that nobody gave are made once and kept under the data folder, readable by the owner alone. */
export type SecretFolder = { folder: string; keep(name: string, make?: () => string): string }

export function openSecretFolder(dataDir: string): SecretFolder {
  const folder = join(dataDir, 'keys')
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  chmodSync(folder, 0o700)

  return {
    folder,
    keep(name, make = () => randomBytes(32).toString('base64url')) {
      const path = join(folder, name)
      try {
        return readFileSync(path, 'utf8').trim()
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
      }
      // Written beside and linked into place: a crash leaves no half a key, and of two starts at once one wins.
      const draft = `${path}.${randomBytes(4).toString('hex')}`
      writeFileSync(draft, `${make()}\n`, { mode: 0o600, flush: true })
      try {
        linkSync(draft, path)
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
      } finally {
        unlinkSync(draft)
      }
      return readFileSync(path, 'utf8').trim()
    },
  }
}
