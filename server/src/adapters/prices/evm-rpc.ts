import { PriceSourceError, type SourceRequest, type SourceResponse } from '../../modules/basis/price-source.ts'
import { type JsonObject, parseJson, requireList, requireObject, toPublicUrl } from './response-parsing.ts'

/** JSON-RPC of an EVM chain. Calls are batched, so that one response body, and so one hash, covers them. */
export type EvmEndpoint = { url: string; chain: string }
export type EvmCall = { method: string; params: unknown[] }

/** Providers put keys into the path of an endpoint, so only its host is published. */
const toPublicHost = (url: string) => new URL(toPublicUrl(url)).origin

export function evmBatchRequest(endpoint: EvmEndpoint, calls: readonly EvmCall[], context: JsonObject): SourceRequest {
  return {
    method: 'POST',
    url: endpoint.url,
    publicUrl: toPublicHost(endpoint.url),
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(calls.map((call, id) => ({ jsonrpc: '2.0', id, ...call }))),
    context: { ...context, calls: calls.length },
  }
}

/** The results in the order of the calls. One error rejects the whole batch, because a partial result is not usable. */
export function parseEvmBatch(request: SourceRequest, response: SourceResponse): unknown[] {
  const count = request.context.calls as number
  const results: unknown[] = new Array(count).fill(undefined)
  for (const entry of requireList(parseJson(response), 'the batch')) {
    const { id, error, result } = requireObject(entry, 'an entry of the batch')
    if (error !== undefined && error !== null)
      throw new PriceSourceError(
        `the node refused a call: ${String((error as JsonObject).message ?? 'no reason given').slice(0, 200)}`,
      )
    if (typeof id !== 'number' || !(id in results))
      throw new PriceSourceError('the batch has a result for a call that was not made')
    results[id] = result
  }
  if (results.some((result) => result === undefined)) throw new PriceSourceError('the batch is not complete')
  return results
}

export const ethCall = (to: string, data: string, block: string): EvmCall => ({
  method: 'eth_call',
  params: [{ to, data }, block],
})

export const getBlock = (tag: string): EvmCall => ({ method: 'eth_getBlockByNumber', params: [tag, false] })

export type Block = { number: number; hex: string; at: Date }

const MAX_CLOCK_SKEW_MS = 60_000

export function parseBlock(value: unknown, fetchedAt: Date): Block {
  const block = requireObject(value, 'the block')
  const number = Number(parseQuantity(block.number, 'the number of the block'))
  const ms = Number(parseQuantity(block.timestamp, 'the time of the block')) * 1000
  if (!Number.isSafeInteger(number) || ms > 8.64e15)
    throw new PriceSourceError('the number or time of the block is out of range')
  const at = new Date(ms)
  if (ms > fetchedAt.getTime() + MAX_CLOCK_SKEW_MS)
    throw new PriceSourceError(`the block is dated ${at.toISOString()}, in the future`)
  return { number, hex: `0x${number.toString(16)}`, at }
}

export function parseQuantity(value: unknown, field: string): bigint {
  if (typeof value !== 'string' || !/^0x[0-9a-fA-F]{1,64}$/.test(value))
    throw new PriceSourceError(`${field} is missing`)
  return BigInt(value)
}

/** The 32-byte words of a call's result. Another number of words than the function returns is an error. */
export function decodeWords(value: unknown, count: number, field: string): bigint[] {
  if (typeof value !== 'string' || !/^0x([0-9a-fA-F]{64})*$/.test(value))
    throw new PriceSourceError(`${field} returned no result`)
  const wordCount = (value.length - 2) / 64
  if (wordCount !== count)
    throw new PriceSourceError(`${field} returned ${wordCount} words instead of ${count}, so it is another contract`)
  return Array.from({ length: count }, (_, index) => BigInt(`0x${value.slice(2 + 64 * index, 66 + 64 * index)}`))
}

export const decodeWord = (value: unknown, field: string): bigint => decodeWords(value, 1, field)[0]!

/** Decodes two's complement; Solidity extends every signed integer to 256 bits. */
export const toSigned = (value: bigint): bigint => BigInt.asIntN(256, value)

export const toAddress = (value: bigint): string => `0x${value.toString(16).padStart(40, '0')}`

export const encodeArgument = (value: bigint | number | string): string =>
  (typeof value === 'string' ? BigInt(value) : BigInt.asUintN(256, BigInt(value))).toString(16).padStart(64, '0')

/** Function selectors: the first four bytes of the hash of each function's signature. */
export const SELECTOR = {
  slot0: '0x3850c7bd',
  liquidity: '0x1a686502',
  fee: '0xddca3f43',
  tickSpacing: '0xd0c93a7c',
  token0: '0x0dfe1681',
  token1: '0xd21220a7',
  tickBitmap: '0x5339c296',
  ticks: '0xf30dba93',
  decimals: '0x313ce567',
  balanceOf: '0x70a08231',
  totalSupply: '0x18160ddd',
  latestRoundData: '0xfeaf968c',
  getOracleParams: '0xd4197e82',
} as const
