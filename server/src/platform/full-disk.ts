import type pg from 'pg'

/** SQLSTATE of a write for which the database server has no room. */
const DISK_FULL = '53100'
/** More than the pages that a table may have left, so that the file must grow. */
const PROBE_ROWS = 2_000

type WithConnection = { connection?: { on(event: 'errorMessage', listener: (error: { code?: string }) => void): void } }

/**
 * Notices that the database server cannot write because its disk is full: reads still work, so a plain query shows nothing.
 * Nothing is asked until a statement has failed for that reason; from then on a temporary table tells whether it still is so.
 */
export function watchForFullDisk(pool: pg.Pool) {
  let isSuspected = false
  pool.on('connect', (client) => {
    ;(client as unknown as WithConnection).connection?.on('errorMessage', ({ code }) => {
      if (code === DISK_FULL) isSuspected = true
    })
  })
  return {
    async isFull(): Promise<boolean> {
      if (!isSuspected) return false
      try {
        await pool.query(
          `begin; create temporary table disk_probe on commit drop as select repeat('x', 500) from generate_series(1, ${PROBE_ROWS}); rollback`,
        )
        isSuspected = false
      } catch (error) {
        if ((error as { code?: string }).code !== DISK_FULL) throw error
      }
      return isSuspected
    },
  }
}
