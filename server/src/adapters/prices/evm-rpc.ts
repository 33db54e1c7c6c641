import { type SourceAnswer, SourceRefused, type SourceRequest } from '../../modules/basis/price-source.ts'
import { type Json, list, object, readJson, shown } from './reading.ts'

/** JSON-RPC of an EVM chain, in batches: questions about one block in one body, so that one hash covers them. */
export type EvmEndpoint = { url: string; chain: string }
export type EvmCall = { method: string; params: unknown[] }

/** Providers put keys into the path of an endpoint, so only its host is published. */
const shownHost = (url: string) => new URL(shown(url)).origin

export function askEvm(endpoint: EvmEndpoint, calls: readonly EvmCall[], memo: Json): SourceRequest {
  return {
    method: 'POST',
    url: endpoint.url,
    shownUrl: shownHost(endpoint.url),
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(calls.map((call, id) => ({ jsonrpc: '2.0', id, ...call }))),
    memo: { ...memo, calls: calls.length },
  }
}

/** The results in the order of the calls. One error refuses the whole batch: half a pool is no pool. */
export function readEvm(request: SourceRequest, answer: SourceAnswer): unknown[] {
  const count = request.memo.calls as number
  const results: unknown[] = new Array(count).fill(undefined)
  for (const entry of list(readJson(answer), 'the batch')) {
    const { id, error, result } = object(entry, 'an answer of the batch')
    if (error !== undefined && error !== null)
      throw new SourceRefused(
        `the node refused a call: ${String((error as Json).message ?? 'no reason given').slice(0, 200)}`,
      )
    if (typeof id !== 'number' || !(id in results))
      throw new SourceRefused('the batch answers a call that was not made')
    results[id] = result
  }
  if (results.some((result) => result === undefined)) throw new SourceRefused('the batch is not complete')
  return results
}

export const ethCall = (to: string, data: string, block: string): EvmCall => ({
  method: 'eth_call',
  params: [{ to, data }, block],
})

export const getBlock = (tag: string): EvmCall => ({ method: 'eth_getBlockByNumber', params: [tag, false] })

export type Block = { number: number; hex: string; at: Date }

const AHEAD_MS = 60_000

export function readBlock(value: unknown, fetchedAt: Date): Block {
  const block = object(value, 'the block')
  const number = Number(quantity(block.number, 'the number of the block'))
  const ms = Number(quantity(block.timestamp, 'the time of the block')) * 1000
  if (!Number.isSafeInteger(number) || ms > 8.64e15) throw new SourceRefused('the block has no sensible number or time')
  const at = new Date(ms)
  if (ms > fetchedAt.getTime() + AHEAD_MS)
    throw new SourceRefused(`the block is dated ${at.toISOString()}, in the future`)
  return { number, hex: `0x${number.toString(16)}`, at }
}

export function quantity(value: unknown, what: string): bigint {
  if (typeof value !== 'string' || !/^0x[0-9a-fA-F]{1,64}$/.test(value)) throw new SourceRefused(`${what} is missing`)
  return BigInt(value)
}

/** The 32-byte words of a call's result, exactly as many as the contract's function gives. */
export function words(value: unknown, count: number, what: string): bigint[] {
  if (typeof value !== 'string' || !/^0x([0-9a-fA-F]{64})*$/.test(value))
    throw new SourceRefused(`${what} gave no result`)
  const found = (value.length - 2) / 64
  if (found !== count) throw new SourceRefused(`${what} gave ${found} words where ${count} belong: another contract`)
  return Array.from({ length: count }, (_, index) => BigInt(`0x${value.slice(2 + 64 * index, 66 + 64 * index)}`))
}

export const word = (value: unknown, what: string): bigint => words(value, 1, what)[0]!

/** Two's complement: Solidity widens every signed integer to 256 bits. */
export const signed = (value: bigint): bigint => BigInt.asIntN(256, value)

export const addressOf = (value: bigint): string => `0x${value.toString(16).padStart(40, '0')}`

export const argument = (value: bigint | number | string): string =>
  (typeof value === 'string' ? BigInt(value) : BigInt.asUintN(256, BigInt(value))).toString(16).padStart(64, '0')

/** The first four bytes of the hash of each function's signature. */
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
