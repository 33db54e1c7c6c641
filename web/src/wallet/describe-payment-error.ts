import {
  ApprovalNeeded,
  CountersignError,
  GovernanceRefused,
  PaymentRefused,
  PaymentRejected,
  PaymentRequired,
  RunFailed,
  SettlementUnknown,
} from '@countersign/sdk'
import { WalletRefused } from './injected-account.ts'

/** What happened, whether it cost anything, and what to do next. */
export function describePaymentError(error: unknown): string {
  const refusal = findCause(error, WalletRefused)
  if (refusal) return refusal.message
  if (error instanceof PaymentRefused)
    return error.reason === 'price_above_max'
      ? 'The price has changed since it was shown. Nothing was signed or charged. Ask for the price again.'
      : `${error.message} Nothing was signed or charged.`
  if (error instanceof SettlementUnknown)
    return 'The service has not said yet whether the payment arrived. Press the button again: the same payment is sent, and it counts once.'
  if (error instanceof RunFailed) return `${error.message} Nothing was charged. Change the task or try again.`
  if (error instanceof PaymentRequired)
    return `${error.message} Nothing was charged. Fill the wallet, or pay another way.`
  if (error instanceof PaymentRejected)
    return `The payment was not accepted (${error.reason.replaceAll('_', ' ')}). Nothing was charged. Fill the account that pays, or pay another way.`
  if (error instanceof ApprovalNeeded)
    return `${error.message} Nothing was charged. Somebody who may decide approves it under Account, Approvals.`
  if (error instanceof GovernanceRefused)
    return `${error.message} Nothing was charged. Budgets and policies are under Account.`
  if (error instanceof CountersignError && error.status === 410)
    return 'The price has expired. Nothing was charged. Ask for the price again.'
  return error instanceof Error ? error.message : String(error)
}

/** An error of the wallet may arrive inside one of the payment library. */
export function findCause<T extends Error>(error: unknown, kind: new (...values: never[]) => T): T | undefined {
  for (let current = error, depth = 0; current instanceof Error && depth < 5; current = current.cause, depth++)
    if (current instanceof kind) return current
  return undefined
}
