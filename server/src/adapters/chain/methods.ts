/** Which JSON-RPC methods the embedded chain offers, and what each needs before it may run. Nothing here changes state. */
import { quantity, smaller } from './codec.ts'

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

/** Where a method that reads state has its block parameter. */
const BLOCK_PARAMETER: Record<string, number> = {
  eth_call: 1,
  eth_estimateGas: 1,
  eth_getBalance: 1,
  eth_getCode: 1,
  eth_getTransactionCount: 1,
  eth_getStorageAt: 2,
}

/** A call may not run longer than this much gas takes, whoever asks. */
export const CALL_GAS_LIMIT = 10_000_000n

export const isAllowed = (method: string) => ALLOWED.has(method)

const isHead = (tag: unknown) => tag === undefined || tag === null || tag === 'latest' || tag === 'pending'

/** Contracts read the time of the newest block, so it must not lie in the past. */
export function isTimeSensitive(method: string, params: readonly unknown[]): boolean {
  if (method === 'eth_call' || method === 'eth_estimateGas') return isHead(params[1])
  return method === 'eth_getBlockByNumber' && isHead(params[0])
}

export function readsState(method: string, params: readonly unknown[], firstBlock: bigint): 'kept' | 'too_old' {
  const place = BLOCK_PARAMETER[method]
  const tag = place === undefined ? undefined : params[place]
  if (typeof tag !== 'string' || !/^0x[0-9a-f]{1,16}$/i.test(tag)) return tag === 'earliest' ? 'too_old' : 'kept'
  return BigInt(tag) < firstBlock ? 'too_old' : 'kept'
}

/** Clamps the gas of a simulated call, and drops state overrides. */
export function withinLimits(method: string, params: readonly unknown[]): readonly unknown[] {
  if (method !== 'eth_call' && method !== 'eth_estimateGas') return params
  const [call, ...rest] = params
  if (typeof call !== 'object' || call === null) return params
  const { gas } = call as { gas?: unknown }
  const asked = typeof gas === 'string' && /^0x[0-9a-f]{1,64}$/i.test(gas) ? BigInt(gas) : CALL_GAS_LIMIT
  return [{ ...call, gas: quantity(smaller(asked, CALL_GAS_LIMIT)) }, ...rest.slice(0, 1)]
}
