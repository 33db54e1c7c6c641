import { paymentResponseHeaders } from '../payments/x402.ts'
import { paymentMethodOf } from './draft-receipt.ts'
import type { PaidUnit, RunTerms } from './paid-unit.ts'
import type { RunDeps } from './run-deps.ts'
import type { RunRow, SettlementRow } from './runs.store.ts'

type HeaderDeps = Pick<RunDeps, 'offerReceipt' | 'publicUrl'>
type PaymentResult = Omit<Parameters<typeof paymentResponseHeaders>[0], 'payer' | 'amountMicro'>

const NO_STORE = { 'cache-control': 'no-store' }

/** The x402 result headers. A run paid from a wallet has none; either way the response must not be cached. */
export const responseHeaders = (unit: PaidUnit, result: PaymentResult) =>
  paymentMethodOf(unit) === 'wallet'
    ? NO_STORE
    : paymentResponseHeaders({
        ...result,
        identifier: unit.terms.payment_identifier,
        payer: unit.payer,
        amountMicro: unit.priceMicro,
      })

/** The same headers for a stored response, rebuilt from the rows. */
export function replayHeaders(deps: HeaderDeps, run: RunRow, settlement: SettlementRow): Record<string, string> {
  if (settlement.method === 'wallet') return NO_STORE
  const { payer, transaction, amount_micro: amountMicro, reason } = settlement
  const success = run.state === 'completed'
  const unit = { kind: run.kind, payer, terms: run.terms as RunTerms }
  const { issued_at, public_url } = (run.result ?? {}) as { issued_at?: string; public_url?: string }
  return paymentResponseHeaders({
    ...(success && issued_at && { extensions: deliveryExtension(deps, unit, { issued_at, public_url }, transaction) }),
    identifier: unit.terms.payment_identifier,
    success,
    // A payment that arrived after its run had failed belongs to its refund, not to this response.
    transaction: success ? (transaction ?? '') : '',
    payer,
    amountMicro,
    ...(reason && { errorReason: reason }),
  })
}

/**
 * Signed with the time at which the result was stored and the address of the process that stored it, so that a response
 * has the same bytes whichever process completes or replays it.
 */
export function deliveryExtension(
  deps: HeaderDeps,
  unit: { kind: string; payer: string; terms: { wallet_id: string | null } },
  result: { issued_at: string; public_url?: string | undefined },
  transaction: string | null,
) {
  if (transaction === null) return undefined
  const path = unit.kind === 'topup' ? `/api/wallets/${unit.terms.wallet_id}/topup` : `/api/${unit.kind}`
  const delivery = { payer: unit.payer, issuedAt: new Date(result.issued_at), transaction }
  return deps.offerReceipt.delivered({ publicUrl: result.public_url ?? deps.publicUrl(), path }, delivery)
}
