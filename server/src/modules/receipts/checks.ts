import type { Check } from '@countersign/proof'

export const passed = (name: string, reason: string): Check => ({ name, ok: true, reason })
export const failed = (name: string, reason: string): Check => ({ name, ok: false, reason })
/** Could not be looked at, which is neither good nor bad. */
export const skipped = (name: string, reason: string): Check => ({ name, ok: 'skipped', reason })
