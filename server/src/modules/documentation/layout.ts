import { type Html, html } from '../../platform/html.ts'
import type { ApiDescription, Operation } from './api-description.ts'
import { type Guide, guidePath } from './guides.ts'
import { operationPath } from './search-index.ts'

export type Contents = { api: ApiDescription; guides: readonly Guide[] }

const SCRIPTS = ['docs', 'element', 'navigation', 'search', 'try-it']

export const methodLabel = (method: string, { short = false } = {}): Html =>
  html`<span class="method ${method}">${short && method === 'delete' ? 'DEL' : method.toUpperCase()}</span>`

const operationLink = ({ operationId, method, path, summary }: Operation, current: string) => {
  const url = operationPath(operationId)
  return html`<li><a href="${url}" title="${summary}"${url === current && html` aria-current="page"`}>${methodLabel(method, { short: true })} <span>${path}</span></a></li>\n`
}

const guideLink = ({ name, title }: Guide, current: string) => {
  const url = guidePath(name)
  return html`<li><a href="${url}"${url === current && html` aria-current="page"`}>${title}</a></li>\n`
}

const contents = ({ api, guides }: Contents, current: string) => html`
<p class="label" id="docs-guides">Guides</p>
<ul aria-labelledby="docs-guides">
${guides.map((guide) => guideLink(guide, current))}</ul>
<p class="label">API</p>
${api.groups.map(({ tag, operations }) => {
  const isCurrent = operations.some(({ operationId }) => operationPath(operationId) === current)
  return html`<details${isCurrent && html` open`}><summary>${tag}</summary><ul>
${operations.map((operation) => operationLink(operation, current))}</ul></details>
`
})}
<ul class="site-links" aria-label="Elsewhere"><li><a href="/dashboard">Dashboard</a></li><li><a href="/openapi.json">openapi.json</a></li></ul>`

/** A whole page. It reads well without its scripts, which add search, copying, and sending the call. */
export function renderPage(page: { path: string; title: string; main: Html }, all: Contents): string {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${page.title} · Countersign</title>
<link rel="icon" href="/docs/assets/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/docs/assets/docs.css">
${SCRIPTS.map((name) => html`<link rel="modulepreload" href="/docs/assets/${name}.js">\n`)}</head>
<body>
<a class="skip-link" href="#docs-content">Skip to content</a>
<header>
<a class="brand" href="/docs"><img src="/docs/assets/icon.svg" alt="" width="24" height="24">Countersign <span>docs</span></a>
<button type="button" class="secondary contents-button" popovertarget="docs-contents">Contents</button>
<form id="docs-search" role="search" hidden>
<label class="hidden-label" for="docs-query">Search calls, fields and guides</label>
<input id="docs-query" type="search" placeholder="Search" autocomplete="off" spellcheck="false" maxlength="100" aria-controls="docs-results">
<kbd aria-hidden="true">/</kbd>
<div id="docs-results" hidden></div>
</form>
<nav aria-label="Site"><a href="/dashboard">Dashboard</a> <a href="/openapi.json">openapi.json</a></nav>
</header>
<div class="columns">
<nav id="docs-contents" popover aria-label="Documentation">${contents(all, page.path)}</nav>
<main id="docs-content" tabindex="-1">
${page.main}
</main>
</div>
<p id="docs-announcement" class="hidden-label" role="status"></p>
<script type="module" src="/docs/assets/docs.js"></script>
</body>
</html>
`.markup
}
