/** The JSON-RPC envelope for callers from outside: one request or a bounded batch, and only the allowed methods. */
import { isAllowed } from './methods.ts'
import { type ChainRequest, RpcError } from './rpc.ts'

const MAX_BATCH = 50
const MAX_CHARACTERS = 1_000_000

type Answer = {
  jsonrpc: '2.0'
  id: unknown
  result?: unknown
  error?: { code: number; message: string; data?: unknown }
}

export type PublicRpc = (body: unknown) => Promise<Answer | Answer[]>

export function createPublicRpc(request: ChainRequest): PublicRpc {
  const failure = (id: unknown, code: number, message: string, data?: unknown): Answer => ({
    jsonrpc: '2.0',
    id,
    error: { code, message, ...(data === undefined ? {} : { data }) },
  })

  const one = async (item: unknown): Promise<Answer> => {
    const call = (typeof item === 'object' && item !== null ? item : {}) as Record<string, unknown>
    const id = typeof call.id === 'string' || typeof call.id === 'number' ? call.id : null
    const params = call.params ?? []
    if (typeof call.method !== 'string' || !Array.isArray(params)) {
      return failure(id, -32600, 'A request has a method and an array of params.')
    }
    if (!isAllowed(call.method))
      return failure(id, -32601, `The method ${call.method.slice(0, 64)} is not offered here.`)
    try {
      return { jsonrpc: '2.0', id, result: (await request(call.method, params)) ?? null }
    } catch (error) {
      if (error instanceof RpcError) return failure(id, error.code, error.message, error.data)
      return failure(id, -32603, 'The chain cannot be reached at the moment.')
    }
  }

  return async (body) => {
    if (JSON.stringify(body ?? null).length > MAX_CHARACTERS) return failure(null, -32600, 'The request is too large.')
    if (!Array.isArray(body)) return one(body)
    if (body.length === 0 || body.length > MAX_BATCH) {
      return failure(null, -32600, `A batch has between 1 and ${MAX_BATCH} requests.`)
    }
    const answers: Answer[] = []
    for (const item of body) answers.push(await one(item))
    return answers
  }
}
