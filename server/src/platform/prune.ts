// Out of a minute, so that deleting old rows leaves most of the time to everything else.
const MAX_MS = 5_000

/** Deletes batch after batch until nothing is left or the time is up, so that pruning keeps up with what is written. */
export async function pruneInBatches(deleteBatch: () => Promise<number>, maxMs = MAX_MS): Promise<number> {
  const deadline = performance.now() + maxMs
  let deletedCount = 0
  for (;;) {
    const batchCount = await deleteBatch()
    deletedCount += batchCount
    if (batchCount === 0 || performance.now() > deadline) return deletedCount
  }
}
