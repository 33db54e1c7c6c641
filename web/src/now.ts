import { useSyncExternalStore } from 'react'

const TICK_MS = 15_000
const STALE_MS = 1_000
const listeners = new Set<() => void>()
let now = Date.now()
let timer: ReturnType<typeof setInterval> | undefined

/** The time in milliseconds, one clock for the whole page, so that relative times stay true and agree with each other. */
export const useNow = () =>
  useSyncExternalStore(
    subscribe,
    () => now,
    () => Date.now(),
  )

function subscribe(onChange: () => void) {
  if (listeners.size === 0) {
    now = Date.now()
    timer = setInterval(tick, TICK_MS)
  }
  // What has just happened would otherwise lie in the future until the next tick.
  else if (Date.now() - now >= STALE_MS) tick()
  listeners.add(onChange)
  return () => {
    listeners.delete(onChange)
    if (listeners.size === 0) clearInterval(timer)
  }
}

function tick() {
  now = Date.now()
  for (const listener of listeners) listener()
}
