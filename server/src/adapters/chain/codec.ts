/**
 * The small part of the contract ABI that this service needs, written by hand: every hot call has fixed-size arguments,
 * and loading a general encoder takes longer than starting the whole embedded chain.
 */
import { keccak_256 } from '@noble/hashes/sha3.js'
import type { Hex } from '../../modules/payments/facilitator.ts'

export const keccak = (bytes: Uint8Array): Uint8Array => keccak_256(bytes)

export const toBytes = (hex: string): Uint8Array => Buffer.from(hex.startsWith('0x') ? hex.slice(2) : hex, 'hex')

export const toHex = (bytes: Uint8Array): Hex =>
  `0x${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex')}`

export const toQuantity = (value: bigint | number): Hex => `0x${value.toString(16)}`

export const maxBigInt = (a: bigint, b: bigint): bigint => (a > b ? a : b)

export const minBigInt = (a: bigint, b: bigint): bigint => (a < b ? a : b)

const computeSelector = (signature: string) => Buffer.from(keccak(Buffer.from(signature))).toString('hex', 0, 4)
const computeTopic = (signature: string) => toHex(keccak(Buffer.from(signature)))

export const SELECTOR = {
  balanceOf: computeSelector('balanceOf(address)'),
  authorizationState: computeSelector('authorizationState(address,bytes32)'),
  nonces: computeSelector('nonces(address)'),
  mint: computeSelector('mint(address,uint256)'),
  transferWithAuthorization: computeSelector(
    'transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,uint8,bytes32,bytes32)',
  ),
  transferWithBytes: computeSelector(
    'transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,bytes)',
  ),
  aggregate3: computeSelector('aggregate3((address,bool,bytes)[])'),
  restoreSupply: computeSelector('restoreSupply(uint256)'),
  restoreBalances: computeSelector('restoreBalances(address[],uint256[])'),
  restoreAuthorizations: computeSelector('restoreAuthorizations(address[],bytes32[])'),
  restoreAllowances: computeSelector('restoreAllowances(address[],address[],uint256[])'),
  restorePermitNonces: computeSelector('restorePermitNonces(address[],uint256[])'),
} as const

export const TOPIC = {
  transfer: computeTopic('Transfer(address,address,uint256)'),
  approval: computeTopic('Approval(address,address,uint256)'),
  authorizationUsed: computeTopic('AuthorizationUsed(address,bytes32)'),
  authorizationCanceled: computeTopic('AuthorizationCanceled(address,bytes32)'),
} as const

/** One 32-byte word, without `0x`: a number, or hex of at most 32 bytes (addresses, hashes) padded on the left. */
export const encodeWord = (value: bigint | number | string): string =>
  (typeof value === 'string' ? value.slice(2).toLowerCase() : value.toString(16)).padStart(64, '0')

export const addressInWord = (topic: string): Hex => `0x${topic.slice(-40).toLowerCase()}`

export const encodeCall = (selector: string, ...words: (bigint | number | string)[]): Hex =>
  `0x${selector}${words.map(encodeWord).join('')}`

/** A call whose every argument is an array of one-word items. */
export function encodeArrays(selector: string, ...arrays: (bigint | string)[][]): Hex {
  const tails = arrays.map((items) => encodeWord(items.length) + items.map(encodeWord).join(''))
  let offset = arrays.length * 32
  const heads = tails.map((tail) => {
    const head = encodeWord(offset)
    offset += tail.length / 2
    return head
  })
  return `0x${selector}${heads.join('')}${tails.join('')}`
}

export type Call3 = { target: Hex; callData: Hex }

/** `aggregate3` with `allowFailure` on every call: a failing call does not revert the others. */
export function encodeAggregate3(calls: readonly Call3[]): Hex {
  const items = calls.map(({ target, callData }) => {
    const length = (callData.length - 2) / 2
    const padded = callData.slice(2).padEnd(Math.ceil(length / 32) * 64, '0')
    return encodeWord(target) + encodeWord(1) + encodeWord(96) + encodeWord(length) + padded
  })
  let offset = calls.length * 32
  const heads = items.map((item) => {
    const head = encodeWord(offset)
    offset += item.length / 2
    return head
  })
  return `0x${SELECTOR.aggregate3}${encodeWord(32)}${encodeWord(calls.length)}${heads.join('')}${items.join('')}`
}

export type CallResult = { success: boolean; data: Hex }

/** Decodes the `(bool, bytes)[]` that `aggregate3` returns; throws when the data is malformed. */
export function decodeAggregate3(returnData: string, expected: number): CallResult[] {
  const hex = returnData.startsWith('0x') ? returnData.slice(2) : returnData
  const readNumber = (byte: number) => {
    const text = hex.slice(byte * 2, byte * 2 + 64)
    if (text.length !== 64) throw new Error('The multicall result is truncated.')
    return Number(BigInt(`0x${text}`))
  }
  const base = readNumber(0) + 32
  if (readNumber(base - 32) !== expected) throw new Error('The multicall result has the wrong number of entries.')
  return Array.from({ length: expected }, (_, index) => {
    const item = base + readNumber(base + index * 32)
    const bytes = item + readNumber(item + 32)
    const length = readNumber(bytes)
    const data = hex.slice((bytes + 32) * 2, (bytes + 32 + length) * 2)
    if (data.length !== length * 2) throw new Error('The multicall result is truncated.')
    return { success: readNumber(item) === 1, data: `0x${data}` }
  })
}

const ERROR_SELECTOR = computeSelector('Error(string)')

/** The text of a Solidity `revert("…")`, or undefined when the data is something else. */
export function decodeRevertText(data: string): string | undefined {
  const hex = data.startsWith('0x') ? data.slice(2) : data
  if (!hex.startsWith(ERROR_SELECTOR) || hex.length < 8 + 128) return undefined
  const length = Number(BigInt(`0x${hex.slice(8 + 64, 8 + 128)}`))
  if (length > 1024) return undefined
  return Buffer.from(hex.slice(8 + 128, 8 + 128 + length * 2), 'hex').toString('utf8')
}
