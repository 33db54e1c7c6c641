import {
  type Check,
  failed,
  isJsonObject,
  type JsonObject,
  omit,
  passed,
  skipped,
  type Verification,
} from './checks.ts'
import { hashJson, isHashText } from './hash-json.ts'
import { parseJson } from './parse-json.ts'

export const MAX_AUDIT_LINE_LENGTH = 1_048_576
export const MAX_AUDIT_EVENTS = 10_000_000

/** The position of an event in the chain. */
export type AuditHead = { seq: number; hash: string }

export type VerifyAuditOptions = {
  /** The last event before this export, when it does not start at the beginning of the chain. */
  after?: AuditHead
  /** A trusted newest event, for example from an earlier export: detects a truncated chain. */
  head?: AuditHead
}

export type AuditVerification = Verification & {
  count: number
  /** The last event that verified. */
  head: AuditHead | null
  /** The line, counted from 1, at which the chain breaks. */
  broken_at: number | null
}

/** The `hash` of an audit event, over all members except `hash` itself, including `prev_hash`. */
export const hashAuditEvent = (event: object): string => hashJson(omit(event as JsonObject, 'hash'))

/**
 * Verifies an audit export: NDJSON text, or its lines one by one, so that a long export need not be in memory.
 * Each event must have the correct hash, the hash of the previous event, and the next sequence number.
 */
export function verifyAuditExport(
  lines: string | Iterable<string>,
  options: VerifyAuditOptions = {},
): AuditVerification {
  let head: AuditHead | null = options.after ?? null
  let headCheck: Check | undefined
  let count = 0
  let line = 0
  const toResult = (checks: Check[], brokenAt: number | null): AuditVerification => {
    const allChecks = options.head
      ? [...checks, headCheck ?? failed('head', 'The trusted head is not in this export.')]
      : checks
    return {
      ok: allChecks.every(({ ok }) => ok !== false),
      checks: allChecks,
      does_not_prove,
      count,
      head,
      broken_at: brokenAt,
    }
  }

  for (const text of typeof lines === 'string' ? eachLine(lines) : lines) {
    line += 1
    if (text === '') continue
    if (count === MAX_AUDIT_EVENTS) return toResult([failed('chain', `More than ${MAX_AUDIT_EVENTS} events.`)], line)
    const event = parseEvent(text, head)
    if (typeof event === 'string') return toResult([failed('chain', `Line ${line}: ${event}`)], line)
    head = event
    count += 1
    if (options.head?.seq === event.seq) headCheck = checkHead(event, options.head)
  }
  if (options.head && options.head.seq === options.after?.seq) headCheck = checkHead(options.after, options.head)
  return toResult([checkCount(count, options.after)], null)
}

/** An export without events is accepted only after a given event; otherwise it proves nothing. */
function checkCount(count: number, after: AuditHead | undefined): Check {
  if (count > 0) return passed('chain', `${count} events, none missing or changed.`)
  return after ? skipped('chain', 'No events after the given one.') : failed('chain', 'The export is empty.')
}

function checkHead(event: AuditHead, trustedHead: AuditHead): Check {
  return event.hash === trustedHead.hash
    ? passed('head', `Event ${trustedHead.seq} is the trusted head.`)
    : failed('head', `Event ${trustedHead.seq} differs from the trusted head: the history was rewritten.`)
}

/** The event's position, or why it does not follow `previous`. */
function parseEvent(text: string, previous: AuditHead | null): AuditHead | string {
  if (typeof text !== 'string' || text.length > MAX_AUDIT_LINE_LENGTH) return 'too long for an event.'
  try {
    const event = parseJson(text)
    if (!isJsonObject(event)) return 'not a JSON object.'
    const { seq, hash, prev_hash } = event
    if (!Number.isSafeInteger(seq) || (seq as number) < 0) return "'seq' must be a whole number."
    if (!isHashText(hash)) return "'hash' must be sha256: and 64 hexadecimal digits."
    if (prev_hash !== (previous?.hash ?? null)) {
      return previous ? "'prev_hash' is not the hash of the previous event." : "the first event has a 'prev_hash'."
    }
    if (previous && seq !== previous.seq + 1) return `event ${previous.seq} is followed by event ${seq}.`
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
  'That every action was recorded: the chain shows that recorded events were not changed or removed.',
  'That the export is complete: events after its last one may exist, unless a trusted newer head was given.',
  'Who wrote the chain: its hashes are not signatures.',
]
