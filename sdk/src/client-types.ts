import type { Check, CheckpointStore, Jwks } from '@countersign/proof'
import type { CallStore } from './call-store.ts'
import type {
  LoopRequest,
  LoopSuccessResponse,
  PreauthClosed,
  PreauthCreate,
  PreauthCreated,
  Receipt,
  RunCancelled,
  RunEvent,
  RunRequest,
  RunSuccessResponse,
  TopUpRequest,
  TopUpResponse,
} from './generated/api.ts'

/** What signs payments: a viem account, or anything with an address that signs typed data (EIP-712). */
export type PayingAccount = {
  address: `0x${string}`
  signTypedData(message: {
    domain: Record<string, unknown>
    types: Record<string, unknown>
    primaryType: string
    message: Record<string, unknown>
  }): Promise<`0x${string}`>
}

export type ClientOptions = {
  /** Origin of the service, with or without a slash at the end; empty in a page that the service itself served. */
  baseUrl: string
  /** Key of a tenant. White space around it, such as the newline of a key file, is removed. */
  apiKey?: string
  adminKey?: string
  /** CSRF token of a session, sent with writes; see `POST /api/session`. */
  csrfToken?: () => string | undefined
  /** Timeout of a request. The default leaves room for a run that takes its whole deadline. */
  timeoutMs?: number
  fetch?: typeof fetch
  /** Pays by x402 what costs money. */
  account?: PayingAccount
  /** Pays runs and loops from this wallet of the tenant, unless a request names its own. */
  walletId?: string
  /** Keeps calls and signed payments until their outcome is known. `memoryStore()` by default; `fileStore` survives a restart. */
  store?: CallStore
  /** Maximum price of a single call; one dollar by default. */
  maxUsdc?: number
  /**
   * Also sign for a development chain with a key that `createDevelopmentAccount` did not make. Such a chain has the id and
   * the USDC address of Base, so whoever runs it could use the signature on Base if the key has money there.
   */
  allowDevelopmentChain?: boolean
  /** `false`: receipts are not verified, and `receipt.verified` is null. */
  verify?: boolean | VerifyOptions
  /**
   * Where the largest checkpoint seen of each log is remembered (trust on first use). In memory by default; with a store
   * of your own, a rollback of the log is noticed after a restart too.
   */
  checkpoints?: CheckpointStore
  /** RPC of the chain. With it, the chain is asked too before a payment that has expired is replaced by another. */
  chainRpcUrl?: string
  hooks?: ClientHooks
}

export type VerifyOptions = {
  /** The issuer's keys, from a place you trust. Without them the service's own `/.well-known/jwks.json` is used. */
  jwks?: Jwks
}

/** For logging. A hook that throws changes nothing. No hook sees a key, a token or a signature. */
export type ClientHooks = {
  onRequest?(event: RequestEvent): void
  onResponse?(event: RequestEvent & { status: number; durationMs: number; requestId: string | undefined }): void
  /** The same request will be sent again, with the same payment if it has one. */
  onRetry?(event: RequestEvent & { reason: string; delayMs: number }): void
  /** A payment was signed and stored, and is about to be sent. */
  onPayment?(event: PaymentEvent): void
}
export type RequestEvent = { method: string; path: string; attempt: number; idempotencyKey: string | undefined }
export type PaymentEvent = {
  idempotencyKey: string
  amount: string
  payTo: string
  payer: string
  nonce: string
  validBefore: Date
}

export type CallOptions = {
  /** Names the call. With the same key it is never made, and never paid, twice. A random one by default. */
  idempotencyKey?: string
  /**
   * How long to keep trying. By default a minute as long as nothing was signed, five minutes for a wallet, and for a
   * payment until it has expired and two minutes more. Then `SettlementUnknown` is thrown if a payment may have counted.
   */
  deadlineMs?: number
  signal?: AbortSignal
}

/**
 * A receipt with the result of its verification. `verified` and `checks` are not enumerable, so the receipt remains what
 * was signed when it is written as JSON.
 */
