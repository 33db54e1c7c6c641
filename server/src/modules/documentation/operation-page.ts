import { type Html, html } from '../../platform/html.ts'
import type { ApiDescription, Field, Operation, Parameter, Response, Schema } from './api-description.ts'
import { codeSamples, type SampleOptions, takesIdempotencyKey } from './code-samples.ts'
import { highlight } from './highlight.ts'
import { methodLabel } from './layout.ts'
import { renderInline } from './markdown.ts'
import { tryIt } from './try-it-form.ts'

const PLACES: { place: Parameter['in']; heading: string }[] = [
  { place: 'path', heading: 'Path parameters' },
  { place: 'query', heading: 'Query parameters' },
  { place: 'header', heading: 'Headers' },
]

export function operationPage(operation: Operation, api: ApiDescription, options: SampleOptions): Html {
  const { method, path, summary, tag, description = '', parameters = [], requestBody, responses } = operation
  const samples = codeSamples(operation, options)
  const successes = Object.entries(responses).filter(([status]) => Number(status) < 400)
  const [, example] = successes.flatMap(([status, { content = {} }]) =>
    Object.values(content)
      .filter((media) => media.example !== undefined)
      .map((media) => [status, media.example] as const),
  )[0] ?? ['', undefined]
  const body = requestBody?.content?.['application/json']?.schema
  return html`<article class="operation">
<div class="operation-head">
<p class="label">${tag}</p>
<h1>${summary ?? operation.operationId}</h1>
<p class="endpoint">${methodLabel(method)} <code>${path}</code></p>
<p class="badges">${badges(operation)}</p>
<p>${renderInline(withoutSummary(description, summary))}</p>
${takesBearer(operation) && html`<p class="muted">Takes the header <code>Authorization: Bearer</code>.</p>`}
</div>
<div class="samples">
<h2 id="curl">curl</h2>
${highlight(samples.curl, 'sh')}
${'x-payment-info' in operation && html`<p class="muted">Without a payment the answer is 402 with the price. The program below signs the payment and sends it; the idempotency key makes either safe to repeat.</p>`}
<h2 id="typescript">TypeScript</h2>
${highlight(samples.typescript, 'ts')}
${tryIt(operation)}
${example !== undefined && html`<h2 id="example">Example answer</h2>${highlight(JSON.stringify(example, null, 2), 'json')}`}
</div>
<div class="fields">
${PLACES.map(({ place, heading }) => {
  const own = parameters.filter((parameter) => parameter.in === place)
  return (
    own.length > 0 && html`<h2 id="${place}">${heading}</h2>${fieldList(own.map((one) => parameterField(api, one)))}`
  )
})}
${body && html`<h2 id="body">Body${requestBody.required === false && html` <span class="muted">optional</span>`}</h2>${bodyFields(api, body, requestBody.description)}`}
<h2 id="answers">Answers</h2>
${successes.map(([status, response]) => renderAnswer(api, status, response))}
${renderErrors(
  api,
  Object.entries(responses).filter(([status]) => Number(status) >= 400),
)}
</div>
</article>`
}

function badges(operation: Operation): Html[] {
  const { security = [], deprecated } = operation
  const price = operation['x-payment-info']?.price
  const schemes = security.flatMap((requirement) => Object.keys(requirement))
  const amount = price?.min === price?.max ? price?.min : `${price?.min} to ${price?.max}`
  return [
    deprecated && html`<span class="badge warning">Deprecated</span> `,
    price && html`<span class="badge paid">Paid by x402${price.min !== undefined && `: ${amount} USDC`}</span> `,
    schemes.includes('adminKey') && html`<span class="badge warning">Operator</span> `,
    schemes.includes('apiKey') &&
      html`<span class="badge">${isOptional(security) ? 'API key optional' : 'API key'}</span> `,
    schemes.length === 0 && !price && html`<span class="badge">No credential</span> `,
    takesIdempotencyKey(operation) && html`<span class="badge">Idempotent with a key</span> `,
  ].filter((badge) => badge !== undefined && badge !== false)
}

const isOptional = (security: Record<string, unknown>[]) =>
  security.some((requirement) => Object.keys(requirement).length === 0)

