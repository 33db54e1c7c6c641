import { randomBytes } from 'node:crypto'
import { chmodSync, linkSync, mkdirSync, readFileSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ConfigError, MIN_SECRET_LENGTH } from './config.ts'

/** Secrets that are not configured are generated once and stored in the data folder, readable by its owner only. */
export type SecretFolder = {
  folder: string
  readOrCreate(name: string, create?: () => string): string
  /** The same for the secret of a setting that is not set. A file that is empty or too short is refused as a setting is. */
  readOrCreateFor(setting: keyof typeof MIN_SECRET_LENGTH): string
}

const FILE_OF_SETTING = {
  ADMIN_KEY: 'admin.key',
  SIGNING_KEY: 'signing.key',
  ENCRYPTION_KEY: 'encryption.key',
} as const

export function openSecretFolder(dataDir: string): SecretFolder {
  const folder = join(dataDir, 'keys')
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  chmodSync(folder, 0o700)

  const readOrCreate = (name: string, create = () => randomBytes(32).toString('base64url')) => {
    const path = join(folder, name)
    try {
      return readFileSync(path, 'utf8').trim()
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    }
    // Written to a draft and linked into place: a crash leaves no partial key, and of two concurrent starts one wins.
    const draft = `${path}.${randomBytes(4).toString('hex')}`
    writeFileSync(draft, `${create()}\n`, { mode: 0o600, flush: true })
    try {
      linkSync(draft, path)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    } finally {
      unlinkSync(draft)
    }
    return readFileSync(path, 'utf8').trim()
  }

  return {
    folder,
    readOrCreate,
    readOrCreateFor(setting) {
      const secret = readOrCreate(FILE_OF_SETTING[setting])
      if (secret.length < MIN_SECRET_LENGTH[setting])
        throw new ConfigError(
          `The key file ${join(folder, FILE_OF_SETTING[setting])} is not usable: it must have at least ${MIN_SECRET_LENGTH[setting]} characters. Restore it from a backup.`,
        )
      return secret
    },
  }
}
