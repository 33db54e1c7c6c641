import { StepRefused } from '../../../platform/batch.ts'

/** True when rules or limits changed between the assessment and the step: the request has to be assessed again. */
export const shouldAssessAgain = (error: unknown): boolean =>
  error instanceof StepRefused && ['rules_changed', 'room_changed', 'limit_reached'].includes(error.message)

export const MAX_ATTEMPTS = 12

/** Waits a random time that grows with each attempt, so that competing requests do not collide again. */
export const waitBeforeRetry = (attempt: number) =>
  new Promise<void>((resume) => setTimeout(resume, Math.random() * Math.min(250, 4 * 2 ** attempt)))
