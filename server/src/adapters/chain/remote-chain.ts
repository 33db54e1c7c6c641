/** A chain reached over HTTP: the embedded one of another process, or a real node. Same interface as the embedded chain. */
import { type ChainRequest, ChainUnreachable, RpcError } from './rpc.ts'

const DEFAULT_TIMEOUT_MS = 10_000

export function createRemoteChain({ url, timeoutMs = DEFAULT_TIMEOUT_MS }: { url: string; timeoutMs?: number }): {
  request: ChainRequest
} {
  let id = 0
  return {
    async request(method, params = []) {
      id += 1
      const body = await post(url, { jsonrpc: '2.0', id, method, params }, timeoutMs)
      if (body.error) throw new RpcError(body.error.code ?? -32603, body.error.message ?? 'no message', body.error.data)
      if (!('result' in body)) throw new ChainUnreachable(`The node returned no result for ${method}.`)
      return body.result
    },
  }
}

type Body = { result?: unknown; error?: { code?: number; message?: string; data?: unknown } }

async function post(url: string, call: object, timeoutMs: number): Promise<Body> {
  let response: Response
  let body: unknown
  try {
    response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(call),
      signal: AbortSignal.timeout(timeoutMs),
    })
    body = await response.json()
  } catch (cause) {
    throw new ChainUnreachable('The node did not respond.', { cause })
  }
  if (typeof body !== 'object' || body === null)
    throw new ChainUnreachable('The node did not return a JSON-RPC response.')
  const rpcBody = body as Body
  // Some nodes put a JSON-RPC error under a 4xx or 5xx; without one, the status alone says nothing about the call.
  if (!response.ok && !rpcBody.error) throw new ChainUnreachable(`The node answered with status ${response.status}.`)
  return rpcBody
}
