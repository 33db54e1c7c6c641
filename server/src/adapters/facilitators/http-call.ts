/** One JSON call to a facilitator, that says of a failure whether the request may have left this machine. */
export type HttpAnswer =
  | { kind: 'answer'; status: number; body: Record<string, unknown> }
  /** No connection was made, so nothing was asked. */
  | { kind: 'not_sent'; message: string }
  | { kind: 'lost'; message: string }

export type HttpCall = (method: 'GET' | 'POST', url: string, body: unknown, timeoutMs: number) => Promise<HttpAnswer>

const CONNECT_TIMEOUT_MS = 2_000
const MAX_ANSWER_BYTES = 256 * 1024

/** Codes that only a connection that never came about can give. */
const NEVER_CONNECTED = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
])

/** undici is loaded with the first call: it costs a tenth of a second that a start does not have. */
export function createHttpCall(): HttpCall & { close(): Promise<void> } {
  let loading: Promise<{ undici: typeof import('undici'); agent: import('undici').Agent }> | undefined
  const load = async () => {
    const undici = await import('undici')
    return {
      undici,
      agent: new undici.Agent({ connect: { timeout: CONNECT_TIMEOUT_MS }, maxResponseSize: MAX_ANSWER_BYTES }),
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
        throw new Error('The answer is no JSON object.')
      return { kind: 'answer', status: response.statusCode, body: parsed as Record<string, unknown> }
    } catch (error) {
      const message = error instanceof Error ? error.message || error.name : String(error)
      return { kind: neverConnected(error) ? 'not_sent' : 'lost', message }
    }
  }
  return Object.assign(call, { close: async () => (await loading)?.agent.close() })
}

/** A host with several addresses fails with one error for each; all of them must be of that kind. */
function neverConnected(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.length > 0 && error.errors.every(neverConnected)
  const code = (error as { code?: unknown } | undefined)?.code
  return typeof code === 'string' && NEVER_CONNECTED.has(code)
}
