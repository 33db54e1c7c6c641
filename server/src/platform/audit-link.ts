import { Type } from 'typebox'
import { Problem } from './problem.ts'

/** The place of an audit event in the hash chain of its tenant. */
export type AuditLink = { event_id: string; seq: number; hash: string }

/** Waits until an event stands in the chain of its tenant; undefined when that takes too long. */
export type AwaitAudit = (tenantId: string, eventId: string) => Promise<AuditLink | undefined>

export const AuditLinkSchema = Type.Object(
  { event_id: Type.String(), seq: Type.Integer(), hash: Type.String() },
  {
    title: 'AuditLink',
    description: 'Where a policy has audit_trail_required: the event of this answer in the audit chain of the tenant.',
  },
)

// An answer is stored before its event has a place in the chain, with the id of the event as its last member.
const PENDING = /,"audit":\{"event_id":"(aud_[\w-]{1,64})"\}\}$/

/** The event that a stored answer names without its place. */
export const pendingAuditId = (body: string): string | undefined => PENDING.exec(body)?.[1]

/** An event never changes its place, so the same stored answer becomes the same text every time. */
export const withAuditLink = (body: string, link: AuditLink): string =>
  body.replace(PENDING, () => `,"audit":${JSON.stringify(link)}}`)

/**
 * What was asked is done and its answer stored, but its event is not in the chain yet. Only a request that brings its
 * payment or an idempotency key may be repeated: any other would be done again.
 */
export const auditPending = (subject: Record<string, unknown>, location: string, isRepeatable: boolean) =>
  new Problem('error', 'This is done, but its audit event is not in the chain yet.', {
    status: 503,
    code: 'unavailable',
    retryable: isRepeatable,
    ...(isRepeatable && { retryAfterSeconds: 2 }),
    nextAction: isRepeatable
      ? `Send the same request again, or read ${location}.`
      : `Do not send it again, it would be done twice. Read ${location}.`,
    extra: subject,
  })
