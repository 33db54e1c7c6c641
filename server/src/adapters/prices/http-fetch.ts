import { PriceSourceError, type SourceRequest, type SourceResponse } from '../../modules/basis/price-source.ts'
import type { Clock } from '../../platform/clock.ts'

const TIMEOUT_MS = 10_000
const MAX_BYTES = 4 * 1024 * 1024

export type HttpFetchOptions = { clock: Clock; timeoutMs?: number; maxBytes?: number }

/** Sends one request to one source: no redirects, no retries, a deadline for the whole response and a size limit. */
export function createHttpFetch({ clock, timeoutMs = TIMEOUT_MS, maxBytes = MAX_BYTES }: HttpFetchOptions) {
  return async (sourceRequest: SourceRequest): Promise<SourceResponse> => {
    // Loaded for the first request, so that a service without sources starts without it.
    const { request } = await import('undici')
    const signal = AbortSignal.timeout(timeoutMs)
    try {
      const { statusCode, body } = await request(sourceRequest.url, {
        method: sourceRequest.method,
        // Some issuers reject requests without a user agent.
        headers: { 'user-agent': 'countersign-basis/1', accept: 'application/json', ...sourceRequest.headers },
        body: sourceRequest.body,
        signal,
      })
      const chunks: Buffer[] = []
      let size = 0
      for await (const chunk of body as AsyncIterable<Buffer>) {
        size += chunk.length
        if (size > maxBytes) throw new PriceSourceError(`its response is larger than ${maxBytes} bytes`)
        chunks.push(chunk)
      }
      return { status: statusCode, body: Buffer.concat(chunks), fetchedAt: clock.now() }
    } catch (error) {
      if (error instanceof PriceSourceError) throw error
      if (signal.aborted) throw new PriceSourceError(`it did not answer within ${timeoutMs} ms`, { cause: error })
      throw new PriceSourceError('it could not be reached, or its response was cut short', { cause: error })
    }
  }
}
