/** Payments for tests, signed by viem instead of the code under test. */
import { randomBytes } from 'node:crypto'
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { USDC } from '../../src/adapters/chain/edr.ts'
import type { Authorization, ExactPayment, Hex, PaymentTerms } from '../../src/modules/payments/facilitator.ts'
import type { Clock } from '../../src/platform/clock.ts'

export const NETWORK = 'eip155:8453'
export const PAY_TO: Hex = '0x00000000000000000000000000000000c0ffee01'

export const createTerms = (changes: Partial<PaymentTerms> = {}): PaymentTerms => ({
  scheme: 'exact',
  network: NETWORK,
  asset: USDC,
  amountMicro: 10_000n,
  payTo: PAY_TO,
  maxTimeoutSeconds: 300,
  extra: { name: 'USD Coin', version: '2' },
  ...changes,
})

export const createPayer = (): PrivateKeyAccount => privateKeyToAccount(generatePrivateKey())

export const randomNonce = (): Hex => `0x${randomBytes(32).toString('hex')}`

const TRANSFER_TYPES = {
  TransferWithAuthorization: [
    { name: 'from', type: 'address' },
    { name: 'to', type: 'address' },
    { name: 'value', type: 'uint256' },
    { name: 'validAfter', type: 'uint256' },
    { name: 'validBefore', type: 'uint256' },
    { name: 'nonce', type: 'bytes32' },
  ],
} as const

export type SigningOptions = {
  clock: Clock
  x402Version?: 1 | 2
  /** Changes to the signed fields. */
  authorization?: Partial<Authorization>
  domain?: { name?: string; version?: string; chainId?: number; verifyingContract?: Hex }
  /** The payer, when it is not the signing account: a contract wallet. */
  from?: Hex
}

export async function signPayment(
  account: PrivateKeyAccount,
  terms: PaymentTerms,
  { clock, x402Version = 2, authorization: changes = {}, domain = {}, from }: SigningOptions,
): Promise<ExactPayment> {
  const now = BigInt(Math.floor(clock.now().getTime() / 1000))
  const authorization: Authorization = {
    from: from ?? account.address,
    to: terms.payTo,
    value: terms.amountMicro,
    validAfter: now - 600n,
    validBefore: now + BigInt(terms.maxTimeoutSeconds),
    nonce: randomNonce(),
    ...changes,
  }
  const signature = await account.signTypedData({
    domain: {
      name: terms.extra.name,
      version: terms.extra.version,
      chainId: 8453,
      verifyingContract: terms.asset,
      ...domain,
    },
    types: TRANSFER_TYPES,
    primaryType: 'TransferWithAuthorization',
    message: authorization,
  })
  return withSignature(authorization, signature, terms, x402Version)
}

/** A payment as a client sends it, with any signature. */
export function withSignature(
  authorization: Authorization,
  signature: Hex,
  terms: PaymentTerms,
  x402Version: 1 | 2 = 2,
): ExactPayment {
  const { from, to, value, validAfter, validBefore, nonce } = authorization
  const exact = {
    signature,
    authorization: {
      from,
      to,
      value: value.toString(),
      validAfter: validAfter.toString(),
      validBefore: validBefore.toString(),
      nonce,
    },
  }
  const accepted = { ...terms, amount: terms.amountMicro.toString(), amountMicro: undefined }
  const payload =
    x402Version === 2
      ? { x402Version, accepted, payload: exact }
      : { x402Version, scheme: terms.scheme, network: 'base', payload: exact }
  return { x402Version, authorization, signature, payload: JSON.parse(JSON.stringify(payload)) }
}

export const signCancel = (authorizer: PrivateKeyAccount, nonce: Hex): Promise<Hex> =>
  authorizer.signTypedData({
    domain: { name: 'USD Coin', version: '2', chainId: 8453, verifyingContract: USDC },
    types: {
      CancelAuthorization: [
        { name: 'authorizer', type: 'address' },
        { name: 'nonce', type: 'bytes32' },
      ],
    },
    primaryType: 'CancelAuthorization',
    message: { authorizer: authorizer.address, nonce },
  })
