import type { Approval, RunErrorResponse } from './generated/api.ts'

/**
 * An error response of the service, with its stable code, message and body. When there was no response, `status` is 0
 * and `code` is `unavailable`.
 */
export class CountersignError extends Error {
  readonly status: number
  /** One of the five stable codes. */
  readonly error: string
  /** More specific than `error`, when the service sent one. */
  readonly code: string | undefined
  readonly requestId: string | undefined
  readonly retryable: boolean
  readonly body: Record<string, unknown>
  /** Calling again with the same request and this key continues the call, and never starts a second one. */
  idempotencyKey: string | undefined
  constructor(status: number, body: Record<string, unknown>, options?: ErrorOptions) {
    super(asText(body.message) ?? `The service responded ${status}.`, options)
    this.name = 'CountersignError'
    this.status = status
    this.error = asText(body.error) ?? 'error'
    this.code = asText(body.code)
    this.requestId = asText(body.request_id)
    this.retryable = body.retryable === true
    this.body = body
  }
}

/** Governance refused the call; nothing was charged. It is never sent again by itself: `smallestChange` says what would do. */
export class GovernanceRefused extends CountersignError {
  override name = 'GovernanceRefused'
  get decisionId(): string | undefined {
    return asText(this.body.decision_id)
  }
  get policyResults(): Record<string, unknown>[] {
    return asObjects(this.body.policy_results)
  }
  get smallestChange(): Record<string, unknown>[] {
    return asObjects(this.body.smallest_change)
  }
}

/** A budget, a mandate or another counter has no room for this call. */
export class BudgetExceeded extends GovernanceRefused {
  override name = 'BudgetExceeded'
}

/** A policy denies this call. */
export class PolicyBlocked extends GovernanceRefused {
  override name = 'PolicyBlocked'
}

export type WaitOptions = {
  /** How long to wait; by default until the approval expires. */
  timeoutMs?: number
  /** How often the service is asked. */
  intervalMs?: number
  signal?: AbortSignal
}

/** A person has to approve this call; nothing was charged. */
export class ApprovalNeeded extends GovernanceRefused {
  override name = 'ApprovalNeeded'
  readonly approvalId: string
  readonly #wait: (options?: WaitOptions) => Promise<Approval>
  constructor(
    status: number,
    body: Record<string, unknown>,
    approvalId: string,
    wait: (options?: WaitOptions) => Promise<Approval>,
  ) {
    super(status, body)
    this.approvalId = approvalId
    this.#wait = wait
  }
  /**
   * Resolves when the call is approved and throws `ApprovalRejected` when it is rejected or expires. Then make the same
   * call with `approval_id` and with this error's `idempotencyKey`.
   */
  waitForApproval(options?: WaitOptions): Promise<Approval> {
    return this.#wait(options)
  }
}

/** The approval was rejected, or nobody approved it in time. */
export class ApprovalRejected extends Error {
  override name = 'ApprovalRejected'
  readonly approval: Approval
  constructor(approval: Approval) {
    super(`The approval ${approval.approval_id} was ${approval.resolution ?? approval.status}.`)
    this.approval = approval
  }
}

/**
 * It is not known whether the payment arrived. It is in the store: make the same call with `idempotencyKey` to send the
 * same payment again. Nothing else is signed for this key while it can still count.
 */
export class SettlementUnknown extends CountersignError {
  override name = 'SettlementUnknown'
  /** When the payment can no longer be used; undefined for a call paid from a wallet. */
  readonly validBefore: Date | undefined
  constructor(status: number, body: Record<string, unknown>, validBefore: Date | undefined, options?: ErrorOptions) {
    super(status, { error: 'error', code: 'unavailable', retryable: true, ...body }, options)
    this.validBefore = validBefore
  }
}

/** The work failed; `charged` is false, and `receipt` confirms it. To try again, call without this idempotency key. */
export class RunFailed extends CountersignError {
  override name = 'RunFailed'
  get run(): RunErrorResponse {
    return this.body as unknown as RunErrorResponse
  }
}

/** The service did not accept the signed payment, for example because the payer has too little money. */
export class PaymentRejected extends CountersignError {
  override name = 'PaymentRejected'
  get reason(): string {
    return asText(this.body.reason) ?? asText(this.body.error) ?? 'payment_required'
  }
}

/** The call costs money and the client has neither an account nor a wallet, or the wallet has too little. */
export class PaymentRequired extends CountersignError {
  override name = 'PaymentRequired'
}

export type PaymentRefusal =
  | 'price_above_max'
  | 'network'
  | 'asset'
  | 'scheme'
  | 'payee_changed'
  | 'validity'
  | 'development_chain'
  | 'unreadable'

/** The terms of a 402 that the client does not sign. Nothing was signed. */
export class PaymentRefused extends Error {
  override name = 'PaymentRefused'
  readonly reason: PaymentRefusal
  constructor(reason: PaymentRefusal, message: string) {
    super(message)
    this.reason = reason
  }
}

/** A 402 of a development chain, which was not signed. */
export class DevelopmentChainRefused extends PaymentRefused {
  override name = 'DevelopmentChainRefused'
  constructor() {
    super(
      'development_chain',
      "This 402 is from a development chain that has Base's chain id and USDC address: with a key that has money on Base the signature would be live. Pay with createDevelopmentAccount(), or set allowDevelopmentChain.",
    )
  }
}

/** The store could not be read or written. Nothing was signed, or what was signed was not sent. */
export class StoreFailed extends Error {
  override name = 'StoreFailed'
}

/** The idempotency key belongs to another request. Nothing was sent. */
export class IdempotencyKeyReused extends Error {
  override name = 'IdempotencyKeyReused'
}

/** A webhook delivery whose signature or time does not hold. */
export class WebhookRefused extends Error {
  override name = 'WebhookRefused'
}

const asText = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)

const asObjects = (value: unknown): Record<string, unknown>[] => (Array.isArray(value) ? value : [])
