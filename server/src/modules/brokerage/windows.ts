import type { InstrumentType, Session } from './broker.ts'

/** How long a person may take, in seconds. Leverage moves against a position by the minute, so its window is short. */
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

/** A run that needs nobody executes at once; what a crash held up for longer than this is no longer what was asked. */
const IMMEDIATE_SECONDS = 120

export function approvalSeconds(type: InstrumentType, leverageE2: bigint | null, overrideSeconds?: number): number {
  if (overrideSeconds !== undefined) return overrideSeconds
  if (leverageE2 !== null && leverageE2 > 100n) return LEVERAGED_SECONDS
  return APPROVAL_SECONDS[type]
}

export type Windows = { expiresAt: Date; executeBy: Date }

/** `expiresAt` limits the approval, `executeBy` limits the execution. */
export function approvalWindows(input: {
  type: InstrumentType
  leverageE2: bigint | null
  session: Session
  nextOpen: Date | null
  now: Date
  overrideSeconds?: number
}): Windows {
  const seconds = approvalSeconds(input.type, input.leverageE2, input.overrideSeconds)
  const expiresAt = after(input.now, seconds)
  const waitsForOpen = input.session === 'closed' || input.session === 'holiday'
  return {
    expiresAt,
    executeBy: waitsForOpen && input.nextOpen ? after(input.nextOpen, AFTER_OPEN_SECONDS) : expiresAt,
  }
}

export const immediateWindow = (now: Date): Date => after(now, IMMEDIATE_SECONDS)

/** The moment from which an approval can no longer lead to anything. */
export const approvalEnds = (windows: Windows): Date =>
  new Date(Math.min(windows.executeBy.getTime(), windows.expiresAt.getTime()))

const after = (at: Date, seconds: number) => new Date(at.getTime() + seconds * 1000)
