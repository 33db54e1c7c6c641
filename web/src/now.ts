import { useSyncExternalStore } from 'react'

const STALE_MS = 1_000

/** The time in milliseconds, one clock for the whole page, so that relative times stay true and agree with each other. */
export const useNow = createClock(15_000)

/** The same every second, for what counts down. */
export const useSecond = createClock(1_000)

function createClock(tickMs: number): () => number {
  const listeners = new Set<() => void>()
  let now = Date.now()
  let timer: ReturnType<typeof setInterval> | undefined
  const tick = () => {
    now = Date.now()
    for (const listener of listeners) listener()
  }
  const subscribe = (onChange: () => void) => {
    if (listeners.size === 0) {
      now = Date.now()
      timer = setInterval(tick, tickMs)
    }
    // What has just happened would otherwise lie in the future until the next tick.
    else if (Date.now() - now >= STALE_MS) tick()
    listeners.add(onChange)
    return () => {
      listeners.delete(onChange)
      if (listeners.size === 0) clearInterval(timer)
    }
  }
  return () =>
    useSyncExternalStore(
      subscribe,
      () => now,
      () => Date.now(),
    )
}
