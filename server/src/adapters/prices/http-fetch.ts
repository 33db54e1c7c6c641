import { type SourceAnswer, SourceRefused, type SourceRequest } from '../../modules/basis/price-source.ts'
import type { Clock } from '../../platform/clock.ts'

const TIMEOUT_MS = 10_000
const MOST_BYTES = 4 * 1024 * 1024

export type HttpFetchOptions = { clock: Clock; timeoutMs?: number; maxBytes?: number }

/** Asks one question of one source. No redirects, no retries, a deadline for the whole answer and a limit on its size. */
export function createHttpFetch({ clock, timeoutMs = TIMEOUT_MS, maxBytes = MOST_BYTES }: HttpFetchOptions) {
  return async (question: SourceRequest): Promise<SourceAnswer> => {
    // Loaded when the first source is asked: without sources the service starts without it.
    const { request } = await import('undici')
    const signal = AbortSignal.timeout(timeoutMs)
    try {
      const { statusCode, body } = await request(question.url, {
        method: question.method,
        // Some issuers refuse callers that do not say who they are.
        headers: { 'user-agent': 'countersign-basis/1', accept: 'application/json', ...question.headers },
        body: question.body,
        signal,
      })
      const parts: Buffer[] = []
      let size = 0
      for await (const part of body as AsyncIterable<Buffer>) {
        size += part.length
        if (size > maxBytes) throw new SourceRefused(`its answer is larger than ${maxBytes} bytes`)
        parts.push(part)
      }
      return { status: statusCode, body: Buffer.concat(parts), fetchedAt: clock.now() }
    } catch (error) {
      if (error instanceof SourceRefused) throw error
      if (signal.aborted) throw new SourceRefused(`it did not answer within ${timeoutMs} ms`, { cause: error })
      throw new SourceRefused('it could not be reached, or its answer was cut short', { cause: error })
    }
  }
}
