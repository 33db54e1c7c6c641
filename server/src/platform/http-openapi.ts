import { readFileSync } from 'node:fs'
import type { FastifyContextConfig, FastifySchema } from 'fastify'
import { Type } from 'typebox'
import { extractComponents } from './openapi-components.ts'
import { completeDocument, type DocumentData, type OpenApiDocument } from './openapi-document.ts'

const ERROR_RESPONSE = 'ErrorResponse'

/** The body of every error response: `error` and `message` are always present. */
export const ErrorResponse = Type.Object(
  {
    error: Type.Unsafe<string>({
      type: 'string',
      enum: ['budget_exceeded', 'policy_blocked', 'invalid_request', 'payment_required', 'error'],
    }),
    message: Type.String(),
    code: Type.Optional(Type.String()),
    request_id: Type.Optional(Type.String()),
    retryable: Type.Optional(Type.Boolean()),
    details: Type.Optional(Type.Unknown()),
    next_action: Type.Optional(Type.String()),
  },
  {
    title: ERROR_RESPONSE,
    description: 'The error as a stable code and a message.',
    additionalProperties: true,
  },
)

/** A response that is not JSON, in the form that OpenAPI describes it. */
export const describeNonJsonResponse = (type: string, description: string) => ({
  description,
  content: { [type]: { schema: Type.String(type === 'application/octet-stream' ? { format: 'binary' } : {}) } },
})

export const openapiInfo = (publicUrl: () => string) => ({
  openapi: '3.1.0' as const,
  info: {
    title: 'Countersign',
    version: '1.7.0',
    description:
      'Execution, payment and attestation for autonomous agents. Paid calls use x402 in USDC on eip155:8453.',
    license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    contact: { name: 'Countersign', url: `${publicUrl()}/docs` },
    'x-guidance':
      'Ask GET /api/pricing or POST /api/route for lane and price, both free. POST /api/run with {"task": "…"} and an Idempotency-Key; without payment the answer is 402. Pay it with any x402 client (USDC, scheme exact, EIP-3009) and send the same body. After a 503 send the same payment again and never sign another; after a 409 with retryable: true send the same request again. An API key is needed only for budgets, policies, wallets and lists: POST /api/onboard.',
  },
  servers: [{ url: publicUrl() }],
  components: {
    securitySchemes: {
      apiKey: { type: 'apiKey' as const, in: 'header' as const, name: 'X-API-Key' },
      adminKey: { type: 'apiKey' as const, in: 'header' as const, name: 'X-Admin-Key' },
      bearer: { type: 'http' as const, scheme: 'bearer' },
      session: { type: 'apiKey' as const, in: 'cookie' as const, name: 'countersign_session' },
    },
  },
})

const errorDescriptions: Record<number, string> = {
  400: 'The request is not valid.',
  401: 'A valid credential is missing.',
  403: 'The credential lacks the right.',
  404: 'No such record.',
  413: 'The body is too large.',
  415: 'The body is not JSON.',
  429: 'Too many requests.',
  500: 'Something went wrong on our side.',
  503: 'A dependency cannot be reached at the moment, or too many requests of this caller are waiting.',
}

type RouteDescription = {
  schema: FastifySchema
  url: string
  route: { method: string | string[]; config?: FastifyContextConfig }
}

