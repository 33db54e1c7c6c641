import type { Clock } from './clock.ts'

/**
 * Stops calls to a remote service after several failures in a row, so that callers use a fallback at once instead of
 * waiting for a service that is down. After the cool-down some calls are let through as probes, and their outcome decides.
 * Only faults of the service are failures: no answer, an answer of 5xx, a time-out. What a caller can bring about with
 * its own request must not be recorded as one, because every caller shares the breaker.
 */
export type CircuitBreaker = {
  /** Whether a call may go out now. After the cool-down the first callers get `true`: they are the probes. */
  allowsCall(): boolean
  recordSuccess(): void
  recordFailure(): void
  /** `failing`: the last calls failed, and others are allowed; `open`: none is, until the cool-down has passed. */
  state(): 'closed' | 'failing' | 'open'
  /** Ends a call whose outcome says nothing about the service; if it was a probe, the next call takes its place. */
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

/** More than one, so that a single slow or odd call does not keep everybody else waiting. */
const MIN_PROBES = 2
const MAX_PROBES = 32
/** One probe for so many calls that were refused since the last failure: a busy service finds out sooner. */
const REFUSED_CALLS_PER_PROBE = 10

export function createCircuitBreaker(options: CircuitBreakerOptions): CircuitBreaker {
  const { clock, failureThreshold, coolDownMs, probeTimeoutMs = Number.POSITIVE_INFINITY } = options
  let failures = 0
  let openUntil = 0
  let refusedCalls = 0
  /** When each probe under way stops to count, oldest first. */
  let probes: number[] = []
  const isOpen = () => failures >= failureThreshold
  const maxProbes = () => Math.min(MAX_PROBES, Math.max(MIN_PROBES, Math.ceil(refusedCalls / REFUSED_CALLS_PER_PROBE)))

  return {
    allowsCall() {
      if (!isOpen()) return true
      const now = clock.now().getTime()
      probes = probes.filter((until) => now < until)
      if (now < openUntil || probes.length >= maxProbes()) {
        refusedCalls += 1
        return false
      }
      probes.push(now + probeTimeoutMs)
      return true
    },
    recordSuccess() {
      failures = 0
      refusedCalls = 0
      probes = []
    },
    recordFailure() {
      failures = Math.min(failures + 1, failureThreshold)
      probes.shift()
      if (!isOpen()) return
      openUntil = clock.now().getTime() + coolDownMs
      refusedCalls = 0
    },
    state() {
      if (failures === 0) return 'closed'
      return isOpen() && clock.now().getTime() < openUntil ? 'open' : 'failing'
    },
    abandonProbe() {
      probes.shift()
    },
  }
}
