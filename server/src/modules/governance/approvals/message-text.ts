/** What a message about an approval says. The request itself is not in it: only the page behind the link shows that. */
export type ApprovalNotice = {
  approvalId: string
  actionHash: string
  /** Whether a decision is still possible. */
  isOpen: boolean
  amount: string
  agent: string
  merchant: string
  /** The address that is paid and the host of the merchant's URL, where the request names them. */
  payTo: string | null
  host: string | null
  /** The sentence of the rule that asks. */
  sentence: string
  expiresAt: Date
}

export type MessageContent =
  | { kind: 'test'; organisation: string; channel: string }
  | { kind: 'approval'; organisation: string; channel: string; notice: ApprovalNotice; link: string }

const MAX_FIELD = 300
const MAX_SUBJECT_FIELD = 60

// Control characters end lines and headers; the others change the direction of text or hide it.
const UNPRINTABLE = /[\p{Cc}\u2028\u2029\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]+/gu

/** One line of at most so many characters that shows what it contains. */
export function oneLine(text: string, max = MAX_FIELD): string {
  const line = text.toWellFormed().replace(UNPRINTABLE, ' ').trim()
  return line.length <= max ? line : `${line.slice(0, max - 1).toWellFormed()}…`
}

export const formatTime = (at: Date) =>
  `${at.toLocaleDateString('en-GB', { day: 'numeric', month: 'long', year: 'numeric', timeZone: 'UTC' })}, ${at.toISOString().slice(11, 16)} UTC`

const fieldsOf = (notice: ApprovalNotice): [label: string, value: string][] => [
  ['Amount', oneLine(notice.amount)],
  ['Merchant', oneLine(notice.merchant)],
  ...(notice.host === null ? [] : [['Website', oneLine(notice.host)] as [string, string]]),
  ...(notice.payTo === null ? [] : [['Pays to', oneLine(notice.payTo)] as [string, string]]),
  ['Agent', oneLine(notice.agent)],
  ['Rule', oneLine(notice.sentence)],
  ['Open until', formatTime(notice.expiresAt)],
]

const LINK_NOTE =
  'The link is for you alone and takes one decision. Opening it decides nothing. Do not forward it: whoever has it can decide.'

export function toMail(content: MessageContent): { subject: string; text: string } {
  const organisation = oneLine(content.organisation, MAX_SUBJECT_FIELD)
  const footer = `You get this message because ${organisation} added this address to the approval channel '${oneLine(content.channel)}'.`
  if (content.kind === 'test')
    return {
      subject: `A test message from ${organisation}`,
      text: `This is a test of the approval channel '${oneLine(content.channel)}': messages arrive.\n\n${footer}\n`,
    }
  const { notice, link } = content
  const short = (text: string) => oneLine(text, MAX_SUBJECT_FIELD)
  const lines = fieldsOf(notice).map(([label, value]) => `${`${label}:`.padEnd(12)}${value}`)
  return {
    subject: `Approval needed: ${short(notice.amount)} to ${short(notice.merchant)}, by ${short(notice.agent)}`,
    text: `${organisation} asks for your decision.\n\n${lines.join('\n')}\n\nRead the request, then approve or reject it:\n${link}\n\n${LINK_NOTE}\n\n${footer}\n`,
  }
}

/** Text of Slack in which `<`, `>` and `&` are only characters, so that no field can mention a channel or hide a link. */
const escapeSlack = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

/** `text` is complete without `blocks`: services that imitate Slack may know only the first. */
export function toSlackMessage(content: MessageContent): object {
  const organisation = escapeSlack(oneLine(content.organisation, MAX_SUBJECT_FIELD))
  if (content.kind === 'test') {
    const text = `A test message from ${organisation}: messages about approvals arrive here.`
    return { text, blocks: [{ type: 'section', text: { type: 'mrkdwn', text } }] }
  }
  const { notice, link } = content
  const fields = fieldsOf(notice)
  const decide = `<${link}|Read the request and decide>`
  return {
    text: [
      `${organisation} asks for a decision.`,
      ...fields.map(([label, value]) => `${label}: ${escapeSlack(value)}`),
      decide,
    ].join('\n'),
    unfurl_links: false,
    unfurl_media: false,
    blocks: [
      { type: 'header', text: { type: 'plain_text', text: 'Approval needed', emoji: false } },
      { type: 'section', text: { type: 'plain_text', text: `${oneLine(content.organisation)} asks for a decision.` } },
      {
        type: 'section',
        fields: fields.map(([label, value]) => ({
          type: 'plain_text',
          text: `${label}: ${value}`,
          emoji: false,
        })),
      },
      { type: 'section', text: { type: 'mrkdwn', text: decide } },
      { type: 'context', elements: [{ type: 'plain_text', text: LINK_NOTE, emoji: false }] },
    ],
  }
}

/** The body of a signed webhook, with the same fields as other webhooks. */
export function toWebhookBody(content: MessageContent, createdAt: Date): string {
  const timestamp = createdAt.toISOString()
  if (content.kind === 'test')
    return JSON.stringify({ type: 'approval.test', timestamp, data: { channel: content.channel } })
  const { notice, link } = content
  return JSON.stringify({
    type: 'approval.requested',
    timestamp,
    data: {
      approval_id: notice.approvalId,
      action_hash: notice.actionHash,
      amount: notice.amount,
      merchant: notice.merchant,
      pay_to: notice.payTo,
      host: notice.host,
      agent: notice.agent,
      rule: notice.sentence,
      url: link,
      expires_at: notice.expiresAt.toISOString(),
    },
  })
}
