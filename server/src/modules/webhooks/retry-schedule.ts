const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

/** The delays between attempts; after the first attempt retries go on for about a day. */
export const retryDelaysMs = [5 * SECOND, 30 * SECOND, 2 * MINUTE, 10 * MINUTE, HOUR, 4 * HOUR, 8 * HOUR, 12 * HOUR]

const JITTER = 0.1

/** The delay after this many attempts, or undefined after the last one. Jitter spreads retries that failed together. */
export function retryDelayMs(attempts: number, random: () => number): number | undefined {
  const delay = retryDelaysMs[attempts - 1]
  return delay === undefined ? undefined : Math.round(delay * (1 - JITTER + 2 * JITTER * random()))
}
