import type { TenantCaller } from '../../../platform/auth-context.ts'
import type { Clock } from '../../../platform/clock.ts'
import type { Db, Tx } from '../../../platform/db.ts'
import { conflict, expired, notFound, Problem } from '../../../platform/problem.ts'
import type { ApprovalView, EndedView } from './approval-page.ts'
import type { LinkVoter } from './approvals.ts'
import { maskEmail } from './channels.ts'
import { hashLinkToken, LINK_TOKEN } from './link-token.ts'
import { type ApprovalNotice, formatTime } from './message-text.ts'
import {
  type ApprovalDomain,
  type FoundLink,
  findLink,
  recipientsAtAddress,
  recipientVoterId,
  useLink,
} from './messages.store.ts'

export type LinkDecision = { decision: 'approve' | 'reject'; reason?: string }

/** An approval as a link shows and decides it; one for each domain. */
export type LinkedApproval = {
  status: 'pending' | 'approved' | 'rejected'
  resolution: 'approved' | 'rejected' | 'expired' | null
  actionHash: string
  resolvedAt: Date | null
  expiresAt: Date
  votes: readonly { voter: string; decision: string }[]
  view: Omit<ApprovalView, 'approvalId' | 'organisation' | 'reader' | 'votes'>
  required: number
}

export type ApprovalDecider = {
  /** With `market`, a trade says how far its price has moved, if its broker answers. */
  find(tenantId: string, approvalId: string, options?: { market: boolean }): Promise<LinkedApproval | undefined>
  decide(caller: TenantCaller, approvalId: string, input: LinkDecision, voter: LinkVoter): Promise<unknown>
}

/** Trades that wait for an approval; the brokerage implements it. */
export type LinkedTrades = ApprovalDecider & {
  findNotice(tx: Tx, tenantId: string, runId: string): Promise<ApprovalNotice | undefined>
}

export type ApprovalLinksDeps = {
  db: Db
  clock: Clock
  findDecider(domain: ApprovalDomain): ApprovalDecider
}

/** `status` is that of the answer. */
export type LinkPage =
  | { kind: 'open'; status: 200; view: ApprovalView }
  | { kind: 'ended'; status: 200 | 410; view: EndedView }

export type ApprovalLinks = ReturnType<typeof createApprovalLinks>

/** What a link in a message shows, and the one decision that it takes. Reading decides nothing. */
export function createApprovalLinks(deps: ApprovalLinksDeps) {
  /** A link that was never made, was tampered with, or whose channel or recipient is gone: the answer is the same. */
  const findOpenLink = async (token: string, options?: { market: boolean }) => {
    const link = LINK_TOKEN.test(token) ? await findLink(deps.db, hashLinkToken(token)) : undefined
    const isWithdrawn =
      !link || link.removed_at || link.deleted_at || !link.is_active || link.tenant_status !== 'active'
    if (isWithdrawn) throw notFound('link')
    const decider = deps.findDecider(link.domain as ApprovalDomain)
    const approval = await decider.find(link.tenant_id, link.approval_id, options)
    if (!approval || approval.actionHash !== link.action_hash) throw notFound('link')
    return { link, approval, decider }
  }

  const toPage = (link: FoundLink, approval: LinkedApproval, decidedNow: boolean): LinkPage => {
    const { organisation, reader, approvalId } = {
      organisation: link.org_name,
      reader: readerOf(link),
      approvalId: link.approval_id,
    }
    const voter = recipientVoterId(link.recipient_id)
    const ownVote = approval.votes.find((vote) => vote.voter === voter)
    const ended = describeEnd(link, approval, ownVote?.decision, deps.clock.now())
    if (!ended) {
      const votes = {
        given: approval.votes.filter((vote) => vote.decision === 'approve').length,
        required: approval.required,
      }
      return { kind: 'open', status: 200, view: { ...approval.view, approvalId, organisation, reader, votes } }
    }
    const { amount, merchant, agent } = approval.view
    return {
      kind: 'ended',
      status: decidedNow ? 200 : 410,
      view: { approvalId, organisation, amount, merchant, agent, ...ended },
    }
  }

  return {
    async show(token: string): Promise<LinkPage> {
      const { link, approval } = await findOpenLink(token, { market: true })
      return toPage(link, approval, false)
    },

    async decide(token: string, input: LinkDecision): Promise<LinkPage> {
      const { link, approval, decider } = await findOpenLink(token)
      const now = deps.clock.now()
      if (approval.resolution === 'expired') throw expired('This link has expired; nothing was decided.')
      if (approval.status !== 'pending') throw conflict(`This approval is already resolved: ${approval.resolution}.`)
      if (link.used_at !== null) throw conflict('This link was used; it takes one decision.')
      if (link.expires_at <= now || approval.expiresAt <= now)
        throw expired('This link has expired; nothing was decided.')
      await decider.decide(callerFor(link), link.approval_id, input, toVoter(link, now))
      const after = await decider.find(link.tenant_id, link.approval_id)
      return toPage(link, after!, true)
    },
  }
}

