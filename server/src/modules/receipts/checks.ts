import type { Check } from '@countersign/proof'

export const passed = (name: string, reason: string): Check => ({ name, ok: true, reason })
export const failed = (name: string, reason: string): Check => ({ name, ok: false, reason })
/** The check could not be made, so it neither passes nor fails. */
export const skipped = (name: string, reason: string): Check => ({ name, ok: 'skipped', reason })
