/** One JSON call to a facilitator. A failure says whether the request may have been sent. */
export type HttpResult =
  | { kind: 'response'; status: number; body: Record<string, unknown> }
  /** No connection was made, so the request was not sent. */
  | { kind: 'not_sent'; message: string }
  /** The request may have been sent; there was no readable response. */
  | { kind: 'lost'; message: string }

export type HttpCall = (method: 'GET' | 'POST', url: string, body: unknown, timeoutMs: number) => Promise<HttpResult>

const CONNECT_TIMEOUT_MS = 2_000
const MAX_RESPONSE_BYTES = 256 * 1024

/** Error codes that mean no connection was made. */
const CONNECTION_ERRORS = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
])

/** undici is loaded with the first call, because loading it takes a tenth of a second of the start. */
export function createHttpCall(): HttpCall & { close(): Promise<void> } {
  let loading: Promise<{ undici: typeof import('undici'); agent: import('undici').Agent }> | undefined
  const load = async () => {
    const undici = await import('undici')
    return {
      undici,
      agent: new undici.Agent({ connect: { timeout: CONNECT_TIMEOUT_MS }, maxResponseSize: MAX_RESPONSE_BYTES }),
    }
  }

  const call: HttpCall = async (method, url, body, timeoutMs) => {
    loading ??= load()
    const { undici, agent } = await loading
    try {
      const response = await undici.request(url, {
        dispatcher: agent,
        method,
        headers: { accept: 'application/json', ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
        body: body === undefined ? null : JSON.stringify(body),
        signal: AbortSignal.timeout(timeoutMs),
      })
      const parsed: unknown = JSON.parse(await response.body.text())
      if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed))
        throw new Error('The response is not a JSON object.')
      return { kind: 'response', status: response.statusCode, body: parsed as Record<string, unknown> }
    } catch (error) {
      const message = error instanceof Error ? error.message || error.name : String(error)
      return { kind: isConnectionError(error) ? 'not_sent' : 'lost', message }
    }
  }
  return Object.assign(call, { close: async () => (await loading)?.agent.close() })
}

/** A host with several addresses fails with one error per address; all of them must be connection errors. */
function isConnectionError(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.length > 0 && error.errors.every(isConnectionError)
  const code = (error as { code?: unknown } | undefined)?.code
  return typeof code === 'string' && CONNECTION_ERRORS.has(code)
}
