const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

/** After the first attempt, about a day of further ones. */
export const retryDelaysMs = [5 * SECOND, 30 * SECOND, 2 * MINUTE, 10 * MINUTE, HOUR, 4 * HOUR, 8 * HOUR, 12 * HOUR]

const JITTER = 0.1

/** How long to wait after so many attempts, or undefined when it is over. Jitter keeps a crowd from coming back together. */
export function retryDelayMs(attempts: number, random: () => number): number | undefined {
  const delay = retryDelaysMs[attempts - 1]
  return delay === undefined ? undefined : Math.round(delay * (1 - JITTER + 2 * JITTER * random()))
}
