import { isIP } from 'node:net'
import { usdcFromMicro } from '../../platform/money.ts'
import { freeEndpoints } from '../catalog/pricing.ts'
import { type DiscoveryDeps, paidCalls, SERVICE_NAME, SUMMARY } from './discovery.ts'

/** `/llms.txt`: what a language model needs to know to use the service, with links to the rest. */
export function llmsText(deps: DiscoveryDeps): string {
  const url = deps.publicUrl()
  return [
    `# ${SERVICE_NAME}`,
    `> ${SUMMARY}`,
    'Discovery is free and needs no key. A run that fails is not charged. The price is signed before it is paid.',
    '## Make a paid call',
    numbered([
      'Send the request as JSON without a payment, for example POST /api/run with `{"task": "Tell me a joke."}`. The answer is 402; its header PAYMENT-REQUIRED (x402 version 2) and its body (version 1) have the price of exactly this request.',
      'Sign the payment with any x402 client and send the same request again with the header PAYMENT-SIGNATURE (version 2) or X-PAYMENT (version 1).',
      'The answer is 200 with `output`, `receipt` and `settlement`. After 503 send the same payment again, never a new one. Send an Idempotency-Key with every paid call. With `Prefer: respond-async` the answer is 202 with `location` and `events`, and the run goes on without the connection.',
      'With an X-API-Key a run may be paid from a wallet instead: `"payment": {"wallet_id": "…"}`.',
    ]),
    'A refusal by a budget or policy is 429 before any payment and names the rule and the smallest change that would pass.',
    '## Prices',
    bullets(paidCalls.map((call) => `POST ${call.path}: ${describeRange(deps, call.kind)}. ${call.purpose}`)),
    'A run without an `agent_id` is routed; each lane has its own price:',
    bullets(
      deps
        .lanes()
        .map(
          (lane) =>
            `\`${lane.agentId}\` (${lane.category}): ${usdcFromMicro(lane.priceMicro)} USDC. ${lane.description}`,
        ),
    ),
    `Settled on ${deps.settlement.network} in USDC (${deps.settlement.asset}) to ${deps.settlement.payTo}.`,
    '## Model Context Protocol',
    'The same service is an MCP server, of revision 2026-07-28 and the one before. The key goes into X-API-Key or Authorization: Bearer, a payment into _meta["x402/payment"] of the tool `run`.',
    bullets([`Streamable HTTP: ${url}/mcp`, `Stdio: \`npx countersign mcp --url ${url}\``]),
    '## Free calls',
    bullets(freeEndpoints.map(({ path, purpose }) => `${path}: ${purpose}`)),
    '## Documents',
    bullets([
      `[The API in full as text](${url}/llms-full.txt): every operation with its fields`,
      `[OpenAPI 3.1](${url}/openapi.json)`,
      `[Documentation](${url}/docs)`,
      `[Current prices](${url}/api/pricing)`,
      `[Paid resources](${url}/.well-known/x402) and [their terms](${url}/discovery/resources)`,
      `[A2A agent card](${url}/.well-known/agent-card.json)`,
      `[Keys that sign receipts](${url}/.well-known/jwks.json) and [the receipts](${url}/api/receipts)`,
    ]),
  ]
    .join('\n\n')
    .concat('\n')
}

const describeRange = ({ priceRange }: DiscoveryDeps, kind: 'run' | 'loop') => {
  const { minMicro, maxMicro } = priceRange(kind)
  return `${usdcFromMicro(minMicro)} to ${usdcFromMicro(maxMicro)} USDC`
}

type Schema = {
  $ref?: string
  type?: string
  description?: string
  properties?: Record<string, Schema>
  required?: string[]
  anyOf?: Schema[]
  enum?: unknown[]
  const?: unknown
}
type Operation = {
  summary?: string
  description?: string
  security?: Record<string, unknown>[]
  parameters?: { name: string; in: string; required?: boolean; schema?: Schema }[]
  requestBody?: { content?: Record<string, { schema?: Schema }> }
  responses?: Record<string, unknown>
}
type OpenApi = { paths: Record<string, Record<string, Operation>>; components?: { schemas?: Record<string, Schema> } }

