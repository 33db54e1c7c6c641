/** EIP-3009 authorisations: the digest that was signed, the signature forms the token accepts, and the transfer call. */
import type { Authorization, Hex } from '../../modules/payments/facilitator.ts'
import { encodeCall, encodeWord, keccak, SELECTOR, toBytes, toHex } from '../chain/codec.ts'
import type { Curve } from './secp256k1.ts'

export type Domain = { name: string; version: string; chainId: number; asset: Hex }

const hashText = (text: string) => toHex(keccak(Buffer.from(text, 'utf8')))

const DOMAIN_TYPE = hashText('EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)')
const TRANSFER_TYPE = hashText(
  'TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)',
)
/** Half the order of the curve: a larger `s` is only another encoding of an existing signature. */
const MAX_S = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0n
const MAX_DOMAINS = 100

const separators = new Map<string, string>()

function domainSeparator({ name, version, chainId, asset }: Domain): string {
  const key = JSON.stringify([name, version, chainId, asset])
  const cached = separators.get(key)
  if (cached) return cached
  const words = [DOMAIN_TYPE, hashText(name), hashText(version), chainId, asset].map(encodeWord).join('')
  const separator = toHex(keccak(toBytes(words))).slice(2)
  if (separators.size < MAX_DOMAINS) separators.set(key, separator)
  return separator
}

/** The EIP-712 digest that the payer signed. */
export function authorizationDigest(authorization: Authorization, domain: Domain): Uint8Array {
  const { from, to, value, validAfter, validBefore, nonce } = authorization
  const struct = [TRANSFER_TYPE, from, to, value, validAfter, validBefore, nonce].map(encodeWord).join('')
  return keccak(toBytes(`1901${domainSeparator(domain)}${toHex(keccak(toBytes(struct))).slice(2)}`))
}

export type KeySignature = { r: Hex; s: Hex; v: 27 | 28 }

/** The parts of a 65-byte signature that the token would accept: low `s`, and `v` of 27 or 28. */
export function parseSignature(signature: Hex): KeySignature | undefined {
  if (!/^0x[0-9a-f]{130}$/i.test(signature)) return undefined
  const v = Number.parseInt(signature.slice(130), 16)
  const s: Hex = `0x${signature.slice(66, 130)}`
  if ((v !== 27 && v !== 28) || BigInt(s) > MAX_S) return undefined
  return { r: `0x${signature.slice(2, 66)}`, s, v }
}

/** Signers by digest and signature: a payment is looked at when it is metered, verified and settled. */
const signers = new Map<string, Hex>()
const MAX_SIGNERS = 4_096

export function recoverSigner(curve: Curve, digest: Uint8Array, { r, s, v }: KeySignature): Hex | undefined {
  const key = `${curve.name}${toHex(digest)}${r}${s}${v}`
  const knownSigner = signers.get(key)
  if (knownSigner) return knownSigner
  const signer = curve.recover(digest, toBytes(`${r.slice(2)}${s.slice(2)}`), v === 28 ? 1 : 0)
  if (signer === undefined) return undefined
  if (signers.size >= MAX_SIGNERS) signers.delete(signers.keys().next().value!)
  signers.set(key, signer)
  return signer
}

export function encodeTransfer(authorization: Authorization, { v, r, s }: KeySignature): Hex {
  const { from, to, value, validAfter, validBefore, nonce } = authorization
  return encodeCall(SELECTOR.transferWithAuthorization, from, to, value, validAfter, validBefore, nonce, v, r, s)
}
