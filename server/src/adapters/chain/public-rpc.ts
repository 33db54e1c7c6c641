/** JSON-RPC for external callers: one request or a bounded batch, limited to the allowed methods. */

import { type ChainRequest, RpcError } from './rpc.ts'
import { isAllowed } from './rpc-methods.ts'

const MAX_BATCH = 50
const MAX_CHARACTERS = 1_000_000
const MAX_RESULT_CHARACTERS = 4_000_000

type RpcResponse = {
  jsonrpc: '2.0'
  id: unknown
  result?: unknown
  error?: { code: number; message: string; data?: unknown }
}

export type PublicRpc = (body: unknown) => Promise<RpcResponse | RpcResponse[]>

export function createPublicRpc(request: ChainRequest): PublicRpc {
  const toError = (id: unknown, code: number, message: string, data?: unknown): RpcResponse => ({
    jsonrpc: '2.0',
    id,
    error: { code, message, ...(data === undefined ? {} : { data }) },
  })

  const handleCall = async (item: unknown): Promise<RpcResponse> => {
    const call = (typeof item === 'object' && item !== null ? item : {}) as Record<string, unknown>
    const id = typeof call.id === 'string' || typeof call.id === 'number' ? call.id : null
    const params = call.params ?? []
    if (typeof call.method !== 'string' || !Array.isArray(params)) {
      return toError(id, -32600, 'A request has a method and an array of params.')
    }
    if (!isAllowed(call.method))
      return toError(id, -32601, `The method ${call.method.slice(0, 64)} is not offered here.`)
    try {
      const result = (await request(call.method, params)) ?? null
      if (JSON.stringify(result).length > MAX_RESULT_CHARACTERS)
        return toError(id, -32005, 'The result is too large: ask for less.')
      return { jsonrpc: '2.0', id, result }
    } catch (error) {
      if (error instanceof RpcError) return toError(id, error.code, error.message, error.data)
      return toError(id, -32603, 'The chain cannot be reached at the moment.')
    }
  }

  return async (body) => {
    if (JSON.stringify(body ?? null).length > MAX_CHARACTERS) return toError(null, -32600, 'The request is too large.')
    if (!Array.isArray(body)) return handleCall(body)
    if (body.length === 0 || body.length > MAX_BATCH) {
      return toError(null, -32600, `A batch has between 1 and ${MAX_BATCH} requests.`)
    }
    const responses: RpcResponse[] = []
    for (const item of body) responses.push(await handleCall(item))
    return responses
  }
}
