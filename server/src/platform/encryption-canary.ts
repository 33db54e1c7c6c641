import type pg from 'pg'
import { ConfigError } from './config.ts'
import type { Keys } from './keys.ts'

const CANARY = 'countersign/encryption-canary'

/**
 * Compares the encryption key with the one this database was used with before. With another key, API keys and sessions
 * would stop working and stored secrets could not be read, one after the other and much later.
 */
export async function checkEncryptionKey(pool: pg.Pool, keys: Pick<Keys, 'encrypt' | 'decrypt'>): Promise<void> {
  const insert = 'insert into encryption_canary (id, sealed) values (1, $1) on conflict (id) do nothing'
  const read = async () =>
    (await pool.query<{ sealed: string }>('select sealed from encryption_canary')).rows[0]?.sealed
  let sealed = await read()
  if (sealed === undefined) {
    await pool.query(insert, [keys.encrypt(CANARY)])
    // Another process may have been first, with another key.
    sealed = await read()
  }
  if (!opens(keys, sealed!))
    throw new ConfigError(
      'ENCRYPTION_KEY is not the key that this database was encrypted with. Set the earlier one, or restore keys/encryption.key of the data folder; it cannot be rotated.',
    )
}

function opens(keys: Pick<Keys, 'decrypt'>, sealed: string): boolean {
  try {
    return keys.decrypt(sealed) === CANARY
  } catch {
    return false
  }
}
