import { type Check, type Jwks, verifyAuditExport, verifyReceipt } from '@countersign/proof'
import type { ApiResponse } from '@countersign/sdk'

type AuditList = ApiResponse<'/api/audit', 'get'>
export type AuditEvent = AuditList['events'][number]
export type AuditCheckpoint = NonNullable<AuditList['checkpoint']>

export type ChainCheck = { ok: boolean; checks: Check[] }

/**
 * Recomputes the hash chain over the rows of a list, newest first. A filter leaves events out, so only then may numbers
 * be missing: the links are checked wherever two events follow each other.
 */
export function checkChain(rows: readonly AuditEvent[], isFiltered: boolean): Check[] {
  const events = [...rows].reverse()
  const spans = splitSpans(events)
  if (!isFiltered && spans.length > 1) {
    const [before, after] = [spans[0]!.at(-1)!.seq, spans[1]![0]!.seq]
    return [{ name: 'chain', ok: false, reason: `Event ${before} is followed by event ${after}.` }]
  }
  return spans.map((span) => checkSpan(span))
}

function checkSpan(span: readonly AuditEvent[]): Check {
  const [first, last] = [span[0]!, span.at(-1)!]
  const name = `events ${first.seq} to ${last.seq}`
  const after = first.seq > 1 ? { seq: first.seq - 1, hash: first.prev_hash ?? '' } : undefined
  const result = verifyAuditExport(
    span.map((event) => JSON.stringify(event)),
    after && { after },
  )
  if (result.ok) {
    const count = span.length === 1 ? 'Its hash is the hash of its contents' : 'Each has the hash of the one before'
    return { name: span.length === 1 ? `event ${first.seq}` : name, ok: true, reason: `${count}; none was changed.` }
  }
  const broken = span[(result.broken_at ?? 1) - 1]!
  const reason = result.checks.find(({ ok }) => ok === false)!.reason.replace(/^Line \d+: /, '')
  const holds = broken === first ? '' : ` The chain holds from event ${first.seq} to ${broken.seq - 1}.`
  return { name, ok: false, reason: `Event ${broken.seq}: ${reason}${holds}` }
}

/** Events that follow each other by number. */
function splitSpans(events: readonly AuditEvent[]): AuditEvent[][] {
  const spans: AuditEvent[][] = []
  for (const event of events) {
    const span = spans.at(-1)
    if (span && span.at(-1)!.seq + 1 === event.seq) span.push(event)
    else spans.push([event])
  }
  return spans
}

/** Whether the service's own head, and the one in the public log, are the events of the list. */
export function checkHeads(rows: readonly AuditEvent[], checkpoint: AuditCheckpoint, jwks: Jwks, now: Date): Check[] {
  const compare = (name: string, head: { seq: number; hash: string }, text: string): Check[] => {
    const event = rows.find(({ seq }) => seq === head.seq)
    if (!event) return []
    return [
      event.hash === head.hash
        ? { name, ok: true, reason: text }
        : {
            name,
            ok: false,
            reason: `Event ${head.seq} is another than the one of the head: the history was rewritten.`,
          },
    ]
  }
  const newest = compare('head', checkpoint, `Event ${checkpoint.seq} is the newest of the chain.`)
  const receipt = checkpoint.receipt as { audit?: { chain: string; seq: number; hash: string } } | null
  if (!receipt?.audit) {
    const reason = 'No head of this chain is in the public log yet; that happens within a minute.'
    return [...newest, { name: 'public log', ok: 'skipped', reason }]
  }
  const { ok } = verifyReceipt(receipt, { jwks, now, log: { required: true } })
  if (!ok || receipt.audit.chain !== checkpoint.chain)
    return [...newest, { name: 'public log', ok: false, reason: 'The receipt of the head does not verify.' }]
  const committed = compare(
    'public log',
    receipt.audit,
    `Event ${receipt.audit.seq} is in the public log: nobody can rewrite it or what is before it unseen.`,
  )
  const reason = `Event ${receipt.audit.seq} is in the public log; load older events to compare it.`
  return [...newest, ...(committed.length > 0 ? committed : [{ name: 'public log', ok: 'skipped' as const, reason }])]
}

export const holds = (checks: readonly Check[]) => checks.every(({ ok }) => ok !== false)
