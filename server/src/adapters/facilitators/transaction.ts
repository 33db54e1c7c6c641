/** An EIP-1559 transaction, signed. Its hash needs nobody's answer, so a transaction whose answer is lost can be looked up. */
import type { Hex } from '../../modules/payments/facilitator.ts'
import { bytesOf, hexOf, keccak } from '../chain/codec.ts'
import type { Curve } from './recover.ts'

export type Transaction = {
  chainId: number
  nonce: number
  maxPriorityFeePerGas: bigint
  maxFeePerGas: bigint
  gas: bigint
  to: Hex
  data: Hex
}

export function signTransaction(curve: Curve, transaction: Transaction, privateKey: Uint8Array): Hex {
  const { chainId, nonce, maxPriorityFeePerGas, maxFeePerGas, gas, to, data } = transaction
  const fields = [
    integer(chainId),
    integer(nonce),
    integer(maxPriorityFeePerGas),
    integer(maxFeePerGas),
    integer(gas),
    bytesOf(to),
    integer(0),
    bytesOf(data),
  ].map(encodeBytes)
  const accessList = encodeList([])
  const { compact, recovery } = curve.sign(keccak(typed(encodeList([...fields, accessList]))), privateKey)
  const signature = [integer(recovery), trimmed(compact.subarray(0, 32)), trimmed(compact.subarray(32))].map(
    encodeBytes,
  )
  return hexOf(typed(encodeList([...fields, accessList, ...signature])))
}

export const hashOfRaw = (raw: Hex): Hex => hexOf(keccak(bytesOf(raw)))

const typed = (payload: Uint8Array) => Buffer.concat([Uint8Array.of(2), payload])

/** RLP writes a number as its big-endian bytes without leading zeros; zero is no bytes at all. */
function integer(value: bigint | number): Uint8Array {
  const hex = value.toString(16)
  return value === 0 || value === 0n ? new Uint8Array() : bytesOf(hex.length % 2 === 0 ? hex : `0${hex}`)
}

function trimmed(bytes: Uint8Array): Uint8Array {
  const start = bytes.findIndex((byte) => byte !== 0)
  return start < 0 ? new Uint8Array() : bytes.subarray(start)
}

function prefix(length: number, short: number): Uint8Array {
  if (length < 56) return Uint8Array.of(short + length)
  const size = integer(length)
  return Buffer.concat([Uint8Array.of(short + 55 + size.length), size])
}

const encodeBytes = (bytes: Uint8Array) =>
  bytes.length === 1 && bytes[0]! < 0x80 ? bytes : Buffer.concat([prefix(bytes.length, 0x80), bytes])

function encodeList(items: Uint8Array[]): Uint8Array {
  const body = Buffer.concat(items)
  return Buffer.concat([prefix(body.length, 0xc0), body])
}
