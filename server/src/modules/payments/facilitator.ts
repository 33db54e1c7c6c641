/**
 * The facilitator port: who checks an x402 `exact` payment and puts it on the chain.
 * Adapters import these types and nothing else of this module.
 */
export type Hex = `0x${string}`

/** An EIP-3009 `TransferWithAuthorization` with its signature, as both x402 versions carry it. */
export type Authorization = {
  from: Hex
  to: Hex
  value: bigint
  validAfter: bigint
  validBefore: bigint
  nonce: Hex
}

export type ExactPayment = {
  x402Version: 1 | 2
  authorization: Authorization
  signature: Hex
  /** The payload as the client sent it, for facilitators that speak the wire format. */
  payload: unknown
}

/** What we asked to be paid. `network` is CAIP-2 (`eip155:8453`), whatever version the client speaks. */
export type PaymentTerms = {
  scheme: 'exact'
  network: string
  asset: Hex
  amountMicro: bigint
  payTo: Hex
  maxTimeoutSeconds: number
  extra: { name: string; version: string } & Record<string, unknown>
}

export type VerifyResult = { valid: true; payer: Hex } | { valid: false; reason: string; message: string }

/**
 * `settled`: the transfer is on the chain. `failed`: certain that this attempt moved nothing and never will.
 * `unknown`: anything else (time-out, reset, nonsense); only the chain can tell, and the payer is not asked again.
 */
export type SettleResult =
  | { state: 'settled'; transaction: Hex; payer: Hex; network: string; amountMicro: bigint; block: bigint | null }
  | { state: 'failed'; reason: string; message: string }
  | { state: 'unknown'; reason: string; message: string }

export type SupportedKind = { x402Version: number; scheme: string; network: string; extra?: Record<string, unknown> }

export type Facilitator = {
  name: string
  /** True for our own, which settles many payments in one transaction; elsewhere a transaction pays once. */
  sharesTransactions?: boolean
  /** Throws `FacilitatorUnavailable` when no answer can be had: that is a 503, never a 402 and never free. */
  verify(payment: ExactPayment, terms: PaymentTerms): Promise<VerifyResult>
  /**
   * Never throws for what the network does: what is not known is `unknown`. `again`: it was sent before and may have gone
   * through then, so that a refusal of this attempt alone proves nothing.
   */
  settle(payment: ExactPayment, terms: PaymentTerms, again?: boolean): Promise<SettleResult>
  supported(): Promise<{ kinds: SupportedKind[]; extensions: string[]; signers: Record<string, string[]> }>
}

export class FacilitatorUnavailable extends Error {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.name = 'FacilitatorUnavailable'
  }
}

/** What the reconciler asks a chain. Every answer is of the chain's head at the moment of the call. */
export type ChainReader = {
  /** Has this authorisation been used, and if so in which transaction, moving what? `transfer` is null for a cancelled one. */
  authorization(
    asset: Hex,
    payer: Hex,
    nonce: Hex,
  ): Promise<
    | { used: false }
    | { used: true; transaction: Hex | null; transfer: { from: Hex; to: Hex; value: bigint; block: bigint } | null }
  >
  balanceOf(asset: Hex, owner: Hex): Promise<bigint>
  /** Seconds since 1970 of the newest block: what the token contract compares `validBefore` with. */
  headTime(): Promise<bigint>
  /** The token transfers of one mined transaction, or null when the chain does not know it. */
  transfers(transaction: Hex): Promise<{ asset: Hex; from: Hex; to: Hex; value: bigint; block: bigint }[] | null>
}
