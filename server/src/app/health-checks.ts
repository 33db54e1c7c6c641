import { statfs } from 'node:fs/promises'
import type pg from 'pg'
import type { PartCheck } from '../modules/insights/health.ts'
import type { ChainReader } from '../modules/payments/facilitator.ts'
import { type Clock, systemClock } from '../platform/clock.ts'
import type { watchForFullDisk } from '../platform/full-disk.ts'

/** The embedded database keeps four segments of its log of 16 MB ready. */
const LOW_DISK_MEGABYTES = 64
const MEGABYTE = 1024 * 1024
/** Quotes are valid for minutes, and signed payments too. */
const MAX_CLOCK_DIFFERENCE_SECONDS = 5

/** `dataDir`: where the embedded database has its files. */
export const createDiskCheck =
  (deps: { fullDisk: ReturnType<typeof watchForFullDisk>; dataDir: string | undefined }): PartCheck =>
  async () => {
    if (await deps.fullDisk.isFull())
      return { message: 'The database server cannot write: its disk is full.', degrades: true }
    if (deps.dataDir === undefined) return undefined
    const { bavail, bsize } = await statfs(deps.dataDir)
    const free = Math.floor((bavail * bsize) / MEGABYTE)
    return free < LOW_DISK_MEGABYTES ? { message: `Only ${free} MB are free on the disk of the database.` } : undefined
  }

export const createChainCheck =
  (reader: Pick<ChainReader, 'headTime'>): PartCheck =>
  () =>
    reader.headTime().then(
      () => undefined,
      () => ({ message: 'The RPC node of the chain does not answer: payments whose outcome is unknown wait for it.' }),
    )

/** Compares the clock of this process with the database's, which all processes share. */
export const createClockCheck =
  (pool: Pick<pg.Pool, 'query'>, clock: Clock = systemClock): PartCheck =>
  async () => {
    const askedAt = clock.now().getTime()
    const { rows } = await pool.query<{ at: Date }>('select clock_timestamp() as at')
    const answeredAt = clock.now().getTime()
    const at = rows[0]!.at.getTime()
    // The database read its clock at some time between the question and the answer.
    const aheadMs = askedAt - at
    const behindMs = at - answeredAt
    const seconds = Math.round(Math.max(aheadMs, behindMs) / 1000)
    if (seconds <= MAX_CLOCK_DIFFERENCE_SECONDS) return undefined
    const direction = aheadMs > behindMs ? 'ahead of' : 'behind'
    return { message: `The clock of this process is ${seconds} s ${direction} that of the database.` }
  }

export const toPartCheck =
  (findProblem: () => Promise<string | undefined>): PartCheck =>
  async () => {
    const message = await findProblem()
    return message === undefined ? undefined : { message }
  }