export type VerifiedReceipt = Receipt & {
  /** Whether every check passed; null when the client was told not to verify. */
  readonly verified: boolean | null
  readonly checks: readonly Check[]
}

export type PaidResult = {
  receipt: VerifiedReceipt
  idempotencyKey: string
  /** Whether the service had stored this response: the call had been made before. */
  replayed: boolean
}
export type RunResult = PaidResult & { output: string; run: RunSuccessResponse }
export type LoopResult = PaidResult & { output: string; loop: LoopSuccessResponse }
export type TopUpResult = PaidResult & { topUp: TopUpResponse }

/** A run that goes on without a connection. With the same idempotency key `startRun` returns it again, after a restart too. */
export type StartedRun = Started<RunResult>
export type StartedLoop = Started<LoopResult>

export type EventOptions = {
  signal?: AbortSignal
  /** Called with the whole text so far, of a run that is paid from a wallet and has `accept_unverified`. A retry begins anew. */
  onText?: (text: string) => void
}

export type Started<Result> = {
  runId: string
  idempotencyKey: string
  /** Its states, each once, until it has ended; a connection that drops is resumed. */
  events(options?: EventOptions): AsyncIterable<RunEvent>
  /** Waits for the answer and verifies its receipt. Throws `RunFailed` when nothing was charged. An hour by default. */
  result(options?: { deadlineMs?: number; signal?: AbortSignal }): Promise<Result>
  /** Ends it before its work is done: nothing is charged, unless text of it was shown. Throws a `CountersignError` with status 409 when it is too late. */
  cancel(options?: { signal?: AbortSignal }): Promise<RunCancelled>
}

export type PreauthRequest = Omit<PreauthCreate, 'idempotency_key'>

/** What an agent reports about the payment that it made with a pre-authorisation. */
export type PaymentReport = {
  /** Atomic units; by default the amount that was authorised. */
  actual_amount?: string
  actual_amount_usdc?: number
  transaction?: string
  receipt?: unknown
}

export type OpenPreauth = PreauthCreated & {
  token: string
  /** Reports that the payment was made. It is stored at once, and is what the pre-authorisation is closed with. */
  settled(report?: PaymentReport): Promise<void>
  /** Reports that nothing was paid. */
  voided(): Promise<void>
}

/** `closed` is null when a run that used the token has closed it. */
export type PreauthResult<T> = { result: T; closed: PreauthClosed | null }

/** A call that a process had begun and not ended, as `resume` found it in the store. */
export type ResumedCall =
  | { kind: 'run'; idempotencyKey: string; result: RunResult }
  | { kind: 'loop'; idempotencyKey: string; result: LoopResult }
  | { kind: 'topup'; idempotencyKey: string; result: TopUpResult }
  | { kind: 'preauth'; idempotencyKey: string; closed: PreauthClosed | null }
  | { kind: 'run' | 'loop' | 'topup' | 'preauth'; idempotencyKey: string; error: unknown }

/** The calls that cost money, and what goes with them. */
export type PaidCalls = {
  run(request: RunRequest, options?: CallOptions): Promise<RunResult>
  /** Starts a run that may take long and returns as soon as the service has accepted it. */
  startRun(request: RunRequest, options?: CallOptions): Promise<StartedRun>
  startLoop(request: LoopRequest, options?: CallOptions): Promise<StartedLoop>
  loop(request: LoopRequest, options?: CallOptions): Promise<LoopResult>
  topUp(walletId: string, request: TopUpRequest, options?: CallOptions): Promise<TopUpResult>
  /** Finishes the calls in the store that began and did not end, for example because the process was killed. */
  resume(options?: { signal?: AbortSignal }): Promise<ResumedCall[]>
  /**
   * Opens a pre-authorisation, calls `pay` with its token, and closes it with what was reported: by `settled` or
   * `voided`, else as settled for the whole amount when `pay` returned, and as failed when it threw.
   */
  preauthorize<T>(
    request: PreauthRequest,
    pay: (token: string, preauth: OpenPreauth) => Promise<T>,
    options?: CallOptions,
  ): Promise<PreauthResult<T>>
}
