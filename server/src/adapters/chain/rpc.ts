/** The interface of every chain: a JSON-RPC call. Throws `RpcError` when the chain answered with an error. */
export type ChainRequest = (method: string, params?: readonly unknown[]) => Promise<unknown>

/** An error that the node returned. Every other failure (no connection, no answer in time) is a `ChainUnreachable`. */
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

/** The node executed the call, and it reverted or ran out of gas. */
export const isExecutionFailure = (error: unknown): error is RpcError =>
  error instanceof RpcError && (error.code === 3 || /execution reverted|out of gas/i.test(error.message))

/** There was no answer, so the effect of the call is unknown. */
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
