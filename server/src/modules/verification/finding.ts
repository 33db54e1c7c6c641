/**
 * The result of one check: it does not apply, it passed, or it found a fault. A doubt is a fault that a rule sees too often
 * in right outputs to decide over them: it lowers the score and refuses nothing.
 */
export type Finding = { applies: boolean; fault?: string; isDoubt?: true }

export const notApplicable: Finding = { applies: false }
export const passed: Finding = { applies: true }
export const failed = (fault: string): Finding => ({ applies: true, fault })

/** Makes a doubt of a fault. */
export const doubt = (finding: Finding): Finding =>
  finding.fault === undefined ? finding : { ...finding, isDoubt: true }

/** The first fault of several findings, and one that decides before a doubt; they apply when one of them does. */
export const combine = (findings: readonly Finding[]): Finding =>
  findings.find(({ fault, isDoubt }) => fault !== undefined && !isDoubt) ??
  findings.find(({ fault }) => fault !== undefined) ??
  (findings.some(({ applies }) => applies) ? passed : notApplicable)
