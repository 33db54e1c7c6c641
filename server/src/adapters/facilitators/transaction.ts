/** Signs an EIP-1559 transaction. Its hash is computed here, so a transaction whose response is lost can be looked up. */
import type { Hex } from '../../modules/payments/facilitator.ts'
import { keccak, toBytes, toHex } from '../chain/codec.ts'
import type { Curve } from './secp256k1.ts'

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
    encodeInteger(chainId),
    encodeInteger(nonce),
    encodeInteger(maxPriorityFeePerGas),
    encodeInteger(maxFeePerGas),
    encodeInteger(gas),
    toBytes(to),
    encodeInteger(0),
    toBytes(data),
  ].map(encodeBytes)
  const accessList = encodeList([])
  const { compact, recovery } = curve.sign(keccak(addTypePrefix(encodeList([...fields, accessList]))), privateKey)
  const signature = [
    encodeInteger(recovery),
    trimLeadingZeros(compact.subarray(0, 32)),
    trimLeadingZeros(compact.subarray(32)),
  ].map(encodeBytes)
  return toHex(addTypePrefix(encodeList([...fields, accessList, ...signature])))
}

export const hashRawTransaction = (raw: Hex): Hex => toHex(keccak(toBytes(raw)))

const addTypePrefix = (payload: Uint8Array) => Buffer.concat([Uint8Array.of(2), payload])

/** RLP encodes an integer as big-endian bytes without leading zeros; zero is the empty string. */
function encodeInteger(value: bigint | number): Uint8Array {
  const hex = value.toString(16)
  return value === 0 || value === 0n ? new Uint8Array() : toBytes(hex.length % 2 === 0 ? hex : `0${hex}`)
}

function trimLeadingZeros(bytes: Uint8Array): Uint8Array {
  const start = bytes.findIndex((byte) => byte !== 0)
  return start < 0 ? new Uint8Array() : bytes.subarray(start)
}

function encodeLength(length: number, base: number): Uint8Array {
  if (length < 56) return Uint8Array.of(base + length)
  const size = encodeInteger(length)
  return Buffer.concat([Uint8Array.of(base + 55 + size.length), size])
}

const encodeBytes = (bytes: Uint8Array) =>
  bytes.length === 1 && bytes[0]! < 0x80 ? bytes : Buffer.concat([encodeLength(bytes.length, 0x80), bytes])

function encodeList(items: Uint8Array[]): Uint8Array {
  const body = Buffer.concat(items)
  return Buffer.concat([encodeLength(body.length, 0xc0), body])
}
