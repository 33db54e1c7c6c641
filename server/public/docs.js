// Renders /openapi.json as a page. Everything from the description goes in as text, never as markup.

import { el, prose } from '/docs/element.js'
import { answerType, fields, parameters } from '/docs/schema.js'

const methods = ['get', 'post', 'put', 'patch', 'delete']
const successes = { 200: 'Success.', 201: 'Created.', 202: 'Accepted.' }
const byId = (id) => document.getElementById(id)

function wayIn(scheme) {
  if (scheme?.scheme === 'bearer') return 'the header Authorization: Bearer'
  return scheme?.in === 'cookie' ? 'the session cookie' : `the header ${scheme?.name}`
}

/** What a caller must bring: the header or cookie of each way in. */
function credentialsOf(op, schemes) {
  const ways = (op.security ?? []).map((way) => Object.keys(way))
  if (ways.length === 0) return 'No credential.'
  const names = ways
    .flat()
    .map((name) => schemes[name])
    .map(wayIn)
  const optional = ways.some((way) => way.length === 0)
  return `${optional ? 'Optional' : 'Needs'}: ${names.join(', or ')}.`
}

/** What is inside is built when it is first opened: most of it never is. */
function folded(summary, build) {
  const node = el('details', {}, el('summary', {}, ...summary))
  node.addEventListener('toggle', () => node.childElementCount === 1 && node.append(build()), { once: true })
  return node
}

/** A schema told once and named in many places. */
const told = (schema, schemas) => schemas[schema?.$ref?.split('/').at(-1)] ?? schema

function answer([status, response], schemas) {
  const [type, content] = Object.entries(response.content ?? {})[0] ?? []
  const plain = response.description === 'Default Response' || !response.description
  const words = plain ? (successes[status] ?? '') : response.description
  const summary = [el('code', { textContent: status }), ' ', ...prose(`${words}${answerType(type)}`)]
  return content?.schema
    ? folded(summary, () => fields(told(content.schema, schemas)))
    : el('p', { className: 'answer' }, ...summary)
}

function operation({ path, method, op }, { schemes, schemas }) {
  const bodySchema = op.requestBody?.content?.['application/json']?.schema
  const link = el('a', { href: `#${op.operationId}`, title: 'A link to this endpoint' }, ` ${path}`)
  return el(
    'article',
    { id: op.operationId },
    el('h3', {}, el('span', { className: `method ${method}`, textContent: method.toUpperCase() }), link),
    el('p', { textContent: op.summary ?? '' }),
    op.description && el('p', { className: 'soft' }, ...prose(op.description)),
    el('p', { className: 'soft', textContent: credentialsOf(op, schemes) }),
    op.parameters?.length > 0 && el('h4', { textContent: 'Parameters' }),
    op.parameters?.length > 0 && parameters(op.parameters),
    bodySchema && el('h4', { textContent: 'Body' }),
    bodySchema && fields(bodySchema),
    el('h4', { textContent: 'Answers' }),
    ...Object.entries(op.responses ?? {}).map((one) => answer(one, schemas)),
  )
}

/** Groups stand in the order in which they first appear in the description. */
function groupByTag(operations) {
  const groups = new Map()
  for (const one of operations) {
    const tag = one.op.tags?.[0] ?? 'Other'
    groups.set(tag, [...(groups.get(tag) ?? []), one])
  }
  return [...groups]
}

function indexGroup([tag, list]) {
  const links = list.map(({ path, method, op }) =>
    el('a', { href: `#${op.operationId}`, title: op.summary ?? '' }, `${method.toUpperCase()} ${path}`),
  )
  return [el('h2', { textContent: tag }), ...links]
}

/** Finds what was asked for, and keeps what was already built: typing only shows and hides. */
function filterBy(word, articles) {
  const words = word.trim().toLowerCase().split(/\s+/)
  let shown = 0
  for (const { text, article, link } of articles) {
    const hidden = !words.every((one) => text.includes(one))
    article.hidden = hidden
    link.hidden = hidden
    if (!hidden) shown += 1
  }
  for (const section of document.querySelectorAll('main > section'))
    section.hidden = !section.querySelector('article:not([hidden])')
  byId('count').textContent = `${shown} of ${articles.length} endpoints`
}

async function show() {
  const response = await fetch('/openapi.json')
  if (!response.ok) throw new Error(`The description could not be read: the service answered ${response.status}.`)
  const description = await response.json()
  const { info, openapi, components, paths } = description
  const shared = { schemes: components?.securitySchemes ?? {}, schemas: components?.schemas ?? {} }
  byId('about').textContent = `${info.description} Version ${info.version}, OpenAPI ${openapi}.`
  const groups = groupByTag(
    Object.entries(paths).flatMap(([path, item]) =>
      methods.filter((method) => item[method]).map((method) => ({ path, method, op: item[method] })),
    ),
  )
  byId('index').replaceChildren(...groups.flatMap(indexGroup))
  byId('operations').replaceChildren(
    ...groups.map(([tag, list]) =>
      el('section', {}, el('h2', { textContent: tag }), ...list.map((one) => operation(one, shared))),
    ),
  )
  const links = [...byId('index').querySelectorAll('a')]
  const articles = groups
    .flatMap(([tag, list]) => list.map((one) => ({ tag, ...one })))
    .map(({ tag, path, method, op }, nth) => ({
      text: `${method} ${path} ${op.operationId} ${op.summary ?? ''} ${tag}`.toLowerCase(),
      article: byId(op.operationId),
      link: links[nth],
    }))
  const filter = byId('filter')
  filter.addEventListener('input', () => filterBy(filter.value, articles))
  filterBy(filter.value, articles)
  // The address was followed before there was anything to go to.
  if (location.hash) byId(decodeURIComponent(location.hash.slice(1)))?.scrollIntoView()
}

byId('contents').open = matchMedia('(min-width: 801px)').matches
try {
  await show()
} catch (error) {
  byId('operations').replaceChildren(el('p', { className: 'bad', role: 'alert', textContent: error.message }))
}
