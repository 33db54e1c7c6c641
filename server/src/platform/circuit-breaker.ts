import type { Clock } from './clock.ts'

/**
 * Stops calls to a remote service after several failures in a row, so that callers use a fallback at once instead of
 * waiting for a service that is down. After the cool-down one probe call is allowed, and its outcome decides.
 */
export type CircuitBreaker = {
  /** Whether a call may go out now. After the cool-down only one caller gets `true`: it is the probe. */
  allowsCall(): boolean
  recordSuccess(): void
  recordFailure(): void
  /** Ends a probe whose outcome says nothing about the service; the next call is the new probe. */
  abandonProbe(): void
}

export type CircuitBreakerOptions = {
  clock: Clock
  /** Failures in a row after which the breaker opens. */
  failureThreshold: number
  /** How long no call is allowed after the last failure. */
  coolDownMs: number
  /** When a probe reports no outcome for this long, another one is allowed. By default there is no such limit. */
  probeTimeoutMs?: number
}

export function createCircuitBreaker(options: CircuitBreakerOptions): CircuitBreaker {
  const { clock, failureThreshold, coolDownMs, probeTimeoutMs = Number.POSITIVE_INFINITY } = options
  let failures = 0
  let openUntil = 0
  let probeUntil = 0
  const isOpen = () => failures >= failureThreshold

  return {
    allowsCall() {
      if (!isOpen()) return true
      const now = clock.now().getTime()
      if (now < openUntil || now < probeUntil) return false
      probeUntil = now + probeTimeoutMs
      return true
    },
    recordSuccess() {
      failures = 0
      probeUntil = 0
    },
    recordFailure() {
      failures = Math.min(failures + 1, failureThreshold)
      probeUntil = 0
      if (isOpen()) openUntil = clock.now().getTime() + coolDownMs
    },
    abandonProbe() {
      probeUntil = 0
    },
  }
}
