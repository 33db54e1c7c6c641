// Renders /openapi.json as a page. Its contents are inserted as text, never as markup.

import { el, prose } from '/docs/element.js'
import { formatContentType, renderFields, renderParameters, setComponents } from '/docs/schema.js'

const methods = ['get', 'post', 'put', 'patch', 'delete']
const successDescriptions = { 200: 'Success.', 201: 'Created.', 202: 'Accepted.' }
const byId = (id) => document.getElementById(id)

function describeScheme(scheme) {
  if (scheme?.scheme === 'bearer') return 'the header Authorization: Bearer'
  return scheme?.in === 'cookie' ? 'the session cookie' : `the header ${scheme?.name}`
}

/** The header or cookie of each way to authenticate. */
function describeCredentials(op, schemes) {
  const alternatives = (op.security ?? []).map((requirement) => Object.keys(requirement))
  if (alternatives.length === 0) return 'No credential.'
  const names = alternatives
    .flat()
    .map((name) => schemes[name])
    .map(describeScheme)
  const optional = alternatives.some((requirement) => requirement.length === 0)
  return `${optional ? 'Optional' : 'Required'}: ${names.join(', or ')}.`
}

/** A details element whose contents are built when it is first opened, because most never are. */
function lazyDetails(summary, build) {
  const node = el('details', {}, el('summary', {}, ...summary))
  node.addEventListener('toggle', () => node.childElementCount === 1 && node.append(build()), { once: true })
  return node
}

function renderResponse([status, response]) {
  const [type, content] = Object.entries(response.content ?? {})[0] ?? []
  const hasNoDescription = response.description === 'Default Response' || !response.description
  const description = hasNoDescription ? (successDescriptions[status] ?? '') : response.description
  const summary = [el('code', { textContent: status }), ' ', ...prose(`${description}${formatContentType(type)}`)]
  return content?.schema
    ? lazyDetails(summary, () => renderFields(content.schema))
    : el('p', { className: 'response' }, ...summary)
}

function renderOperation({ path, method, op }, schemes) {
  const bodySchema = op.requestBody?.content?.['application/json']?.schema
  const link = el('a', { href: `#${op.operationId}`, title: 'Link to this endpoint' }, ` ${path}`)
  return el(
    'article',
    { id: op.operationId },
    el('h3', {}, el('span', { className: `method ${method}`, textContent: method.toUpperCase() }), link),
    el('p', { textContent: op.summary ?? '' }),
    op.description && el('p', { className: 'muted' }, ...prose(op.description)),
    el('p', { className: 'muted', textContent: describeCredentials(op, schemes) }),
    op.parameters?.length > 0 && el('h4', { textContent: 'Parameters' }),
    op.parameters?.length > 0 && renderParameters(op.parameters),
    bodySchema && el('h4', { textContent: 'Body' }),
    bodySchema && renderFields(bodySchema),
    el('h4', { textContent: 'Responses' }),
    ...Object.entries(op.responses ?? {}).map(renderResponse),
  )
}

/** Groups are in the order of their first operation in openapi.json. */
function groupByTag(operations) {
  const groups = new Map()
  for (const operation of operations) {
    const tag = operation.op.tags?.[0] ?? 'Other'
    groups.set(tag, [...(groups.get(tag) ?? []), operation])
  }
  return [...groups]
}

function renderIndexGroup([tag, operations]) {
  const links = operations.map(({ path, method, op }) =>
    el('a', { href: `#${op.operationId}`, title: op.summary ?? '' }, `${method.toUpperCase()} ${path}`),
  )
  return [el('h2', { textContent: tag }), ...links]
}

/** Shows the endpoints that contain every word. Hiding instead of rebuilding keeps opened details. */
function filterArticles(query, articles) {
  const words = query.trim().toLowerCase().split(/\s+/)
  let visibleCount = 0
  for (const { text, article, link } of articles) {
    const hidden = !words.every((word) => text.includes(word))
    article.hidden = hidden
    link.hidden = hidden
    if (!hidden) visibleCount += 1
  }
  for (const section of document.querySelectorAll('main > section'))
    section.hidden = !section.querySelector('article:not([hidden])')
  byId('count').textContent = `${visibleCount} of ${articles.length} endpoints`
}

async function renderPage() {
  const response = await fetch('/openapi.json')
  if (!response.ok) throw new Error(`Could not load openapi.json: the service responded ${response.status}.`)
  const { info, openapi, components, paths } = await response.json()
  const schemes = components?.securitySchemes ?? {}
  setComponents(components?.schemas ?? {})
  byId('about').textContent = `${info.description} Version ${info.version}, OpenAPI ${openapi}.`
  const groups = groupByTag(
    Object.entries(paths).flatMap(([path, item]) =>
      methods.filter((method) => item[method]).map((method) => ({ path, method, op: item[method] })),
    ),
  )
  byId('index').replaceChildren(...groups.flatMap(renderIndexGroup))
  byId('operations').replaceChildren(
    ...groups.map(([tag, operations]) =>
      el('section', {}, el('h2', { textContent: tag }), ...operations.map((entry) => renderOperation(entry, schemes))),
    ),
  )
  const links = [...byId('index').querySelectorAll('a')]
  const articles = groups
    .flatMap(([tag, operations]) => operations.map((operation) => ({ tag, ...operation })))
    .map(({ tag, path, method, op }, index) => ({
      text: `${method} ${path} ${op.operationId} ${op.summary ?? ''} ${tag}`.toLowerCase(),
      article: byId(op.operationId),
      link: links[index],
    }))
  const filter = byId('filter')
  filter.addEventListener('input', () => filterArticles(filter.value, articles))
  filterArticles(filter.value, articles)
  // The browser followed the hash before the page was rendered.
  if (location.hash) byId(decodeURIComponent(location.hash.slice(1)))?.scrollIntoView()
}

byId('contents').open = matchMedia('(min-width: 801px)').matches
try {
  await renderPage()
} catch (error) {
  byId('operations').replaceChildren(el('p', { className: 'error', role: 'alert', textContent: error.message }))
}
