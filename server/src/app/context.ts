import type { Clock } from '../platform/clock.ts'
import type { Config } from '../platform/config.ts'
import type { Database } from '../platform/db.ts'
import type { Idempotency } from '../platform/idempotency.ts'
import type { Ids } from '../platform/ids.ts'
import type { Instances } from '../platform/instances.ts'
import type { Jobs } from '../platform/jobs.ts'
import type { Keys } from '../platform/keys.ts'
import type { Log } from '../platform/log.ts'
import type { Metrics } from '../platform/metrics.ts'
import type { Notifications } from '../platform/notifications.ts'
import type { Outbox } from '../platform/outbox.ts'

/** The shared services that `app.ts` opens first and passes to each `composeX` in this folder. */
export type AppContext = Pick<Database, 'db' | 'pool'> & {
  config: Config
  clock: Clock
  ids: Ids
  keys: Keys
  log: Log
  metrics: Metrics
  jobs: Jobs
  notifications: Notifications
  outbox: Outbox
  idempotency: Idempotency
  instance: string
  instances: Instances
  publicUrl: () => string
  /** Registers a function that closes a part; the part opened last is closed first. */
  onClose(closer: () => Promise<unknown>): void
}

export type Limits = { anonymousPerMinute: number; keyPerMinute: number }
