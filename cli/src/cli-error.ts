/** 0 done; 1 the answer is no; 2 it could not be done or checked; 3 it is not known whether a payment counted. */
export const EXIT = { done: 0, no: 1, failed: 2, unknown: 3 } as const

/** A message for the person at the terminal, who can do something about it. */
export class CliError extends Error {
  readonly exitCode: number
  constructor(message: string, exitCode: number = EXIT.failed) {
    super(message)
    this.exitCode = exitCode
  }
}
