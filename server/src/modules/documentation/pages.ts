import { type Html, html } from '../../platform/html.ts'
import type { SampleOptions } from './code-samples.ts'
import { type Guide, guidePath } from './guides.ts'
import { type Contents, methodLabel, renderPage } from './layout.ts'
import { renderInline } from './markdown.ts'
import { operationPage } from './operation-page.ts'
import { operationPath } from './search-index.ts'

/** What to read first: an operation, and what it is for. */
const FIRST_CALLS: { operationId: string; text: string }[] = [
  { operationId: 'getPricing', text: 'See what is offered and what it costs. Free, without a key.' },
  { operationId: 'route', text: 'Ask which lane fits a task, and get a signed quote. Free.' },
  { operationId: 'run', text: 'Send a task and an idempotency key; pay the 402 with any x402 client.' },
  { operationId: 'getReceipt', text: 'Read the signed receipt, which anybody can verify offline.' },
  { operationId: 'onboard', text: 'Get an API key for budgets, policies, wallets and webhooks of your own.' },
]

export function indexPage(contents: Contents): string {
  const { api, guides } = contents
  const { info } = api.document
  const first = FIRST_CALLS.flatMap(({ operationId, text }) => {
    const operation = api.operations.find((candidate) => candidate.operationId === operationId)
    return operation ? [{ ...operation, text }] : []
  })
  const main = html`<h1>Countersign documentation</h1>
<p class="lead">${info.description}</p>
<p class="muted">Version ${info.version}. Machines read <a href="/openapi.json">openapi.json</a>, <a href="/llms.txt">llms.txt</a> and <a href="/.well-known/x402">/.well-known/x402</a>.</p>
<h2 id="start">Start</h2>
<ol class="steps">
${first.map(({ operationId, method, path, text }) => html`<li><a href="${operationPath(operationId)}">${methodLabel(method)} <code>${path}</code></a> ${text}</li>\n`)}</ol>
<h2 id="errors">Errors</h2>
<p>Every error is JSON with <code>error</code> and <code>message</code>, and most have <code>next_action</code> and <code>retryable</code>. After a 503 send the same payment again and never sign another; a 429 without <code>Retry-After</code> is a rule of yours that refused, and names it.</p>
<h2 id="guides">Guides</h2>
<ul class="guide-list">
${guides.map(guideEntry)}</ul>
<h2 id="api">API</h2>
${api.groups.map(
  ({
    tag,
    description,
    operations,
  }) => html`<section aria-labelledby="tag-${slug(tag)}"><h3 id="tag-${slug(tag)}">${tag}</h3>
<p class="muted">${renderInline(description)}</p>
<ul class="operation-list">
${operations.map(({ operationId, method, path, summary }) => html`<li id="${operationId}"><a href="${operationPath(operationId)}">${methodLabel(method)} <code>${path}</code></a> <span>${summary}</span></li>\n`)}</ul></section>
`,
)}`
  return renderPage({ path: '/docs', title: 'Documentation', main }, contents)
}

const slug = (tag: string) => tag.toLowerCase().replaceAll(' ', '-')

const guideEntry = ({ name, title, summary }: Guide): Html =>
  html`<li><a href="${guidePath(name)}">${title}</a> <span class="muted">(<a href="${guidePath(name)}.md" aria-label="${title} as Markdown">Markdown</a>)</span><p>${summary}</p></li>\n`

export function operationDocument(operationId: string, contents: Contents, options: SampleOptions): string | undefined {
  const operation = contents.api.operations.find((candidate) => candidate.operationId === operationId)
  if (!operation) return undefined
  const main = operationPage(operation, contents.api, options)
  return renderPage({ path: operationPath(operationId), title: operation.summary ?? operationId, main }, contents)
}

export function guideDocument(guide: Guide, contents: Contents): string {
  const sections = guide.sections.filter(({ level }) => level === 2)
  const outline =
    sections.length > 2 &&
    html`<nav class="outline" aria-label="On this page"><p class="label">On this page</p><ul>${sections.map(({ id, heading }) => html`<li><a href="#${id}">${heading}</a></li>`)}</ul></nav>`
  const main = html`<div class="guide">${outline}<article class="prose">${guide.body}
<p class="muted"><a href="${guidePath(guide.name)}.md">This guide as Markdown</a></p></article></div>`
  return renderPage({ path: guidePath(guide.name), title: guide.title, main }, contents)
}

export function notFoundPage(contents: Contents): string {
  const main = html`<h1>There is no such page</h1>
<p>No call or guide has this address. The <a href="/docs">overview</a> lists all of them.</p>`
  return renderPage({ path: '', title: 'Not found', main }, contents)
}