/** Adds the error responses that follow from a route's authentication, body and parameters, so that routes need not list them. */
export function describeErrors({ schema, url, route }: RouteDescription) {
  if (!schema) return { schema: { hide: true } as FastifySchema, url }
  const auth = route.config?.auth ?? 'none'
  const statuses = new Set<number>([500, 503])
  if (schema.body || schema.querystring || schema.params) statuses.add(400)
  if (schema.body) for (const status of [413, 415]) statuses.add(status)
  if (auth !== 'none') statuses.add(401)
  // A suspended tenant, a key without the scope, a session without its token.
  if (auth === 'tenant' || auth === 'optional') statuses.add(403)
  if (schema.params) statuses.add(404)
  if (!route.config?.unmetered) statuses.add(429)
  const declaredResponses = (schema.response ?? {}) as Record<string, unknown>
  const errors = Object.fromEntries(
    [...statuses]
      .filter((status) => !(status in declaredResponses))
      .map((status) => [status, { ...ErrorResponse, description: errorDescriptions[status] }]),
  )
  const security = {
    none: [],
    // A payment is the credential there, and agents read a listed key as required: the key is described as a header.
    optional: route.config?.paid ? [] : [{}, { apiKey: [] }, { session: [] }],
    tenant: [{ apiKey: [] }, { session: [] }],
    admin: [{ adminKey: [] }],
  }[auth]
  return {
    schema: {
      ...schema,
      ...(schema.querystring ? { querystring: withOptionalDefaults(schema.querystring) } : {}),
      ...(url.includes('*') && { params: withNamedRest(schema.params) }),
      description: describe(schema, route.config ?? {}),
      response: { ...declaredResponses, ...errors },
      security: schema.security ?? security,
    } as FastifySchema,
    url: url.replace('*', `:${REST_OF_PATH}`),
  }
}

/** OpenAPI has no parameter for the rest of a path; the service takes its slashes as they are or encoded. */
const REST_OF_PATH = 'tile'

function withNamedRest(params: unknown) {
  const { properties, ...schema } = params as { properties: Record<string, object> }
  return { ...schema, required: [REST_OF_PATH], properties: { [REST_OF_PATH]: properties['*'] } }
}

/** What the route's author wrote, and who may call it. */
function describe(schema: FastifySchema, { auth = 'none', scope, paid }: FastifyContextConfig): string {
  const scopes = [scope ?? []].flat().map((name) => `\`${name}\``)
  const withScope = scopes.length > 0 ? ` with the scope ${scopes.join(' or ')}` : ''
  const credential = {
    none: 'Needs no credential.',
    optional: paid
      ? 'Needs a payment; an `X-API-Key` is optional.'
      : `Takes an \`X-API-Key\`${withScope} and needs none.`,
    tenant: `Needs an \`X-API-Key\`${withScope}, or a session.`,
    admin: 'For the operator, with `X-Admin-Key`.',
  }[auth]
  const { summary, description } = schema as { summary?: string; description?: string }
  const text = description ?? summary ?? ''
  return `${text}${/[.!?]$/.test(text) ? '' : '.'} ${credential}`.trim()
}

/** A property with a default is not required. */
function withOptionalDefaults(schema: unknown) {
  const { properties = {}, required = [] } = schema as { properties?: Record<string, object>; required?: string[] }
  return { ...(schema as object), required: required.filter((name) => !('default' in (properties[name] ?? {}))) }
}

type Body = { required?: boolean; content?: Record<string, { schema?: { required?: string[]; properties?: object } }> }
type Document = {
  components: { schemas?: Record<string, unknown> }
  paths: Record<string, Record<string, { requestBody?: Body }>>
}

// Fields without which a request is still complete; a body that has only such fields may be omitted.
const optionalFields = new Set([
  'idempotency_key',
  'reason',
  'name',
  'overlap_seconds',
  'scopes',
  'expires_at',
  'rh_account_id',
])

/** The OpenAPI description: named schemas as components, and bodies that may be omitted marked as optional. */
export function describeApi(app: { swagger(): object }): object {
  const document = app.swagger() as Document
  for (const { requestBody } of Object.values(document.paths).flatMap((path) => Object.values(path)))
    markOptionalBody(requestBody)
  const { paths, schemas } = extractComponents(document.paths, { [ERROR_RESPONSE]: ErrorResponse })
  const extracted = { ...document, paths, components: { ...document.components, schemas } }
  return completeDocument(extracted as OpenApiDocument, readDocumentData())
}

/** Tags and examples, which are data. */
const readDocumentData = () =>
  JSON.parse(readFileSync(new URL('../../data/openapi.json', import.meta.url), 'utf8')) as DocumentData

function markOptionalBody(body: Body | undefined) {
  const schema = body?.content?.['application/json']?.schema
  if (!body || !schema?.properties) return
  const hasOnlyOptionalFields = Object.keys(schema.properties).every((name) => optionalFields.has(name))
  if (hasOnlyOptionalFields && (schema.required ?? []).length === 0) body.required = false
}
