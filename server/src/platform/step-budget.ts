/**
 * A limit on the work of reading one text. Every reader of a caller's text says how many characters or items it is about
 * to go through; past the limit reading stops with an error, whatever the text is. Readers are synchronous, so one
 * counter for the thread is enough.
 */
export class StepBudgetExceeded extends Error {
  constructor() {
    super('The text takes more steps to read than one run may use.')
    this.name = 'StepBudgetExceeded'
  }
}

/** For a task of 32,000 characters with 8,000 characters of memory: each may be gone through 500 times. */
export const MAX_STEPS_PER_TASK = 20_000_000

let remaining = Number.POSITIVE_INFINITY

/** Takes steps from the budget of the text that is being read; without one there is no limit. */
export function spendSteps(count: number): void {
  remaining -= count
  if (remaining < 0) throw new StepBudgetExceeded()
}

/** Reads under a budget. If `read` is asynchronous, nothing else may be read in this thread until it has ended. */
export function withStepBudget<Result>(steps: number, read: () => Result): Result {
  remaining = steps
  let isPending = false
  try {
    const result = read()
    if (!(result instanceof Promise)) return result
    isPending = true
    return result.finally(lift) as Result
  } finally {
    if (!isPending) lift()
  }
}

const lift = () => {
  remaining = Number.POSITIVE_INFINITY
}
