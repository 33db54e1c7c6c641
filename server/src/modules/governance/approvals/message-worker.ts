import { randomBytes } from 'node:crypto'
import type { Clock } from '../../../platform/clock.ts'
import type { Db, Tx } from '../../../platform/db.ts'
import type { Keys } from '../../../platform/keys.ts'
import type { Log } from '../../../platform/log.ts'
import type { Message } from '../../webhooks/sign.ts'
import { createLinkToken, hashLinkToken } from './link-token.ts'
import { type ApprovalNotice, type MessageContent, toMail, toSlackMessage, toWebhookBody } from './message-text.ts'
import {
  type ApprovalDomain,
  type ClaimedMessage,
  claimMessages,
  finishMessage,
  insertLinks,
} from './messages.store.ts'

export type SendOutcome = {
  ok: boolean
  error: string | null
  /** The receiver has said that it will never take the message. */
  permanent?: boolean
}

export type Mail = { id: string; to: { name: string; address: string }; subject: string; text: string }
/** Sends one e-mail; it answers within a time-out and never throws. */
export type Mailer = (mail: Mail) => Promise<SendOutcome>

/** How messages leave the service; the composition root makes each with its own time-out. */
export type Senders = {
  /** Undefined without a mail server. */
  mail: Mailer | undefined
  slack(url: string, body: string, signal: AbortSignal): Promise<SendOutcome>
  webhook(url: string, message: Message, secret: string, signal: AbortSignal): Promise<SendOutcome>
}

export type MessageWorkerDeps = {
  db: Db
  clock: Clock
  keys: Pick<Keys, 'decrypt'>
  log: Pick<Log, 'warn'>
  senders: Senders
  publicUrl(): string
  /** A link ends with its approval, or after this many seconds when that is earlier. */
  linkSeconds: number | undefined
  findNotice(tx: Tx, tenantId: string, domain: ApprovalDomain, approvalId: string): Promise<ApprovalNotice | undefined>
}

const SECOND = 1_000
const MINUTE = 60 * SECOND
/** The delays between attempts; there is one attempt more than delays. */
const RETRY_DELAYS_MS = [5 * SECOND, 30 * SECOND, 2 * MINUTE, 10 * MINUTE, 30 * MINUTE]
/** Longer than any time-out of a sender, so that a message is not sent twice while an attempt is running. */
const LEASE_SECONDS = 120
const MAX_UNDER_WAY = 64
const MAX_UNDER_WAY_PER_TENANT = 4

type Attempt = { message: ClaimedMessage; content: MessageContent; notice: ApprovalNotice | undefined }

/**
 * Sends messages about approvals, at least once: the intent was written with the approval, an attempt is claimed for a time,
 * and its outcome is written afterwards. A process that dies in between leaves the claim, which ends.
 */
