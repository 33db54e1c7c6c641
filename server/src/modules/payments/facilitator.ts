/**
 * The facilitator port: verifies an x402 `exact` payment and puts it on the chain.
 * Adapters import this file and nothing else of this module.
 */
import type { ExactPayment, Hex } from '../../platform/x402-wire.ts'

export type { Authorization, ExactPayment, Hex } from '../../platform/x402-wire.ts'

/** The payment that we asked for. `network` is CAIP-2 (`eip155:8453`), whichever version the client speaks. */
export type PaymentTerms = {
  scheme: 'exact'
  network: string
  asset: Hex
  amountMicro: bigint
  payTo: Hex
  maxTimeoutSeconds: number
  extra: { name: string; version: string } & Record<string, unknown>
}

/** `balanceMicro` is the payer's balance when the payment was verified, where the facilitator knows it. */
export type VerifyResult =
  | { valid: true; payer: Hex; balanceMicro?: bigint }
  | { valid: false; reason: string; message: string }

/**
 * `settled`: the transfer is on the chain. `failed`: certain that this attempt moved nothing and never will.
 * `unknown`: anything else (time-out, reset, unreadable response). The outcome is then read from the chain, and the
 * payer is not asked to pay again.
 */
export type SettleResult =
  | { state: 'settled'; transaction: Hex; payer: Hex; network: string; amountMicro: bigint; block: bigint | null }
  | { state: 'failed'; reason: string; message: string }
  | { state: 'unknown'; reason: string; message: string }

export type SupportedKind = { x402Version: number; scheme: string; network: string; extra?: Record<string, unknown> }

export type Facilitator = {
  name: string
  /** True for the local facilitator, which settles many payments in one transaction; elsewhere a transaction settles one. */
  sharesTransactions?: boolean
  /** Throws `FacilitatorUnavailable` when there is no answer: that is a 503, never a 402 and never free. */
  verify(payment: ExactPayment, terms: PaymentTerms): Promise<VerifyResult>
  /**
   * Never throws for network failures: the result is then `unknown`. `isRetry`: the payment was sent before and may have
   * gone through then, so a refusal of this attempt alone proves nothing.
   */
  settle(payment: ExactPayment, terms: PaymentTerms, isRetry?: boolean): Promise<SettleResult>
  supported(): Promise<{ kinds: SupportedKind[]; extensions: string[]; signers: Record<string, string[]> }>
  /** Why no payment can be checked or settled at the moment, for `/api/health`. */
  findProblem?(): Promise<string | undefined>
}

export class FacilitatorUnavailable extends Error {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.name = 'FacilitatorUnavailable'
  }
}

/**
 * The use of an authorisation on the chain. `transfer` is null when the payer cancelled it, `transaction` is null when
 * the log of its use cannot be found.
 */
export type AuthorizationUse = {
  used: true
  transaction: Hex | null
  transfer: { from: Hex; to: Hex; value: bigint; block: bigint } | null
}

export type AuthorizationState = { used: false } | AuthorizationUse

/** `nonce` is that of the payer's authorisation, null for a transfer that was made without one. */
export type MinedTransfer = { asset: Hex; from: Hex; to: Hex; value: bigint; block: bigint; nonce: Hex | null }

/** The chain queries of the reconciler. Every result is of the chain's head at the time of the call. */
export type ChainReader = {
  authorization(asset: Hex, payer: Hex, nonce: Hex): Promise<AuthorizationState>
  balanceOf(asset: Hex, owner: Hex): Promise<bigint>
  /** Time of the newest block in seconds since 1970: the token contract compares `validBefore` with it. */
  headTime(): Promise<bigint>
  /** Time of one block in seconds since 1970. */
  blockTime(block: bigint): Promise<bigint>
  /** The token transfers of one mined transaction, or null when the chain does not have it. */
  transfers(transaction: Hex): Promise<MinedTransfer[] | null>
  /**
   * Transfers of one amount from one address to another that were mined after a time in seconds since 1970, the oldest
   * first. At most a hundred, and of a chain that refuses wide searches only those of about the last day.
   */
  findTransfers(sought: {
    asset: Hex
    from: Hex
    to: Hex
    value: bigint
    after: bigint
  }): Promise<{ transaction: Hex; minedAt: bigint }[]>
}
