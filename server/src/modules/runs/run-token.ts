import { createHash, timingSafeEqual } from 'node:crypto'
import type { Keys } from '../../platform/keys.ts'

/** The token of a guest's run is derived from its id with a secret, so that it need not be stored. */
export const createRunToken =
  (keys: Pick<Keys, 'fingerprint'>) =>
  (runId: string): string =>
    `rt_${keys.fingerprint(`run-token:${runId}`)}`

export const isSameToken = (token: string, expected: string): boolean =>
  timingSafeEqual(digest(token), digest(expected))

const digest = (text: string) => createHash('sha256').update(text).digest()

/** The header `X-Run-Token`. */
export const readRunToken = (header: string | string[] | undefined): string | undefined =>
  header === undefined ? undefined : String(header)
