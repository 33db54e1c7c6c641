/** Completes what the framework describes: headers of payments, examples, tags and what an operation needs. */
import { createExamples, type ExampleData } from './openapi-examples.ts'

type Json = Record<string, unknown>
type Media = Record<string, { schema?: Json; example?: unknown }>
type Response = { description?: string; content?: Media; headers?: Json }
export type Operation = {
  operationId: string
  tags?: string[]
  security?: Json[]
  parameters?: Json[]
  requestBody?: { required?: boolean; content?: Media }
  responses: Record<string, Response>
}
export type OpenApiDocument = {
  tags?: unknown
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, Json> } & Json
}

export type DocumentData = ExampleData & {
  tags: Record<string, string>
  /** An example of `{id}`, by the path before it. */
  ids: Record<string, string>
}

const MAX_KEY_LENGTH = 255

const header = (name: string, description: string, schema: Json = { type: 'string' }) => ({
  name,
  in: 'header',
  required: false,
  description,
  schema,
})

const idempotencyKey = header(
  'Idempotency-Key',
  'Makes the call safe to repeat for 24 hours: the same key with the same body gets the stored answer, with another body 409. The same as `idempotency_key` in the body.',
  { type: 'string', minLength: 1, maxLength: MAX_KEY_LENGTH },
)
const paymentHeaders = [
  header(
    'PAYMENT-SIGNATURE',
    'An x402 version 2 payment for the `PAYMENT-REQUIRED` of the 402, as base64 of its JSON. Send it again, unchanged, after a 503.',
  ),
  header('X-PAYMENT', 'The same for x402 version 1. Send one of the two.'),
]
const optionalApiKey = header(
  'X-API-Key',
  'Optional: the run then belongs to this tenant, with its budgets and policies.',
)

const prefer = header(
  'Prefer',
  '`respond-async`: the answer to an accepted payment is 202 at once. Any other preference is ignored.',
)

const responseHeader = (description: string) => ({ description, schema: { type: 'string' } })
const challengeHeaders = {
  'PAYMENT-REQUIRED': responseHeader('The terms of x402 version 2, as base64 of their JSON.'),
}
const settlementHeaders = {
  'PAYMENT-RESPONSE': responseHeader('The settlement for clients of x402 version 2, as base64 of its JSON.'),
  'X-PAYMENT-RESPONSE': responseHeader('The settlement for clients of x402 version 1.'),
}

/** `bodies` of operations before their schemas became components. */
export function completeDocument(document: OpenApiDocument, data: DocumentData): OpenApiDocument {
  const examples = createExamples(document.components.schemas, data)
  addDiscriminatorMappings(document.components.schemas)
  for (const [path, item] of Object.entries(document.paths)) addIdExamples(path, Object.values(item), data.ids)
  const operations = Object.values(document.paths).flatMap((path) => Object.values(path))
  const used = new Set(operations.flatMap(({ tags = [] }) => tags))
  for (const operation of operations) {
    describeHeaders(operation, examples.resolve)
    describeSuccess(operation)
    addExamples(operation, examples)
  }
  const tags = Object.entries(data.tags)
    .filter(([name]) => used.has(name))
    .map(([name, description]) => ({ name, description }))
  const responses = shareErrorResponses(operations)
  return { ...document, components: { ...document.components, responses }, tags }
}

const errorNames: Record<string, string> = {
  400: 'BadRequest',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  413: 'TooLarge',
  415: 'NotJson',
  429: 'TooManyRequests',
  500: 'InternalError',
  503: 'Unavailable',
}

/** Replaces the answer of an error that most operations have by a reference to it: repeated, they were a quarter of the document. */
function shareErrorResponses(operations: Operation[]): Record<string, Response> {
  const shared: Record<string, Response> = {}
  for (const [status, name] of Object.entries(errorNames)) {
    const texts = operations.flatMap(({ responses }) => (responses[status] ? [JSON.stringify(responses[status])] : []))
    const common = mostFrequent(texts)
    if (common === undefined) continue
    shared[name] = JSON.parse(common) as Response
    for (const { responses } of operations)
      if (JSON.stringify(responses[status]) === common)
        responses[status] = { $ref: `#/components/responses/${name}` } as Response
  }
  return shared
}

function mostFrequent(texts: string[]): string | undefined {
  const counts = Map.groupBy(texts, (text) => text)
  return [...counts].sort(([, a], [, b]) => b.length - a.length)[0]?.[0]
}

function describeHeaders(operation: Operation, resolve: (schema: Json) => Json) {
  const { requestBody, responses, security } = operation
  const schema = requestBody?.content?.['application/json']?.schema
  const isPaid = 'x-payment-info' in operation
  const takesKey = schema !== undefined && 'idempotency_key' in ((resolve(schema).properties ?? {}) as Json)
  const headers = [
    ...(isPaid ? paymentHeaders : []),
    ...(takesKey ? [idempotencyKey] : []),
    ...(isPaid && security?.length === 0 ? [optionalApiKey] : []),
    ...(isPaid && responses[202] ? [prefer] : []),
  ]
  if (headers.length > 0) operation.parameters = [...(operation.parameters ?? []), ...headers]
  if (!isPaid) return
  if (responses[402]) responses[402].headers = challengeHeaders
  if (responses[200]) responses[200].headers = settlementHeaders
  if (responses[202]) responses[202].headers = { Location: responseHeader('The path of what goes on.') }
}

const successDescriptions: Record<string, string> = { 200: 'Success.', 201: 'Created.', 202: 'Accepted.' }

function describeSuccess({ responses }: Operation) {
  for (const [status, response] of Object.entries(responses))
    if (response.description === 'Default Response') response.description = successDescriptions[status] ?? 'Done.'
}

function addExamples(operation: Operation, { ofRequest, ofResponse, ofParameter }: ReturnType<typeof createExamples>) {
  const body = operation.requestBody?.content?.['application/json']
  if (body?.schema) body.example = ofRequest(operation.operationId, body.schema)
  for (const parameter of operation.parameters ?? []) {
    if (parameter.in === 'path' && parameter.example === undefined) parameter.example = ofParameter(parameter)
  }
  const success = Object.entries(operation.responses).find(([status]) => status.startsWith('2'))?.[1]
  const answer = success?.content?.['application/json']
  if (answer?.schema) answer.example = ofResponse(operation.operationId, answer.schema)
}

function addIdExamples(path: string, operations: Operation[], ids: Record<string, string>) {
  const example = ids[path.split('{id}')[0]!]
  for (const { parameters = [] } of operations)
    for (const parameter of parameters)
      if (example && parameter.in === 'path' && parameter.name === 'id') parameter.example = example
}

/** Without a mapping a generated client takes the names of the schemas for the values of the property. */
function addDiscriminatorMappings(schemas: Record<string, Json>) {
  const visit = (value: unknown) => {
    if (typeof value !== 'object' || value === null) return
    for (const member of Object.values(value)) visit(member)
    const { discriminator, oneOf } = value as { discriminator?: Json; oneOf?: { $ref?: string }[] }
    if (typeof discriminator?.propertyName !== 'string' || !Array.isArray(oneOf)) return
    const name = discriminator.propertyName
    discriminator.mapping = Object.fromEntries(
      oneOf.flatMap(({ $ref }) => {
        const { properties } = schemas[$ref?.split('/').at(-1) ?? ''] as { properties?: Record<string, Json> }
        const { const: only, enum: values = [only] } = (properties?.[name] ?? {}) as { const?: string; enum?: string[] }
        return values.map((member) => [String(member), $ref])
      }),
    )
  }
  visit(schemas)
}
