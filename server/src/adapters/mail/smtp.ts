import { createTransport } from 'nodemailer'
import type { Mailer } from '../../modules/governance/approvals/message-worker.ts'
import { within } from '../../platform/within.ts'

export type SmtpOptions = {
  /** `smtp://` or `smtps://`, with credentials. */
  url: string
  from: { name: string; address: string }
  timeoutMs?: number
}

const TIMEOUT_MS = 15_000

/** Sends mail through the operator's server, one connection a message, each step under a time-out. */
export function createSmtpMailer({ url, from, timeoutMs = TIMEOUT_MS }: SmtpOptions): Mailer {
  const { hostname, searchParams } = new URL(url)
  // Links and credentials do not cross a network in plain text unless the operator says so.
  const isLocal = ['localhost', '127.0.0.1', '[::1]'].includes(hostname)
  const mayBePlain = isLocal || searchParams.has('ignoreTLS') || searchParams.has('requireTLS')
  const transport = createTransport({
    url,
    ...(!mayBePlain && { requireTLS: true }),
    connectionTimeout: timeoutMs,
    greetingTimeout: timeoutMs,
    socketTimeout: timeoutMs,
    dnsTimeout: timeoutMs,
    disableFileAccess: true,
    disableUrlAccess: true,
  })
  const domain = from.address.slice(from.address.indexOf('@') + 1)

  return async ({ id, to, subject, text }) => {
    try {
      const sending = transport.sendMail({
        from,
        to,
        subject,
        text,
        // The same for every attempt, so that a mailbox can tell a repetition.
        messageId: `<${id}@${domain}>`,
        headers: { 'Auto-Submitted': 'auto-generated', 'X-Auto-Response-Suppress': 'All' },
      })
      // What the server does after the deadline no longer counts; its failure must not go unheard.
      sending.catch(() => {})
      await within(3 * timeoutMs, sending)
      return { ok: true, error: null }
    } catch (error) {
      return describeFailure(error as { code?: string; responseCode?: number })
    }
  }
}

/** As shown to the tenant: nothing about the operator's server but its answer code. */
function describeFailure({ code, responseCode }: { code?: string; responseCode?: number }) {
  if (code === 'EENVELOPE' && responseCode !== undefined && responseCode >= 500)
    return { ok: false, error: `the mail server refused the recipient (${responseCode})`, permanent: true }
  if (code === 'ETLS') return { ok: false, error: 'the mail server did not agree to encryption' }
  if (responseCode !== undefined) return { ok: false, error: `the mail server answered ${responseCode}` }
  if (code === 'ETIMEDOUT') return { ok: false, error: 'the mail server did not answer in time' }
  return { ok: false, error: `the mail server could not be reached (${code ?? 'unknown'})` }
}
