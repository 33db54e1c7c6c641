import type { Check } from '@countersign/proof'

export const passedCheck = (name: string, reason: string): Check => ({ name, ok: true, reason })
export const failedCheck = (name: string, reason: string): Check => ({ name, ok: false, reason })
/** The check could not be made, so it neither passes nor fails. */
export const skippedCheck = (name: string, reason: string): Check => ({ name, ok: 'skipped', reason })