export function createMessageWorker(deps: MessageWorkerDeps) {
  const worker = randomBytes(12).toString('hex')
  const stopping = new AbortController()
  const running = new Set<Promise<void>>()
  const underWay = new Map<string, number>()
  let claiming: Promise<number> | undefined
  let claimAgain = false

  const claim = (): Promise<{ attempts: Attempt[]; dropped: { id: string; error: string }[] }> =>
    deps.db.transaction().execute(async (tx) => {
      const at = deps.clock.now()
      const messages = await claimMessages(tx, {
        at,
        leaseSeconds: LEASE_SECONDS,
        limit: MAX_UNDER_WAY - running.size,
        perTenant: MAX_UNDER_WAY_PER_TENANT,
        underWay: Object.fromEntries(underWay),
        worker,
      })
      const attempts: Attempt[] = []
      const dropped: { id: string; error: string }[] = []
      for (const message of messages) {
        const drop = (error: string) => void dropped.push({ id: message.id, error })
        if (!message.is_reachable) {
          drop('the channel or the recipient was removed or switched off')
          continue
        }
        const { approval_id } = message
        const common = { organisation: message.org_name, channel: message.channel_name }
        if (approval_id === null) {
          attempts.push({ message, content: { kind: 'test', ...common }, notice: undefined })
          continue
        }
        const notice = await deps.findNotice(tx, message.tenant_id, message.domain, approval_id)
        if (!notice?.isOpen || notice.expiresAt <= at) {
          drop('the approval was decided or had expired before the message was sent')
          continue
        }
        // The hash is stored before the token leaves, so that every link that arrives is known.
        const token = createLinkToken()
        const limit =
          deps.linkSeconds === undefined ? Number.POSITIVE_INFINITY : at.getTime() + deps.linkSeconds * SECOND
        await insertLinks(tx, [
          {
            hash: hashLinkToken(token),
            tenant_id: message.tenant_id,
            message_id: message.id,
            domain: message.domain,
            approval_id,
            action_hash: notice.actionHash,
            recipient_id: message.recipient_id,
            created_at: at,
            expires_at: new Date(Math.min(notice.expiresAt.getTime(), limit)),
          },
        ])
        const link = `${deps.publicUrl()}/approve/${token}`
        attempts.push({ message, content: { kind: 'approval', ...common, notice, link }, notice })
      }
      return { attempts, dropped }
    })

  const send = ({ message, content }: Attempt): Promise<SendOutcome> => {
    const { senders, keys } = deps
    if (message.type === 'email') {
      if (!senders.mail) return Promise.resolve({ ok: false, error: 'no mail server is configured' })
      const to = { name: message.recipient_name ?? '', address: message.email! }
      return senders.mail({ id: message.id, to, ...toMail(content) })
    }
    const url = keys.decrypt(message.url!)
    if (message.type === 'slack') return senders.slack(url, JSON.stringify(toSlackMessage(content)), stopping.signal)
    const signed = {
      id: message.id,
      timestamp: Math.floor(deps.clock.now().getTime() / 1000),
      body: toWebhookBody(content, message.created_at),
    }
    return senders.webhook(url, signed, keys.decrypt(message.secret!), stopping.signal)
  }

  const attemptMessage = async (attempt: Attempt) => {
    const { message, notice } = attempt
    const outcome = await send(attempt)
    const at = deps.clock.now()
    // A shutdown is not the receiver's failure: the message is due again at once, for the next process.
    const interrupted = stopping.signal.aborted && !outcome.ok
    const next = interrupted ? at : nextAttemptAt(message.attempts, outcome, notice, at)
    await finishMessage(deps.db, worker, {
      id: message.id,
      ok: outcome.ok,
      error: outcome.error,
      next_attempt_at: next,
      at,
    })
  }

  const start = (attempt: Attempt) => {
    const tenantId = attempt.message.tenant_id
    underWay.set(tenantId, (underWay.get(tenantId) ?? 0) + 1)
    const run = attemptMessage(attempt)
      .catch((error) => deps.log.warn({ err: error, message: attempt.message.id }, 'a message could not be finished'))
      .then(() => {
        const left = underWay.get(tenantId)! - 1
        if (left === 0) underWay.delete(tenantId)
        else underWay.set(tenantId, left)
        running.delete(run)
        if (!stopping.signal.aborted) deliverDue().catch(() => {})
      })
    running.add(run)
  }

  const claimRepeatedly = async () => {
    let started = 0
    while (claimAgain && !stopping.signal.aborted && running.size < MAX_UNDER_WAY) {
      claimAgain = false
      const { attempts, dropped } = await claim()
      for (const attempt of attempts) start(attempt)
      for (const { id, error } of dropped)
        await finishMessage(deps.db, worker, { id, ok: false, error, next_attempt_at: null, at: deps.clock.now() })
      started += attempts.length
    }
    return started
  }

  /** Starts what is due while there is room, without waiting for it. A finished attempt claims the next ones. */
  const deliverDue = (): Promise<number> => {
    claimAgain = true
    claiming ??= claimRepeatedly().finally(() => {
      claiming = undefined
    })
    return claiming
  }

  return {
    deliverDue,

    /** Waits until no attempt is running. */
    async idle() {
      while (claiming || running.size > 0) await Promise.allSettled([claiming, ...running])
    },

    async stop() {
      stopping.abort()
      await Promise.allSettled([claiming, ...running])
    },
  }
}

/** Null when there is no further attempt: they are used up, in vain, or the approval will have ended. */
function nextAttemptAt(
  attempts: number,
  outcome: SendOutcome,
  notice: ApprovalNotice | undefined,
  at: Date,
): Date | null {
  const delay = RETRY_DELAYS_MS[attempts - 1]
  if (outcome.ok || outcome.permanent || delay === undefined) return null
  const next = new Date(at.getTime() + delay)
  return notice && next >= notice.expiresAt ? null : next
}
