/** Nothing was sent to the database: whatever was asked for can be asked for again. */
export class DatabaseUnavailable extends Error {}

/** SQLSTATE `statement_completion_unknown`: the commit has happened on this server, and perhaps on no other. */
export class CommitUnknown extends Error {
  readonly code = '40003'
}

/**
 * Whether a later attempt may succeed: lost connections, servers that restart or cannot be used, exhausted resources and
 * locks held too long, by SQLSTATE or Node's code.
 */
export function isUnavailable(error: unknown): boolean {
  if (error instanceof DatabaseUnavailable) return true
  const code = codeOf(error)
  if (code === undefined)
    return (
      error instanceof Error &&
      /timeout exceeded when trying to connect|Connection terminated|not queryable/.test(error.message)
    )
  return /^(08|40003|53|55P03|57|ECONN|EHOST|ENET|EAI_AGAIN|ENOENT|EPIPE|ETIMEDOUT)/.test(code)
}

/**
 * Whether the statement was sent and its answer was lost, so that nobody knows whether it was committed. It is
 * unavailable too, but whoever repeats it must be able to find out.
 */
export function isOutcomeUnknown(error: unknown): boolean {
  const code = codeOf(error)
  if (code === undefined) return error instanceof Error && /Connection terminated/.test(error.message)
  return /^(08|40003|57P0[12]|ECONNRESET|EPIPE)/.test(code)
}

/** Whether no connection could be made to a server, in contrast to one that has no connection to spare. */
export const isConnectFailure = (error: unknown): boolean =>
  isUnavailable(error) &&
  !/^53/.test(codeOf(error) ?? '') &&
  !/timeout exceeded when trying to connect/.test((error as Error).message)

function codeOf(error: unknown): string | undefined {
  const code = (error as { code?: unknown })?.code
  return typeof code === 'string' ? code : undefined
}
