import type { PaymentTerms } from './facilitator.ts'

/** Beside the deadline of the work a payment needs time to be signed and sent, and then to be settled. */
const SIGN_SECONDS = 150
const SETTLE_SECONDS = 30
export const MAX_VALIDITY_SECONDS = 3_600

/** How long a payment for this work is asked to be valid: `maxTimeoutSeconds`. */
export const offeredSeconds = (deadlineSeconds: number): number => deadlineSeconds + SIGN_SECONDS + SETTLE_SECONDS

/** How long it must still be valid when it arrives, so that it does not expire before the work is done and settled. */
export const minValiditySeconds = ({ maxTimeoutSeconds }: Pick<PaymentTerms, 'maxTimeoutSeconds'>): number =>
  maxTimeoutSeconds - SIGN_SECONDS