/** A recipient decides as the identity that added it. */
const callerFor = (link: FoundLink): TenantCaller => ({
  kind: 'tenant',
  tenantId: link.tenant_id,
  keyId: link.added_by,
  scopes: ['control'],
  spender: null,
  team: null,
  mandateIds: null,
  auth: 'key',
})

const toVoter = (link: FoundLink, at: Date): LinkVoter => ({
  id: recipientVoterId(link.recipient_id),
  audit: {
    channel_id: link.channel_id,
    channel_type: link.channel_type,
    recipient_id: link.recipient_id,
    ...(link.email !== null && { recipient: maskEmail(link.email) }),
  },
  sameVoters: (tx) => recipientsAtAddress(tx, link.tenant_id, link.address_hash),
  async use(tx) {
    // In the transaction of the vote: of two requests with one link, one decides.
    if (!(await useLink(tx, link.hash, link.action_hash, at)))
      throw conflict('This link was used or withdrawn meanwhile; nothing was decided.')
  },
})

const readerOf = (link: FoundLink) =>
  link.email === null
    ? `the channel '${link.channel_name}'`
    : link.recipient_name
      ? `${link.recipient_name} (${maskEmail(link.email)})`
      : maskEmail(link.email)

/** Undefined while the link can still decide. */
function describeEnd(
  link: FoundLink,
  approval: LinkedApproval,
  ownDecision: string | undefined,
  now: Date,
): { heading: string; text: string } | undefined {
  const at = approval.resolvedAt ? ` on ${formatTime(approval.resolvedAt)}` : ''
  const who = ownDecision ? 'You decided this.' : 'Somebody else decided this; your link no longer works.'
  if (approval.resolution === 'approved') return { heading: 'Approved', text: `This was approved${at}. ${who}` }
  if (approval.resolution === 'rejected') return { heading: 'Rejected', text: `This was rejected${at}. ${who}` }
  if (approval.resolution === 'expired' || approval.expiresAt <= now)
    return {
      heading: 'Expired',
      text: `Nobody decided before ${formatTime(approval.expiresAt)}, so this was not approved.`,
    }
  if (ownDecision || link.used_at !== null)
    return {
      heading: 'Your approval is recorded',
      text: `${approval.required} approvals are needed; others still have to decide.`,
    }
  if (link.expires_at <= now)
    return { heading: 'This link has expired', text: 'The approval still waits; decide it another way.' }
  return undefined
}

/** The page's words for a refused decision. */
export function describeRefusal(error: unknown): { status: number; heading: string; message: string } {
  const problem = error instanceof Problem ? error : undefined
  const status = problem?.options.status ?? 500
  const message = problem?.message ?? 'An internal error occurred; nothing was decided.'
  if (status === 404)
    return {
      status,
      heading: 'This link does not work',
      message: 'It is not complete, or it was withdrawn. Check that you opened the whole link of the message.',
    }
  if (status === 403)
    return {
      status,
      heading: 'You cannot decide this',
      message:
        'The request comes from the key that added you as a recipient, or from the same identity, and nobody decides their own request. Somebody else has to decide.',
    }
  if (status === 409) return { status, heading: 'Nothing was changed', message }
  if (status === 410) return { status, heading: 'This link has expired', message }
  if (status === 429)
    return { status, heading: 'Too many requests', message: 'Nothing was decided. Wait a minute and try again.' }
  if (status === 503)
    return {
      status,
      heading: 'Not available at the moment',
      message: 'Nothing was decided. Wait a minute, then open the link again.',
    }
  if (status === 400 || status === 413 || status === 415)
    return { status, heading: 'Nothing was decided', message: 'The form was not complete. Open the link again.' }
  return { status, heading: 'Something went wrong', message: 'Open the link again to see whether it was decided.' }
}
