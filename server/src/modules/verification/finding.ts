/** The result of one check: it does not apply, it passed, or it found a fault. */
export type Finding = { applies: boolean; fault?: string }

export const notApplicable: Finding = { applies: false }
export const passed: Finding = { applies: true }
export const failed = (fault: string): Finding => ({ applies: true, fault })

/** The first fault of several findings; they apply when one of them does. */
export const combine = (findings: readonly Finding[]): Finding =>
  findings.find(({ fault }) => fault !== undefined) ??
  (findings.some(({ applies }) => applies) ? passed : notApplicable)
