/**
 * Contract wallets validate signatures in their own code (EIP-1271, and EIP-6492 before they are deployed). The token
 * calls the wallet, so a simulated transfer is the whole check; this file only builds the calls for such a signature.
 */
import type { Authorization, Hex } from '../../modules/payments/facilitator.ts'
import { type Call3, encodeWord, SELECTOR } from '../chain/codec.ts'
import type { Refusal } from './check-terms.ts'

const EIP6492_SUFFIX = '6492'.repeat(16)
const FACTORY_NOT_ALLOWED = 'eip6492_factory_not_allowed'

export type WalletCalls = { calls: Call3[] } | { refusal: Refusal }

export type WalletDeps = {
  /** Whether there is a contract at this address. */
  hasCode(address: Hex): Promise<boolean>
  /** Factories that may deploy wallets. */
  allowedFactories: readonly string[]
}

/** The calls that make the payment: the transfer, after the wallet's own deployment when it still needs one. */
export async function buildWalletCalls(
  asset: Hex,
  authorization: Authorization,
  signature: Hex,
  { hasCode, allowedFactories }: WalletDeps,
): Promise<WalletCalls> {
  const wrappedSignature = parseEip6492(signature)
  if (!wrappedSignature)
    return { calls: [{ target: asset, callData: encodeTransferWithBytes(authorization, signature) }] }
  const transfer = { target: asset, callData: encodeTransferWithBytes(authorization, wrappedSignature.signature) }
  if (await hasCode(authorization.from)) return { calls: [transfer] }
  if (!allowedFactories.some((factory) => factory.toLowerCase() === wrappedSignature.factory)) {
    const message = `Wallets are not deployed through ${wrappedSignature.factory} here. Deploy the wallet first, then pay.`
    return { refusal: { reason: FACTORY_NOT_ALLOWED, message } }
  }
  return { calls: [{ target: wrappedSignature.factory, callData: wrappedSignature.deployment }, transfer] }
}

function encodeTransferWithBytes(authorization: Authorization, signature: Hex): Hex {
  const { from, to, value, validAfter, validBefore, nonce } = authorization
  const length = (signature.length - 2) / 2
  const head = [from, to, value, validAfter, validBefore, nonce, 7 * 32, length].map(encodeWord).join('')
  const body = signature.slice(2).padEnd(Math.ceil(length / 32) * 64, '0')
  return `0x${SELECTOR.transferWithBytes}${head}${body}`
}

/** `abi.encode(factory, deployment, signature)` followed by a 32-byte suffix that marks EIP-6492. */
function parseEip6492(signature: Hex): { factory: Hex; deployment: Hex; signature: Hex } | undefined {
  if (!signature.toLowerCase().endsWith(EIP6492_SUFFIX)) return undefined
  const body = signature.slice(2, -64)
  const wordAt = (byte: number) => body.slice(byte * 2, byte * 2 + 64)
  const bytesAt = (offset: number): Hex | undefined => {
    const start = Number.parseInt(wordAt(offset).slice(-8), 16)
    const length = Number.parseInt(wordAt(start).slice(-8), 16)
    const bytes = body.slice((start + 32) * 2, (start + 32 + length) * 2)
    return bytes.length === length * 2 ? `0x${bytes}` : undefined
  }
  const [deployment, innerSignature] = [bytesAt(32), bytesAt(64)]
  if (deployment === undefined || innerSignature === undefined) return undefined
  return { factory: `0x${wordAt(0).slice(24).toLowerCase()}`, deployment, signature: innerSignature }
}
