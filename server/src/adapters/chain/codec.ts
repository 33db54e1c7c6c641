/**
 * The few pieces of the contract ABI that this service speaks, by hand: every hot call has fixed-size arguments, and a
 * general encoder costs more to load than the whole embedded chain.
 */
import { keccak_256 } from '@noble/hashes/sha3.js'
import type { Hex } from '../../modules/payments/facilitator.ts'

export const keccak = (bytes: Uint8Array): Uint8Array => keccak_256(bytes)

export const bytesOf = (hex: string): Uint8Array => Buffer.from(hex.startsWith('0x') ? hex.slice(2) : hex, 'hex')

export const hexOf = (bytes: Uint8Array): Hex =>
  `0x${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex')}`

export const quantity = (value: bigint | number): Hex => `0x${value.toString(16)}`

/** `Math.max` is for numbers; these are for what does not fit into one. */
export function larger(one: bigint, other: bigint): bigint {
  if (one > other) return one
  return other
}

export function smaller(one: bigint, other: bigint): bigint {
  if (one < other) return one
  return other
}

const selectorOf = (signature: string) => Buffer.from(keccak(Buffer.from(signature))).toString('hex', 0, 4)
const topicOf = (signature: string) => hexOf(keccak(Buffer.from(signature)))

export const SELECTOR = {
  balanceOf: selectorOf('balanceOf(address)'),
  authorizationState: selectorOf('authorizationState(address,bytes32)'),
  nonces: selectorOf('nonces(address)'),
  mint: selectorOf('mint(address,uint256)'),
  transferWithAuthorization: selectorOf(
    'transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,uint8,bytes32,bytes32)',
  ),
  transferWithBytes: selectorOf('transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,bytes)'),
  aggregate3: selectorOf('aggregate3((address,bool,bytes)[])'),
  restoreSupply: selectorOf('restoreSupply(uint256)'),
  restoreBalances: selectorOf('restoreBalances(address[],uint256[])'),
  restoreAuthorizations: selectorOf('restoreAuthorizations(address[],bytes32[])'),
  restoreAllowances: selectorOf('restoreAllowances(address[],address[],uint256[])'),
  restorePermitNonces: selectorOf('restorePermitNonces(address[],uint256[])'),
} as const

export const TOPIC = {
  transfer: topicOf('Transfer(address,address,uint256)'),
  approval: topicOf('Approval(address,address,uint256)'),
  authorizationUsed: topicOf('AuthorizationUsed(address,bytes32)'),
  authorizationCanceled: topicOf('AuthorizationCanceled(address,bytes32)'),
} as const

/** One 32-byte word, without `0x`: a number, or hex of at most 32 bytes (addresses, hashes) padded on the left. */
export const word = (value: bigint | number | string): string =>
  (typeof value === 'string' ? value.slice(2).toLowerCase() : value.toString(16)).padStart(64, '0')

export const addressInWord = (topic: string): Hex => `0x${topic.slice(-40).toLowerCase()}`

export const encodeCall = (selector: string, ...words: (bigint | number | string)[]): Hex =>
  `0x${selector}${words.map(word).join('')}`

/** A call whose every argument is an array of one-word items. */
export function encodeArrays(selector: string, ...arrays: (bigint | string)[][]): Hex {
  const tails = arrays.map((items) => word(items.length) + items.map(word).join(''))
  let offset = arrays.length * 32
  const heads = tails.map((tail) => {
    const head = word(offset)
    offset += tail.length / 2
    return head
  })
  return `0x${selector}${heads.join('')}${tails.join('')}`
}

export type Call3 = { target: Hex; callData: Hex }

/** `aggregate3` with `allowFailure` on every call: one that fails does not sink the others. */
export function encodeAggregate3(calls: readonly Call3[]): Hex {
  const items = calls.map(({ target, callData }) => {
    const length = (callData.length - 2) / 2
    const padded = callData.slice(2).padEnd(Math.ceil(length / 32) * 64, '0')
    return word(target) + word(1) + word(96) + word(length) + padded
  })
  let offset = calls.length * 32
  const heads = items.map((item) => {
    const head = word(offset)
    offset += item.length / 2
    return head
  })
  return `0x${SELECTOR.aggregate3}${word(32)}${word(calls.length)}${heads.join('')}${items.join('')}`
}

export type CallResult = { success: boolean; data: Hex }

/** The `(bool, bytes)[]` that `aggregate3` returns; throws when it is not one. */
export function decodeAggregate3(answer: string, expected: number): CallResult[] {
  const hex = answer.startsWith('0x') ? answer.slice(2) : answer
  const at = (byte: number) => {
    const text = hex.slice(byte * 2, byte * 2 + 64)
    if (text.length !== 64) throw new Error('The multicall answer is cut off.')
    return Number(BigInt(`0x${text}`))
  }
  const base = at(0) + 32
  if (at(base - 32) !== expected) throw new Error('The multicall answer has the wrong number of results.')
  return Array.from({ length: expected }, (_, index) => {
    const item = base + at(base + index * 32)
    const bytes = item + at(item + 32)
    const length = at(bytes)
    const data = hex.slice((bytes + 32) * 2, (bytes + 32 + length) * 2)
    if (data.length !== length * 2) throw new Error('The multicall answer is cut off.')
    return { success: at(item) === 1, data: `0x${data}` }
  })
}

const ERROR_SELECTOR = selectorOf('Error(string)')

/** The text of a Solidity `revert("…")`, or undefined when the data is something else. */
export function revertText(data: string): string | undefined {
  const hex = data.startsWith('0x') ? data.slice(2) : data
  if (!hex.startsWith(ERROR_SELECTOR) || hex.length < 8 + 128) return undefined
  const length = Number(BigInt(`0x${hex.slice(8 + 64, 8 + 128)}`))
  if (length > 1024) return undefined
  return Buffer.from(hex.slice(8 + 128, 8 + 128 + length * 2), 'hex').toString('utf8')
}
