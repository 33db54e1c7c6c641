import type { Config } from '../platform/config.ts'
import { openSupervised } from '../platform/supervised.ts'
import { startStoppable } from './serve.ts'

/** Runs only the background work, apart from `serve`. Any number of processes may share one database; there is no leader. */
export async function work(config: Config) {
  const supervised = openSupervised(process.env)
  const { service, isStopping } = await startStoppable(config, { role: 'work', supervised })
  if (isStopping()) return
  service.work()
  if (supervised) return supervised.announceReady('')
  console.log('\n  Countersign background worker started; it does not listen on a port.\n')
  // Keeps the process alive: the job timers alone do not.
  await new Promise(() => setInterval(() => {}, 60_000))
}
