/** The one face of every chain here: a JSON-RPC call. Throws `RpcError` when the chain itself answered with an error. */
export type ChainRequest = (method: string, params?: readonly unknown[]) => Promise<unknown>

/** What a node answered. Anything else that goes wrong (no connection, no answer in time) is a `ChainUnreachable`. */
export class RpcError extends Error {
  readonly code: number
  readonly data: unknown

  constructor(code: number, message: string, data?: unknown) {
    super(message)
    this.name = 'RpcError'
    this.code = code
    this.data = data
  }
}

/** The node ran the call, and the call itself came to nothing: it reverted, or its gas ran out. */
export const isExecutionFailure = (error: unknown): error is RpcError =>
  error instanceof RpcError && (error.code === 3 || /execution reverted|out of gas/i.test(error.message))

/** No answer could be had, so nothing is known about what the call did. */
export class ChainUnreachable extends Error {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.name = 'ChainUnreachable'
  }
}

export type RpcLog = {
  address: string
  topics: string[]
  data: string
  blockNumber: string
  blockHash: string
  transactionHash: string
  transactionIndex: string
  logIndex: string
  removed?: boolean
}

export type RpcReceipt = {
  transactionHash: string
  transactionIndex: string
  blockNumber: string
  blockHash: string
  from: string
  status: string
  gasUsed: string
  logs: RpcLog[]
}

export type RpcTransaction = {
  hash: string
  from: string
  nonce: string
  transactionIndex: string | null
  blockNumber: string | null
} & Record<string, unknown>

export type RpcBlock = { number: string; hash: string; timestamp: string } & Record<string, unknown>
