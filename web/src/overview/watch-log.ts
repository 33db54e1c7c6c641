import { type Jwks, toBase64, verifyCheckpoint, verifyConsistency } from '@countersign/proof'

/**
 * A browser that looks at the log twice is an auditor: it remembers the head it saw, and asks for the proof that the
 * next one only added to it. A log that was rewritten in between cannot give one.
 */
export type SeenHead = { origin: string; size: number; root: string; at: string }
export type Memory = { first: SeenHead; last: SeenHead }

export type LogView =
  | { holds: true; head: SeenHead; memory: Memory }
  | { holds: false; head: SeenHead | undefined; memory: Memory | undefined; problem: string }

export async function watchLog(
  note: string,
  deps: {
    jwks: Jwks
    memory: Memory | undefined
    now: Date
    askConsistency: (from: number, to: number) => Promise<readonly string[]>
  },
): Promise<LogView> {
  const { jwks, memory, now } = deps
  const keys = jwks.keys.filter(({ purpose }) => purpose === undefined || purpose === 'log')
  const verified = verifyCheckpoint(note, { origin: note.split('\n', 1)[0]!, keys })
  if (!verified.ok) return { holds: false, head: undefined, memory, problem: verified.reason }
  const { origin, size, root } = verified.checkpoint
  const head = { origin, size, root: toBase64(root), at: now.toISOString() }
  if (!memory || memory.last.origin !== origin) return { holds: true, head, memory: { first: head, last: head } }

  const { last } = memory
  const refuse = (problem: string): LogView => ({ holds: false, head, memory, problem })
  if (size < last.size)
    return refuse(`The log had ${last.size} entries when it was last looked at, and now has ${size}.`)
  if (size === last.size)
    return head.root === last.root
      ? { holds: true, head, memory }
      : refuse(`The log shows two different trees of ${size} entries.`)
  const proof = last.size === 0 ? [] : await deps.askConsistency(last.size, size)
  const grown =
    last.size === 0 ||
    verifyConsistency({ oldSize: last.size, oldRoot: last.root, newSize: size, newRoot: root, proof })
  return grown
    ? { holds: true, head, memory: { first: memory.first, last: head } }
    : refuse(`The log cannot prove that its ${size} entries continue the ${last.size} seen before.`)
}

/** What is stored may be from an older page or edited; what has not the form of it is nothing. */
export function readMemory(text: string | null): Memory | undefined {
  try {
    const value = JSON.parse(text ?? 'null') as Partial<Memory> | null
    return value && isHead(value.first) && isHead(value.last) ? { first: value.first, last: value.last } : undefined
  } catch {
    return undefined
  }
}

const isHead = (value: unknown): value is SeenHead => {
  const { origin, size, root, at } = (value ?? {}) as Record<string, unknown>
  return typeof origin === 'string' && Number.isSafeInteger(size) && typeof root === 'string' && typeof at === 'string'
}
