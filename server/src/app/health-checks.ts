import { statfs } from 'node:fs/promises'
import type { PartCheck } from '../modules/insights/health.ts'
import type { ChainReader } from '../modules/payments/facilitator.ts'
import type { watchForFullDisk } from '../platform/full-disk.ts'

/** The embedded database keeps four segments of its log of 16 MB ready. */
const LOW_DISK_MEGABYTES = 64
const MEGABYTE = 1024 * 1024

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

export const toPartCheck =
  (findProblem: () => Promise<string | undefined>): PartCheck =>
  async () => {
    const message = await findProblem()
    return message === undefined ? undefined : { message }
  }
