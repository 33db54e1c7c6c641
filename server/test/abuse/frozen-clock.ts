import type { Clock } from '../../src/platform/clock.ts'

const startedAt = Date.now()

/** Time stands still, so that limits do not refill while a slow machine sends the requests of a test. */
export const frozenClock: Clock = { now: () => new Date(startedAt) }
