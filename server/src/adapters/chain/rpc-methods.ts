/** The JSON-RPC methods that the embedded chain offers, and the checks and limits that apply to them. */
import { minBigInt, toQuantity } from './codec.ts'

const ALLOWED = new Set([
  'eth_accounts',
  'eth_blockNumber',
  'eth_call',
  'eth_chainId',
  'eth_estimateGas',
  'eth_feeHistory',
  'eth_gasPrice',
  'eth_getBalance',
  'eth_getBlockByHash',
  'eth_getBlockByNumber',
  'eth_getBlockTransactionCountByHash',
  'eth_getBlockTransactionCountByNumber',
  'eth_getCode',
  'eth_getLogs',
  'eth_getStorageAt',
  'eth_getTransactionByHash',
  'eth_getTransactionCount',
  'eth_getTransactionReceipt',
  'eth_maxPriorityFeePerGas',
  'eth_sendRawTransaction',
  'eth_syncing',
  'net_listening',
  'net_version',
  'web3_clientVersion',
  'web3_sha3',
])

/** The position of the block parameter of the methods that read state. */
const BLOCK_PARAMETER: Record<string, number> = {
  eth_call: 1,
  eth_estimateGas: 1,
  eth_getBalance: 1,
  eth_getCode: 1,
  eth_getTransactionCount: 1,
  eth_getStorageAt: 2,
}

/** The gas limit of every simulated call. */
export const CALL_GAS_LIMIT = 10_000_000n

export const isAllowed = (method: string) => ALLOWED.has(method)

const isHeadTag = (tag: unknown) => tag === undefined || tag === null || tag === 'latest' || tag === 'pending'

/** Methods that see the time of the newest block, which must then be current. */
export function isTimeSensitive(method: string, params: readonly unknown[]): boolean {
  if (method === 'eth_call' || method === 'eth_estimateGas') return isHeadTag(params[1])
  return method === 'eth_getBlockByNumber' && isHeadTag(params[0])
}

/** The request with the number of `head` where it reads the newest state, or undefined when it does not. */
export function pinToHead(method: string, params: readonly unknown[], head: bigint): readonly unknown[] | undefined {
  const index = BLOCK_PARAMETER[method]
  if (index === undefined || !isHeadTag(params[index])) return undefined
  return Array.from({ length: index + 1 }, (_, position) => (position === index ? toQuantity(head) : params[position]))
}

export function stateAvailability(method: string, params: readonly unknown[], firstBlock: bigint): 'kept' | 'too_old' {
  const index = BLOCK_PARAMETER[method]
  const tag = index === undefined ? undefined : params[index]
  if (typeof tag !== 'string' || !/^0x[0-9a-f]{1,16}$/i.test(tag)) return tag === 'earliest' ? 'too_old' : 'kept'
  return BigInt(tag) < firstBlock ? 'too_old' : 'kept'
}

/** Clamps the gas of a simulated call, and drops state overrides. */
export function limitParams(method: string, params: readonly unknown[]): readonly unknown[] {
  if (method !== 'eth_call' && method !== 'eth_estimateGas') return params
  const [call, ...otherParams] = params
  if (typeof call !== 'object' || call === null) return params
  const { gas } = call as { gas?: unknown }
  const requestedGas = typeof gas === 'string' && /^0x[0-9a-f]{1,64}$/i.test(gas) ? BigInt(gas) : CALL_GAS_LIMIT
  return [{ ...call, gas: toQuantity(minBigInt(requestedGas, CALL_GAS_LIMIT)) }, ...otherParams.slice(0, 1)]
}
