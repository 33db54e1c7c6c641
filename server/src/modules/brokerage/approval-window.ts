import type { InstrumentType, Session } from './broker.ts'

/** How long an approver has, in seconds. Leverage moves against a position by the minute, so its window is short. */
const APPROVAL_SECONDS: Record<InstrumentType, number> = {
  equity: 24 * 3600,
  perp: 5 * 60,
  crypto: 15 * 60,
  rwa: 60 * 60,
  earn: 24 * 3600,
  spend: 15 * 60,
}
const LEVERAGED_SECONDS = 5 * 60

/** An order that waits for the open is executed in the first quarter of an hour of that session or not at all. */
const AFTER_OPEN_SECONDS = 15 * 60

/** A run that needs no approval executes at once; after a crash it is still executed within this time, and not later. */
const IMMEDIATE_SECONDS = 120

export function approvalWindowSeconds(
  type: InstrumentType,
  leverageE2: bigint | null,
  overrideSeconds?: number,
): number {
  if (overrideSeconds !== undefined) return overrideSeconds
  if (leverageE2 !== null && leverageE2 > 100n) return LEVERAGED_SECONDS
  return APPROVAL_SECONDS[type]
}

export type ApprovalWindow = { expiresAt: Date; executeBy: Date }

/** `expiresAt` limits the approval, `executeBy` limits the execution. */
export function computeApprovalWindow(input: {
  type: InstrumentType
  leverageE2: bigint | null
  session: Session
  nextOpen: Date | null
  now: Date
  overrideSeconds?: number
}): ApprovalWindow {
  const seconds = approvalWindowSeconds(input.type, input.leverageE2, input.overrideSeconds)
  const expiresAt = addSeconds(input.now, seconds)
  const waitsForOpen = input.session === 'closed' || input.session === 'holiday'
  return {
    expiresAt,
    executeBy: waitsForOpen && input.nextOpen ? addSeconds(input.nextOpen, AFTER_OPEN_SECONDS) : expiresAt,
  }
}

export const immediateExecutionDeadline = (now: Date): Date => addSeconds(now, IMMEDIATE_SECONDS)

/** From this moment the run can no longer be approved. */
export const approvalDeadline = (window: ApprovalWindow): Date =>
  new Date(Math.min(window.executeBy.getTime(), window.expiresAt.getTime()))

const addSeconds = (at: Date, seconds: number) => new Date(at.getTime() + seconds * 1000)
