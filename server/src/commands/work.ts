import { createService } from '../app.ts'
import type { Config } from '../platform/config.ts'
import { stopOnSignal } from './serve.ts'

/** The background work alone, apart from `serve`: as many processes as you like, on one database, without a leader. */
export async function work(config: Config) {
  const service = await createService(config, { role: 'work' })
  stopOnSignal(service)
  service.work()
  console.log('\n  Countersign works in the background and listens nowhere.\n')
  // Timers alone would let the process end.
  await new Promise(() => setInterval(() => {}, 60_000))
}