const takesBearer = ({ security = [] }: Operation) => security.some((requirement) => 'bearer' in requirement)

/** A description that has nothing of its own begins with the summary, which is the heading. */
const withoutSummary = (description: string, summary = '') =>
  summary && description.startsWith(`${summary}. `) ? description.slice(summary.length + 2) : description

const parameterField = (api: ApiDescription, { name, in: place, required, description, schema = {} }: Parameter) =>
  api.describeField(schema, { name, path: `${place}.${name}`, required: required ?? false, description })

function bodyFields(api: ApiDescription, schema: Schema, description = ''): Html {
  return html`${(description || api.descriptionOf(schema)) && html`<p>${renderInline(description || api.descriptionOf(schema))}</p>`}
${fieldList(api.fieldsOf(schema, 'body'))}`
}

const fieldList = (fields: readonly Field[]): Html => html`<ul class="field-list">
${fields.map(renderField)}</ul>
`

const showValue = (value: unknown) => html`<code>${typeof value === 'string' ? value : JSON.stringify(value)}</code>`

function renderField(field: Field): Html {
  const { name, path, type, required, description, limits, values, fields } = field
  const notes = [
    values.length > 0 && html`One of ${values.map((value, index) => html`${index > 0 && ', '}${showValue(value)}`)}.`,
    limits && html`${limits[0]!.toUpperCase()}${limits.slice(1)}.`,
    'default' in field && html`Default ${showValue(field.default)}.`,
  ].filter((note) => note !== false && note !== '')
  return html`<li id="${path}"><div class="field-head"><a class="anchor" href="#${path}" aria-label="Link to ${path}">#</a><code>${name}</code> <span class="type">${type}</span>${required && html` <span class="required">required</span>`}</div>
${description && html`<p>${renderInline(description)}</p>`}
${notes.length > 0 && html`<p class="muted">${notes.map((note) => html`${note} `)}</p>`}
${fields.length > 0 && html`<details><summary>Fields of <code>${name}</code></summary>${fieldList(fields)}</details>`}
</li>
`
}

function renderHeaders({ headers = {} }: Response): Html | false {
  const rows = Object.entries(headers).map(
    ([name, { description = '' }]) =>
      html`<li><div class="field-head"><code>${name}</code> <span class="type">header</span></div><p>${renderInline(description)}</p></li>\n`,
  )
  return rows.length > 0 && html`<ul class="field-list">${rows}</ul>`
}

function renderAnswer(api: ApiDescription, status: string, response: Response): Html {
  const [type, media] = Object.entries(response.content ?? {})[0] ?? []
  const fields = media?.schema ? api.fieldsOf(media.schema, `answer-${status}`) : []
  return html`<h3 id="answer-${status}"><code>${status}</code> ${renderInline(response.description ?? '')}${type && type !== 'application/json' && html` <span class="type">${type}</span>`}</h3>
${renderHeaders(response)}
${fields.length > 0 ? fieldList(fields) : media?.schema && html`<p class="muted">${renderInline(api.descriptionOf(media.schema) || `A ${api.typeOf(media.schema)}.`)}</p>`}
`
}

/** Errors share a few bodies: each is described once, with the statuses that have it. */
function renderErrors(api: ApiDescription, errors: [string, Response][]): Html | false {
  if (errors.length === 0) return false
  const bodies = new Map<string, { schema: Schema; statuses: string[] }>()
  for (const [status, { content }] of errors) {
    const schema = content?.['application/json']?.schema
    if (!schema) continue
    const { description: _description, ...shape } = schema
    const key = JSON.stringify(shape)
    const body = bodies.get(key) ?? { schema, statuses: [] }
    body.statuses.push(status)
    bodies.set(key, body)
  }
  return html`<h3 id="errors">Errors</h3>
<ul class="statuses">
${errors.map(([status, response]) => html`<li id="answer-${status}"><code>${status}</code> <div>${renderInline(response.description ?? '')}${renderHeaders(response)}</div></li>\n`)}</ul>
${[...bodies.values()].map(
  ({
    schema,
    statuses,
  }) => html`<details><summary>Body of ${statuses.join(', ')}</summary>${fieldList(api.fieldsOf(schema, `answer-${statuses[0]}`))}</details>
`,
)}`
}
