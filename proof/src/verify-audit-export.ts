import {
  type Check,
  failed,
  isJsonObject,
  type JsonObject,
  passed,
  skipped,
  type Verification,
  without,
} from './checks.ts'
import { hashJson, isHashText } from './hash-json.ts'
import { parseJson } from './parse-json.ts'

export const MAX_AUDIT_LINE_LENGTH = 1_048_576
export const MAX_AUDIT_EVENTS = 10_000_000

/** An event's place in the chain. */
export type AuditHead = { seq: number; hash: string }

export type VerifyAuditOptions = {
  /** The last event before this export, when it does not start at the beginning of the chain. */
  after?: AuditHead
  /** The newest event known from elsewhere, for example from an earlier export: catches a chain that was cut short. */
  head?: AuditHead
}

export type AuditVerification = Verification & {
  count: number
  /** The last event that verified. */
  head: AuditHead | null
  /** The line, counted from 1, at which the chain breaks. */
  broken_at: number | null
}

/** The `hash` of an audit event: over everything in it but the hash itself, its `prev_hash` included. */
export const hashAuditEvent = (event: object): string => hashJson(without(event as JsonObject, 'hash'))

/**
 * Verifies an audit export: NDJSON text, or its lines one by one, so that a long one need not be in memory.
 * Each event must carry the right hash, the hash of the event before it, and the next number.
 */
export function verifyAuditExport(
  lines: string | Iterable<string>,
  options: VerifyAuditOptions = {},
): AuditVerification {
  let head: AuditHead | null = options.after ?? null
  let known: Check | undefined
  let count = 0
  let line = 0
  const answer = (checks: Check[], brokenAt: number | null): AuditVerification => {
    const all = options.head
      ? [...checks, known ?? failed('head', 'The newest known event is not in this export.')]
      : checks
    return { ok: all.every(({ ok }) => ok !== false), checks: all, does_not_prove, count, head, broken_at: brokenAt }
  }

  for (const text of typeof lines === 'string' ? eachLine(lines) : lines) {
    line += 1
    if (text === '') continue
    if (count === MAX_AUDIT_EVENTS) return answer([failed('chain', `More than ${MAX_AUDIT_EVENTS} events.`)], line)
    const found = readEvent(text, head)
    if (typeof found === 'string') return answer([failed('chain', `Line ${line}: ${found}`)], line)
    head = found
    count += 1
    if (options.head?.seq === found.seq) known = checkHead(found, options.head)
  }
  if (options.head && options.head.seq === options.after?.seq) known = checkHead(options.after, options.head)
  return answer([checkCount(count, options.after)], null)
}

/** Nothing after a known event is fine; nothing at all is not evidence of anything. */
function checkCount(count: number, after: AuditHead | undefined): Check {
  if (count > 0) return passed('chain', `${count} events, none missing or changed.`)
  return after ? skipped('chain', 'No events after the known one.') : failed('chain', 'The export is empty.')
}

function checkHead(found: AuditHead, known: AuditHead): Check {
  return found.hash === known.hash
    ? passed('head', `Event ${known.seq} is the one known from elsewhere.`)
    : failed('head', `Event ${known.seq} is not the one known from elsewhere: the history was rewritten.`)
}

/** The event's place, or the sentence that says why it does not follow `before`. */
function readEvent(text: string, before: AuditHead | null): AuditHead | string {
  if (typeof text !== 'string' || text.length > MAX_AUDIT_LINE_LENGTH) return 'longer than an event may be.'
  try {
    const event = parseJson(text)
    if (!isJsonObject(event)) return 'not a JSON object.'
    const { seq, hash, prev_hash } = event
    if (!Number.isSafeInteger(seq) || (seq as number) < 0) return "'seq' must be a whole number."
    if (!isHashText(hash)) return "'hash' must be sha256: and 64 hexadecimal digits."
    if (prev_hash !== (before?.hash ?? null)) {
      return before ? 'it does not carry the hash of the event before it.' : 'the first event names one before it.'
    }
    if (before && seq !== before.seq + 1) return `event ${before.seq} is followed by event ${seq}.`
    if (hashAuditEvent(event) !== hash) return 'its hash is not the hash of its contents.'
    return { seq: seq as number, hash }
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

function* eachLine(text: string): Generator<string> {
  let start = 0
  while (start < text.length) {
    const newline = text.indexOf('\n', start)
    const end = newline === -1 ? text.length : newline
    yield text.slice(start, end)
    start = end + 1
  }
}

const does_not_prove = [
  'That every action was recorded: the chain shows that recorded events were not changed or taken out.',
  'That the export is complete: events after its last one may exist, unless a newer head is known from elsewhere.',
  'Who wrote the chain: its hashes are not signatures.',
]
