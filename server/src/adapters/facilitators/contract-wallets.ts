/**
 * Contract wallets sign in ways of their own (EIP-1271, and EIP-6492 before they are deployed). The token asks the wallet
 * itself, so a simulated transfer is the whole check; here is only how such a signature travels.
 */
import type { Authorization, Hex } from '../../modules/payments/facilitator.ts'
import { type Call3, SELECTOR, word } from '../chain/codec.ts'
import type { Refusal } from './checks.ts'

const EIP6492_SUFFIX = '6492'.repeat(16)
const FACTORY_NOT_ALLOWED = 'eip6492_factory_not_allowed'

export type WalletCalls = { calls: Call3[] } | { refusal: Refusal }

export type Wallets = {
  /** Whether there is a contract at this address. */
  hasCode(address: Hex): Promise<boolean>
  /** Through which wallets may be deployed. */
  allowedFactories: readonly string[]
}

/** The calls that make the payment: the transfer, after the wallet's own deployment when it still needs one. */
export async function walletCalls(
  asset: Hex,
  authorization: Authorization,
  signature: Hex,
  { hasCode, allowedFactories }: Wallets,
): Promise<WalletCalls> {
  const wrapped = parseEip6492(signature)
  if (!wrapped) return { calls: [{ target: asset, callData: bytesTransferCall(authorization, signature) }] }
  const transfer = { target: asset, callData: bytesTransferCall(authorization, wrapped.signature) }
  if (await hasCode(authorization.from)) return { calls: [transfer] }
  if (!allowedFactories.some((factory) => factory.toLowerCase() === wrapped.factory)) {
    const message = `Wallets are not deployed through ${wrapped.factory} here.`
    return { refusal: { reason: FACTORY_NOT_ALLOWED, message } }
  }
  return { calls: [{ target: wrapped.factory, callData: wrapped.deployment }, transfer] }
}

function bytesTransferCall(authorization: Authorization, signature: Hex): Hex {
  const { from, to, value, validAfter, validBefore, nonce } = authorization
  const length = (signature.length - 2) / 2
  const head = [from, to, value, validAfter, validBefore, nonce, 7 * 32, length].map(word).join('')
  const body = signature.slice(2).padEnd(Math.ceil(length / 32) * 64, '0')
  return `0x${SELECTOR.transferWithBytes}${head}${body}`
}

/** `abi.encode(factory, deployment, signature)` and a suffix of thirty-two bytes that no other signature ends with. */
function parseEip6492(signature: Hex): { factory: Hex; deployment: Hex; signature: Hex } | undefined {
  if (!signature.toLowerCase().endsWith(EIP6492_SUFFIX)) return undefined
  const body = signature.slice(2, -64)
  const at = (byte: number) => body.slice(byte * 2, byte * 2 + 64)
  const bytesAt = (place: number): Hex | undefined => {
    const start = Number.parseInt(at(place).slice(-8), 16)
    const length = Number.parseInt(at(start).slice(-8), 16)
    const bytes = body.slice((start + 32) * 2, (start + 32 + length) * 2)
    return bytes.length === length * 2 ? `0x${bytes}` : undefined
  }
  const [deployment, inner] = [bytesAt(32), bytesAt(64)]
  if (deployment === undefined || inner === undefined) return undefined
  return { factory: `0x${at(0).slice(24).toLowerCase()}`, deployment, signature: inner }
}
