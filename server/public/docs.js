// Renders /openapi.json as a page. Everything from the description goes in as text, never as markup.
const el = (tag, props = {}, ...children) => {
  const node = Object.assign(document.createElement(tag), props)
  node.append(...children.filter((child) => child !== undefined && child !== null))
  return node
}

const methods = ['get', 'post', 'put', 'patch', 'delete']

const typeOf = (schema) => {
  if (!schema || typeof schema !== 'object') return 'anything'
  if ('const' in schema) return JSON.stringify(schema.const)
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(' | ')
  const parts = schema.anyOf ?? schema.oneOf
  if (parts) return [...new Set(parts.map(typeOf))].join(' | ')
  if (schema.allOf) return 'object'
  if (schema.type === 'array') return `${typeOf(schema.items)}[]`
  return [schema.type].flat().filter(Boolean).join(' | ') || 'anything'
}

const limitsOf = (schema) => {
  const named = {
    minimum: '≥',
    maximum: '≤',
    exclusiveMinimum: '>',
    minLength: 'length ≥',
    maxLength: 'length ≤',
    maxItems: 'items ≤',
    pattern: 'matches',
    format: 'format',
  }
  return Object.entries(named)
    .filter(([key]) => schema?.[key] !== undefined)
    .map(([key, word]) => `${word} ${schema[key]}`)
    .join(', ')
}

const merged = (schema) => {
  if (!schema?.allOf) return schema
  const parts = schema.allOf.map(merged)
  return {
    type: 'object',
    properties: Object.assign({}, ...parts.map((part) => part.properties)),
    required: parts.flatMap((part) => part.required ?? []),
  }
}

function fields(given) {
  const schema = merged(given)
  const rows = Object.entries(schema?.properties ?? {}).map(([name, property]) => {
    const nested = merged(property?.type === 'array' ? property.items : property)
    const inside = nested?.properties
      ? el('details', {}, el('summary', { className: 'soft', textContent: 'fields' }), fields(nested))
      : undefined
    const note = [limitsOf(property), property?.description].filter(Boolean).join('. ')
    return el(
      'tr',
      {},
      el('td', {}, el('code', { textContent: name })),
      el('td', { textContent: typeOf(property) }),
      el('td', { textContent: schema.required?.includes(name) ? 'required' : '' }),
      el('td', {}, note, inside),
    )
  })
  return rows.length > 0
    ? el('table', {}, el('tbody', {}, ...rows))
    : el('p', { className: 'soft', textContent: schema?.description ?? typeOf(schema) })
}

function parameters(list = []) {
  if (list.length === 0) return undefined
  const rows = list.map(({ name, in: where, required, schema, description }) =>
    el(
      'tr',
      {},
      el('td', {}, el('code', { textContent: name })),
      el('td', { textContent: `${where}, ${typeOf(schema)}` }),
      el('td', { textContent: required ? 'required' : '' }),
      el('td', { textContent: [limitsOf(schema), description].filter(Boolean).join('. ') }),
    ),
  )
  return el('table', {}, el('tbody', {}, ...rows))
}

function operation(path, method, op) {
  const bodySchema = op.requestBody?.content?.['application/json']?.schema
  const credentials = (op.security ?? []).flatMap((one) => Object.keys(one)).join(' or ')
  const answers = Object.entries(op.responses ?? {}).map(([status, response]) => {
    const schema = response.content?.['application/json']?.schema
    return el(
      'details',
      {},
      el(
        'summary',
        {},
        el('code', { textContent: status }),
        ` ${response.description === 'Default Response' ? '' : (response.description ?? '')}`,
      ),
      schema ? fields(schema) : undefined,
    )
  })
  return el(
    'article',
    { id: op.operationId },
    el('h3', {}, el('span', { className: 'method', textContent: method.toUpperCase() }), ` ${path}`),
    el('p', { textContent: op.summary ?? '' }),
    op.description ? el('p', { className: 'soft', textContent: op.description }) : undefined,
    credentials
      ? el('p', {
          className: 'soft',
          textContent: `Credential: ${credentials}${op.security.some((one) => Object.keys(one).length === 0) ? ' (optional)' : ''}`,
        })
      : undefined,
    op.parameters?.length ? el('h4', { textContent: 'Parameters' }) : undefined,
    parameters(op.parameters),
    bodySchema ? el('h4', { textContent: 'Body' }) : undefined,
    bodySchema ? fields(bodySchema) : undefined,
    el('h4', { textContent: 'Answers' }),
    ...answers,
  )
}

const description = await (await fetch('/openapi.json')).json()
document.querySelector('#about').textContent =
  `${description.info.description} Version ${description.info.version}, OpenAPI ${description.openapi}.`
const all = Object.entries(description.paths).flatMap(([path, item]) =>
  methods.filter((method) => item[method]).map((method) => ({ path, method, op: item[method] })),
)

function render(filter) {
  const word = filter.trim().toLowerCase()
  const shown = all.filter(({ path, method, op }) =>
    `${method} ${path} ${op.summary} ${(op.tags ?? []).join(' ')}`.toLowerCase().includes(word),
  )
  const groups = Map.groupBy ? Map.groupBy(shown, ({ op }) => op.tags?.[0] ?? 'Other') : new Map([['All', shown]])
  document
    .querySelector('#index')
    .replaceChildren(
      ...[...groups].flatMap(([tag, list]) => [
        el('h2', { textContent: tag }),
        ...list.map(({ path, method, op }) =>
          el('a', { href: `#${op.operationId}`, title: op.summary ?? '' }, `${method.toUpperCase()} ${path}`),
        ),
      ]),
    )
  document
    .querySelector('#operations')
    .replaceChildren(
      ...[...groups].flatMap(([, list]) => list.map(({ path, method, op }) => operation(path, method, op))),
    )
}

document.querySelector('#filter').addEventListener('input', (event) => render(event.target.value))
render('')
