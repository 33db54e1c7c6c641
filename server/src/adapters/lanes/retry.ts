const FIRST_DELAY_MS = 250
const MAX_DELAY_MS = 10_000

/** How long to wait before retry number `attempt` (from 1): what the provider asked for, else doubling from a quarter second. */
export function retryDelayMs(attempt: number, retryAfterMs: number | undefined): number {
  return Math.min(MAX_DELAY_MS, retryAfterMs ?? FIRST_DELAY_MS * 2 ** (attempt - 1))
}

/** Waits unless the signal aborts first; resolves to whether the whole time passed. */
export function sleep(milliseconds: number, signal: AbortSignal): Promise<boolean> {
  if (signal.aborted) return Promise.resolve(false)
  return new Promise((resolve) => {
    const finish = (completed: boolean) => {
      clearTimeout(timer)
      signal.removeEventListener('abort', stop)
      resolve(completed)
    }
    const stop = () => finish(false)
    const timer = setTimeout(() => finish(true), milliseconds)
    signal.addEventListener('abort', stop, { once: true })
  })
}