/** `/llms-full.txt`: the same, and every operation of the running service with its fields. */
export function llmsFullText(deps: DiscoveryDeps): string {
  const { paths, components } = deps.describeApi() as OpenApi
  const resolve = (schema: Schema | undefined): Schema =>
    schema?.$ref === undefined ? (schema ?? {}) : (components?.schemas?.[schema.$ref.split('/').at(-1)!] ?? {})
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) =>
      describeOperation(`${method.toUpperCase()} ${path}`, operation, resolve),
    ),
  )
  return `${llmsText(deps)}\n## Operations\n\n${operations.join('\n\n')}\n`
}

function describeOperation(
  name: string,
  operation: Operation,
  resolve: (schema: Schema | undefined) => Schema,
): string {
  const body = resolve(operation.requestBody?.content?.['application/json']?.schema)
  const parameters = (operation.parameters ?? []).map(({ name, in: place, required, schema }) =>
    describeField(`${name} (${place})`, resolve(schema), required === true),
  )
  const fields = Object.entries(body.properties ?? {}).map(([field, schema]) =>
    describeField(field, resolve(schema), body.required?.includes(field) === true),
  )
  const credentials = (operation.security ?? []).map((names) => Object.keys(names).join(' and ') || 'none')
  return [
    `### \`${name}\``,
    [operation.summary, operation.description].filter(Boolean).join('. '),
    ...(credentials.length > 0 ? [`Credential: ${credentials.join(', or ')}.`] : []),
    ...(parameters.length > 0 ? [`Parameters:\n\n${bullets(parameters)}`] : []),
    ...(fields.length > 0 ? [`Body:\n\n${bullets(fields)}`] : []),
    `Answers: ${Object.keys(operation.responses ?? {}).join(', ')}.`,
  ].join('\n\n')
}

const describeField = (name: string, schema: Schema, required: boolean) =>
  `\`${name}\` ${describeType(schema)}${required ? ', required' : ''}${schema.description ? `: ${schema.description}` : ''}`

function describeType({ type, anyOf, enum: values, const: constant }: Schema): string {
  const constants = values ?? (constant === undefined ? undefined : [constant])
  if (constants) return constants.map((value) => JSON.stringify(value)).join(' or ')
  if (anyOf) return [...new Set(anyOf.map(describeType))].join(' or ')
  return type ?? 'any'
}

const bullets = (lines: readonly string[]) => lines.map((line) => `- ${line}`).join('\n')
const numbered = (lines: readonly string[]) => lines.map((line, index) => `${index + 1}. ${line}`).join('\n')

const publicPaths = ['/docs', '/openapi.json', '/llms.txt', '/llms-full.txt', '/discovery/', '/.well-known/']
const publicApiPaths = [
  '/api/pricing',
  '/api/capabilities',
  '/api/agents',
  '/api/providers',
  '/api/receipts',
  '/api/log/',
]
const crawlerFreePaths = ['/dashboard', '/api/', '/facilitator/']

/** `/robots.txt`: public documents and evidence may be read; what is private or costs work is not for crawlers. */
export const robotsText = (): string =>
  [
    'User-agent: *',
    ...[...publicPaths, ...publicApiPaths].map((path) => `Allow: ${path}`),
    ...crawlerFreePaths.map((path) => `Disallow: ${path}`),
    '',
  ].join('\n')

const SECURITY_TEXT_DAYS = 180
const DAY_MS = 86_400_000

/** `/.well-known/security.txt` of RFC 9116. */
export function securityText({ publicUrl, securityContact, clock }: DiscoveryDeps): string {
  const day = Math.floor(clock.now().getTime() / DAY_MS) * DAY_MS
  return [
    `Contact: ${securityContact ?? `mailto:${securityMailbox(new URL(publicUrl()).hostname)}`}`,
    `Expires: ${new Date(day + SECURITY_TEXT_DAYS * DAY_MS).toISOString()}`,
    'Preferred-Languages: en',
    `Canonical: ${publicUrl()}/.well-known/security.txt`,
    '',
  ].join('\n')
}

/** The mailbox that RFC 2142 reserves at every domain. */
const securityMailbox = (hostname: string) => `security@${isIP(hostname) === 4 ? `[${hostname}]` : hostname}`
