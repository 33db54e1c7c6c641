import type pg from 'pg'
import { ConfigError } from './config.ts'
import { findForeignColumn } from './encryption-rotation.ts'
import type { Keys } from './keys.ts'

const CANARY = 'countersign/encryption-canary'

type CanaryRow = {
  sealed: string
  next_sealed: string | null
  fingerprint_key: string | null
  rotated_at: Date | null
}

/**
 * Compares the encryption keys with those this database was used with before. With another key, API keys and sessions
 * would stop working and stored secrets could not be read, one after the other and much later. The canary changes to a
 * new key after everything else, so a key cannot be left out while something needs it.
 */
export async function checkEncryptionKey(pool: pg.Pool, keys: Keys): Promise<void> {
  const read = async () =>
    (
      await pool.query<CanaryRow>(
        'select sealed, next_sealed, fingerprint_key, rotated_at from encryption_canary where id = 1',
      )
    ).rows[0]
  let row = await read()
  if (row === undefined) {
    await pool.query('insert into encryption_canary (id, sealed) values (1, $1) on conflict (id) do nothing', [
      keys.encrypt(CANARY),
    ])
    // Another process may have been first, with another key.
    row = (await read())!
  }
  if (!opens(keys, row.sealed))
    throw new ConfigError(
      'ENCRYPTION_KEY is not the key that this database was encrypted with. Set the earlier one, or restore keys/encryption.key of the data folder; to replace it, set the earlier one as ENCRYPTION_KEY_PREVIOUS too.',
    )
  if (row.next_sealed !== null && !opens(keys, row.next_sealed))
    throw new ConfigError(
      'This database is being encrypted with another key. Set that one as ENCRYPTION_KEY, and the earlier one as ENCRYPTION_KEY_PREVIOUS.',
    )
  if (row.rotated_at !== null && !keys.encryption.hasPrevious) {
    const column = await findForeignColumn(pool, keys)
    if (column !== undefined)
      throw new ConfigError(
        `Values in ${column} are still encrypted with an earlier key. Set it as ENCRYPTION_KEY_PREVIOUS until /api/env-check says that nothing is left.`,
      )
  }
  if (row.fingerprint_key === null) {
    await pool.query('update encryption_canary set fingerprint_key = $1 where fingerprint_key is null', [
      keys.encrypt(keys.encryption.fingerprintKeyFor(row.sealed)),
    ])
    row = (await read())!
  }
  keys.useFingerprintKey(keys.decrypt(row.fingerprint_key!))
  if (!keys.encryption.isCurrent(row.sealed))
    await pool.query('update encryption_canary set next_sealed = $1 where sealed = $2', [
      keys.encrypt(CANARY),
      row.sealed,
    ])
}

/** Puts the canary and the fingerprint key under the current key, once nothing else needs an earlier one. */
export async function finishRotation(pool: pg.Pool, keys: Keys, at: Date): Promise<void> {
  const { rows } = await pool.query<CanaryRow>('select * from encryption_canary where id = 1')
  const { sealed, fingerprint_key } = rows[0]!
  if (sealed.startsWith(keys.encryption.currentPrefix)) return
  await pool.query(
    'update encryption_canary set sealed = $1, fingerprint_key = $2, next_sealed = null, rotated_at = $3 where sealed = $4',
    [keys.encrypt(CANARY), keys.encrypt(keys.decrypt(fingerprint_key!)), at, sealed],
  )
}

function opens(keys: Pick<Keys, 'decrypt'>, sealed: string): boolean {
  try {
    return keys.decrypt(sealed) === CANARY
  } catch {
    return false
  }
}
