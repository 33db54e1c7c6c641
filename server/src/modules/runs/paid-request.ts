import type { Caller } from '../../platform/auth-context.ts'
import { hashJson } from '../../platform/canonical.ts'
import type { ReceivedPayment } from '../payments/x402.ts'
import type { RunBody } from './paid-unit.ts'

/** A request for a run or a loop, parsed and normalised; nothing has been checked yet. */
export type PaidRequest = {
  kind: 'run' | 'loop'
  route: '/api/run' | '/api/loop'
  caller: Caller
  body: RunBody
  /** From `/api/route`; the quote of a 402 comes back inside the payment instead. */
  quoteToken: string | undefined
  requestHash: string
  bodyHash: string
  idempotencyKey: string | undefined
  paid: ReceivedPayment | undefined
  requestId: string
  /** The caller prefers 202 at once to the answer once the work is done. */
  respondAsync: boolean
  /** Counts the request against the payer's rate limit, once the payment is verified. */
  countPayer(payer: string): Promise<void>
  /** Counts the request against the address it came from. */
  countAddress(): Promise<void>
  /** Called when the run is admitted, or its work is done before: another request of this caller may begin meanwhile. */
  endTurn(): void
}

/** The part of a request that identifies a repetition of it; a top-up has it too. */
export type RequestIdentity = Pick<PaidRequest, 'caller' | 'paid' | 'requestHash' | 'bodyHash' | 'idempotencyKey'> & {
  route: string
}

/** The keys that a request binds: its idempotency key and the identifier in its payment. */
export const requestKeys = ({ idempotencyKey, paid }: Pick<PaidRequest, 'idempotencyKey' | 'paid'>): string[] => [
  ...new Set([idempotencyKey, paid?.identifier].filter((key) => key !== undefined)),
]

/** Fields that a client may add or change between the quote and the paid request. */
const UNBOUND_FIELDS = ['idempotency_key', 'approval_id', 'override_token', 'preauth_token', 'quote']

/** The hash that binds a quote, and with it the payment, to one request. */
export function hashRequest(path: string, body: Record<string, unknown>): string {
  const boundFields = Object.fromEntries(Object.entries(body).filter(([name]) => !UNBOUND_FIELDS.includes(name)))
  return hashJson({ method: 'POST', path, body: boundFields })
}
