/** EIP-3009 authorisations: what was signed, whether the signature is one the token takes, and the call that uses it. */
import type { Authorization, Hex } from '../../modules/payments/facilitator.ts'
import { bytesOf, encodeCall, hexOf, keccak, SELECTOR, word } from '../chain/codec.ts'
import type { Curve } from './recover.ts'

export type Domain = { name: string; version: string; chainId: number; asset: Hex }

const hashOfText = (text: string) => hexOf(keccak(Buffer.from(text, 'utf8')))

const DOMAIN_TYPE = hashOfText('EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)')
const TRANSFER_TYPE = hashOfText(
  'TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)',
)
/** Half the order of the curve: above it, `s` is a second way to write a signature that already exists. */
const HIGHEST_S = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0n
const MAX_DOMAINS = 100

const separators = new Map<string, string>()

function domainSeparator({ name, version, chainId, asset }: Domain): string {
  const key = JSON.stringify([name, version, chainId, asset])
  const known = separators.get(key)
  if (known) return known
  const words = [DOMAIN_TYPE, hashOfText(name), hashOfText(version), chainId, asset].map(word).join('')
  const separator = hexOf(keccak(bytesOf(words))).slice(2)
  if (separators.size < MAX_DOMAINS) separators.set(key, separator)
  return separator
}

/** The EIP-712 digest that the payer signed. */
export function authorizationDigest(authorization: Authorization, domain: Domain): Uint8Array {
  const { from, to, value, validAfter, validBefore, nonce } = authorization
  const struct = [TRANSFER_TYPE, from, to, value, validAfter, validBefore, nonce].map(word).join('')
  return keccak(bytesOf(`1901${domainSeparator(domain)}${hexOf(keccak(bytesOf(struct))).slice(2)}`))
}

export type KeySignature = { r: Hex; s: Hex; v: 27 | 28 }

/** The parts of a 65-byte signature that the token would accept: low `s`, and `v` of 27 or 28. */
export function parseSignature(signature: Hex): KeySignature | undefined {
  if (!/^0x[0-9a-f]{130}$/i.test(signature)) return undefined
  const v = Number.parseInt(signature.slice(130), 16)
  const s: Hex = `0x${signature.slice(66, 130)}`
  if ((v !== 27 && v !== 28) || BigInt(s) > HIGHEST_S) return undefined
  return { r: `0x${signature.slice(2, 66)}`, s, v }
}

export function recoverSigner(curve: Curve, digest: Uint8Array, { r, s, v }: KeySignature): Hex | undefined {
  return curve.recover(digest, bytesOf(`${r.slice(2)}${s.slice(2)}`), v === 28 ? 1 : 0)
}

export function transferCall(authorization: Authorization, { v, r, s }: KeySignature): Hex {
  const { from, to, value, validAfter, validBefore, nonce } = authorization
  return encodeCall(SELECTOR.transferWithAuthorization, from, to, value, validAfter, validBefore, nonce, v, r, s)
}
