import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { escapeHtml } from '../../../platform/html.ts'
import { type ApprovalRule, describeRuleSource } from './approval-content.ts'
import { formatTime, oneLine } from './message-text.ts'

/** What the page shows of an action that waits for a decision. */
export type ApprovalView = {
  approvalId: string
  organisation: string
  title: string
  amount: string
  merchant: string
  agent: string
  requestedBy: string
  requestedAt: Date
  expiresAt: Date
  rule: ApprovalRule
  /** What is known about the action besides, such as the market of a trade. */
  facts: readonly (readonly [name: string, value: string])[]
  /** Why each rule asks or warns. */
  reasons: readonly string[]
  normal: string | null
  next: string
  /** What is asked, as it was sent; null where it is not kept. */
  request: Record<string, unknown> | null
  votes: { given: number; required: number }
  reader: string
}

/** The end of an approval, for whoever comes late. */
export type EndedView = Pick<ApprovalView, 'approvalId' | 'organisation' | 'amount' | 'merchant' | 'agent'> & {
  heading: string
  text: string
}

// More than the body of a request can have, so that nothing that is approved stays hidden.
const MAX_REQUEST = 600_000
export const MAX_REASON = 500

const style = readFileSync(join(import.meta.dirname, '../../../../public/approve.css'), 'utf8')
const styleHash = createHash('sha256').update(style).digest('base64')

/** No script, no other origin, no frame, no cache, no trace in other sites' logs. */
export const pageHeaders = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': `default-src 'none'; style-src 'sha256-${styleHash}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`,
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-store',
  'x-robots-tag': 'noindex, nofollow',
  'x-frame-options': 'DENY',
  'cross-origin-opener-policy': 'same-origin',
}

/** A caller's text on one line, isolated so that its direction does not reorder what stands around it. */
const field = (text: string, max?: number) => `<bdi>${escapeHtml(oneLine(text, max))}</bdi>`

/** A caller's text with its lines: no other control characters, and none that reorder or hide text. */
const block = (text: string) => {
  const lines = text
    .slice(0, MAX_REQUEST)
    .split('\n')
    .map((line) => line.replaceAll('\t', '  '))
    .map((line) => `${/^ */.exec(line)![0]}${escapeHtml(oneLine(line, MAX_REQUEST))}`)
  return `${lines.join('\n')}${text.length > MAX_REQUEST ? '\n… (cut: the text is too long to be shown)' : ''}`
}

const time = (at: Date) => `<time datetime="${at.toISOString()}">${formatTime(at)}</time>`

const renderPage = (title: string, body: string, footer = '') => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex, nofollow">
<meta name="referrer" content="no-referrer">
<title>${escapeHtml(title)}</title>
<style>${style}</style>
</head>
<body>
<main>
${body}
</main>
${footer && `<footer>${footer}</footer>`}
</body>
</html>
`

/** For readers with an account: the same approval in the dashboard. */
const dashboardLink = (approvalId: string) =>
  `<a href="/dashboard#/account/approvals/${encodeURIComponent(approvalId)}">Open it in the dashboard</a>`

const row = (label: string, value: string) => `<dt>${label}</dt><dd>${value}</dd>`

/** The task apart from the other fields, so that its text cannot pass for one of them. */
function renderRequest({ task, ...fields }: Record<string, unknown>): string {
  const section = (heading: string, text: string) =>
    `<h2>${heading}</h2>\n<pre tabindex="0" aria-label="${heading}">${block(text)}</pre>\n`
  const isText = typeof task === 'string'
  const others = isText || task === undefined ? fields : { task, ...fields }
  return [
    isText ? section('The task', task) : '',
    Object.keys(others).length === 0
      ? ''
      : section(isText ? 'The rest of the request' : 'The request', JSON.stringify(others, null, 2)),
  ].join('')
}

export function renderDecision(view: ApprovalView, fault?: { message: string; reason: string }): string {
  const { votes } = view
  const ruleSource = describeRuleSource(view.rule)
  return renderPage(
    `Decision needed: ${oneLine(view.amount, 60)}`,
    `<p class="organisation">${field(view.organisation)} asks for your decision</p>
<h1>${escapeHtml(view.title)}</h1>
${fault ? `<div class="notice failed" role="alert"><p>${escapeHtml(fault.message)}</p></div>` : ''}
<p class="amount">${field(view.amount)}</p>
<dl>
${row('To', field(view.merchant))}
${row('Agent', field(view.agent))}
${view.facts.map(([name, value]) => row(escapeHtml(name), field(value))).join('\n')}
${row('Requested by', field(view.requestedBy))}
${row('Requested on', time(view.requestedAt))}
${row('Open until', time(view.expiresAt))}
${votes.required > 1 ? row('Approvals', `${votes.given} of ${votes.required} needed`) : ''}
</dl>
${view.request === null ? '' : renderRequest(view.request)}
<h2>Why you are asked</h2>
<p>${field(view.rule.sentence, 600)}</p>
${ruleSource === null ? '' : `<p class="hint">${field(ruleSource)}</p>`}
${view.reasons.length === 0 ? '' : `<ul>${view.reasons.map((reason) => `<li>${field(reason)}</li>`).join('')}</ul>`}
${view.normal === null ? '' : `<h2>What is normal</h2>\n<p>${field(view.normal)}</p>`}
<h2>What happens next</h2>
<p>${field(view.next, 600)}</p>
<form method="post">
<label for="reason">Reason</label>
<p class="hint" id="reason-hint">Optional, at most ${MAX_REASON} characters. It is recorded with your decision.</p>
<textarea id="reason" name="reason" maxlength="${MAX_REASON}" aria-describedby="reason-hint">${escapeHtml(fault?.reason ?? '')}</textarea>
<div class="buttons">
<button class="approve" name="decision" value="approve">Approve</button>
<button class="reject" name="decision" value="reject">Reject</button>
</div>
</form>`,
    `This link is for ${field(view.reader)} and takes one decision. Whoever has it can decide: do not forward it. With an account: ${dashboardLink(view.approvalId)}.`,
  )
}

export const renderEnded = (view: EndedView) =>
  renderPage(
    view.heading,
    `<p class="organisation">${field(view.organisation)}</p>
<h1>${escapeHtml(view.heading)}</h1>
<div class="notice" role="status"><p>${escapeHtml(view.text)}</p></div>
<h2>What it was about</h2>
<dl>
${row('Amount', field(view.amount))}
${row('To', field(view.merchant))}
${row('Agent', field(view.agent))}
</dl>`,
    `You can close this page. With an account: ${dashboardLink(view.approvalId)}.`,
  )

export const renderProblem = (heading: string, message: string) =>
  renderPage(
    heading,
    `<h1>${escapeHtml(heading)}</h1>
<div class="notice failed" role="alert"><p>${escapeHtml(message)}</p></div>`,
  )
