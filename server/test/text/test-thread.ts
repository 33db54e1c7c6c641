import { parentPort } from 'node:worker_threads'

/** A thread for the tests of the pool. It does what its job says. */
parentPort!.on('message', (job: string) => {
  if (job === 'hang') for (;;);
  if (job === 'die') process.exit(3)
  if (job === 'fill')
    for (const held: string[][] = []; ; ) held.push(Array.from({ length: 100_000 }, () => 'x'.repeat(10)))
  if (job === 'throw') parentPort!.postMessage({ kind: 'error', message: 'no' })
  else parentPort!.postMessage({ kind: 'output', output: job === 'env' ? JSON.stringify(process.env) : `did ${job}` })
})
parentPort!.postMessage({ kind: 'ready' })
