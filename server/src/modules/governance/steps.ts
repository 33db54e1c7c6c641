import { StepRefused } from '../../platform/batch.ts'

/** The world moved between looking and acting: look again. */
export const shouldLookAgain = (error: unknown): boolean =>
  error instanceof StepRefused && ['rules_changed', 'room_changed', 'limit_reached'].includes(error.message)

/** How often something is judged anew because the world keeps moving. */
export const MAX_LOOKS = 12

/** Waits a little longer before each further look, and never as long as its rivals: then somebody gets through. */
export const beforeNextLook = (look: number) =>
  new Promise<void>((resume) => setTimeout(resume, Math.random() * Math.min(250, 4 * 2 ** look)))
