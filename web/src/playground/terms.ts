import type { X402PaymentRequiredResponse } from '@countersign/sdk'

/** What a 402 asks for, as far as the page shows it. The SDK reads and checks the terms it signs by itself. */
export type Terms = {
  priceUsdc: number
  amountMicro: bigint
  network: string
  asset: string
  payTo: string
  validSeconds: number | undefined
  isDevelopment: boolean
  challenge: X402PaymentRequiredResponse
}

export function readTerms(challenge: X402PaymentRequiredResponse): Terms {
  const accepted = (challenge.accepts[0] ?? {}) as Record<string, unknown>
  const extra = (accepted.extra ?? {}) as Record<string, unknown>
  const readText = (name: string) => (typeof accepted[name] === 'string' ? accepted[name] : '')
  return {
    priceUsdc: challenge.price_usdc,
    amountMicro: BigInt(challenge.amount),
    network: readText('network'),
    asset: readText('asset'),
    payTo: readText('payTo'),
    validSeconds: typeof accepted.maxTimeoutSeconds === 'number' ? accepted.maxTimeoutSeconds : undefined,
    isDevelopment: extra.development === true,
    challenge,
  }
}
