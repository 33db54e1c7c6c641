import { type Jwks, toBase64, verifyCheckpoint, verifyConsistency } from '@countersign/proof'

/**
 * The browser audits the log: it stores the last tree head it saw and requires a consistency proof that the next one
 * only appended to it. A log that was rewritten in between cannot produce that proof.
 */
export type LogHead = { origin: string; size: number; root: string; at: string }
export type LogHistory = { first: LogHead; last: LogHead }

export type LogStatus =
  | { consistent: true; head: LogHead; history: LogHistory }
  | { consistent: false; head: LogHead | undefined; history: LogHistory | undefined; problem: string }

export async function checkLog(
  note: string,
  deps: {
    jwks: Jwks
    history: LogHistory | undefined
    now: Date
    fetchConsistencyProof: (from: number, to: number) => Promise<readonly string[]>
  },
): Promise<LogStatus> {
  const { jwks, history, now } = deps
  const keys = jwks.keys.filter(({ purpose }) => purpose === undefined || purpose === 'log')
  const verified = verifyCheckpoint(note, { origin: note.split('\n', 1)[0]!, keys })
  if (!verified.ok) return { consistent: false, head: undefined, history, problem: verified.reason }
  const { origin, size, root } = verified.checkpoint
  const head = { origin, size, root: toBase64(root), at: now.toISOString() }
  if (!history || history.last.origin !== origin)
    return { consistent: true, head, history: { first: head, last: head } }

  const { last } = history
  const fail = (problem: string): LogStatus => ({ consistent: false, head, history, problem })
  if (size < last.size) return fail(`The log had ${last.size} entries when last checked and now has ${size}.`)
  if (size === last.size)
    return head.root === last.root
      ? { consistent: true, head, history }
      : fail(`The log has shown two different trees of ${size} entries.`)
  const proof = last.size === 0 ? [] : await deps.fetchConsistencyProof(last.size, size)
  const extendsLastHead =
    last.size === 0 ||
    verifyConsistency({ oldSize: last.size, oldRoot: last.root, newSize: size, newRoot: root, proof })
  return extendsLastHead
    ? { consistent: true, head, history: { first: history.first, last: head } }
    : fail(`The log cannot prove that its ${size} entries continue the ${last.size} seen before.`)
}

/** Undefined when the stored text does not have the expected form: it may come from an older version, or be edited. */
export function parseLogHistory(text: string | null): LogHistory | undefined {
  try {
    const value = JSON.parse(text ?? 'null') as Partial<LogHistory> | null
    return value && isHead(value.first) && isHead(value.last) ? { first: value.first, last: value.last } : undefined
  } catch {
    return undefined
  }
}

const isHead = (value: unknown): value is LogHead => {
  const { origin, size, root, at } = (value ?? {}) as Record<string, unknown>
  return typeof origin === 'string' && Number.isSafeInteger(size) && typeof root === 'string' && typeof at === 'string'
}
