import { getPriority } from 'node:os'
import { serveThread } from '../../src/platform/thread-pool.ts'

/** A thread for the tests of the pool. It does what its job says. */
serveThread(async (job: string) => {
  if (job === 'hang') for (;;);
  if (job === 'die') process.exit(3)
  if (job === 'fill')
    for (const held: string[][] = []; ; ) held.push(Array.from({ length: 100_000 }, () => 'x'.repeat(10)))
  if (job === 'throw') throw new Error('no')
  if (job === 'env') return JSON.stringify(process.env)
  return job === 'priority' ? String(getPriority()) : `did ${job}`
})
