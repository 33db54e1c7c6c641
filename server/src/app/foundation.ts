import type { Clock } from '../platform/clock.ts'
import type { Config } from '../platform/config.ts'
import type { Database } from '../platform/db.ts'
import type { Idempotency } from '../platform/idempotency.ts'
import type { Ids } from '../platform/ids.ts'
import type { Jobs } from '../platform/jobs.ts'
import type { Keys } from '../platform/keys.ts'
import type { Log } from '../platform/log.ts'
import type { Metrics } from '../platform/metrics.ts'
import type { Notify } from '../platform/notify.ts'
import type { Outbox } from '../platform/outbox.ts'

/** What every part of the house stands on; `app.ts` opens it, the files beside this one compose a chapter each upon it. */
export type Foundation = Pick<Database, 'db' | 'pool'> & {
  config: Config
  clock: Clock
  ids: Ids
  keys: Keys
  log: Log
  metrics: Metrics
  jobs: Jobs
  notify: Notify
  outbox: Outbox
  idempotency: Idempotency
  instance: string
  publicUrl: () => string
  /** Registers what has to be closed; the last opened is closed first. */
  onClose(closer: () => Promise<unknown>): void
}

export type Limits = { anonymousPerMinute: number; keyPerMinute: number }
