import type { Operation, Parameter } from './api-description.ts'

/** The same call as a command and as a program. */
export type CodeSamples = { curl: string; typescript: string }

export type SampleOptions = {
  baseUrl: string
  /** Whether the service has a chain of its own, with a key that has test money only. */
  hasDevelopmentChain: boolean
}

/** Lists that the SDK iterates over, page after page: `client.receipts.list()`. */
const SDK_LISTS: Record<string, { list: string; item: string }> = {
  listRuns: { list: 'runs', item: 'run' },
  listReceipts: { list: 'receipts', item: 'receipt' },
  listSettlements: { list: 'settlements', item: 'settlement' },
  getLedger: { list: 'ledger', item: 'entry' },
  listWallets: { list: 'wallets', item: 'wallet' },
  listPolicies: { list: 'policies', item: 'policy' },
  listMandates: { list: 'mandates', item: 'mandate' },
  listPreauths: { list: 'preauths', item: 'preauth' },
  listApprovals: { list: 'approvals', item: 'approval' },
  listApprovalChannels: { list: 'approvalChannels', item: 'channel' },
  listDecisions: { list: 'decisions', item: 'decision' },
  listWebhooks: { list: 'webhooks', item: 'subscription' },
  listAlerts: { list: 'alerts', item: 'alert' },
  listMemories: { list: 'memories', item: 'memory' },
  listAuditEvents: { list: 'audit', item: 'event' },
  listOwnKeys: { list: 'keys', item: 'key' },
}

/** Calls that the SDK pays for, with the fields of their result. */
const SDK_PAID_CALLS: Record<string, { method: string; result: string; print: string }> = {
  run: { method: 'run', result: '{ output, receipt }', print: 'output, receipt.receipt_id, receipt.verified' },
  loop: { method: 'loop', result: '{ output, receipt }', print: 'output, receipt.receipt_id, receipt.verified' },
  topUpWallet: { method: 'topUp', result: '{ topUp, receipt }', print: 'topUp, receipt.verified' },
}

const INDENT = '  '

export type Credential = 'apiKey' | 'adminKey'

/** The key that a sample sends. Where it is optional, curl and the SDK leave out a variable that is empty. */
export const credentialOf = ({ security = [] }: Operation): Credential | undefined => {
  const names = security.flatMap((requirement) => Object.keys(requirement))
  return (['apiKey', 'adminKey'] as const).find((name) => names.includes(name))
}

export const takesIdempotencyKey = ({ parameters = [] }: Operation) =>
  parameters.some(({ name }) => name === 'Idempotency-Key')

export const exampleBody = ({ requestBody }: Operation) => requestBody?.content?.['application/json']?.example

const parametersIn = ({ parameters = [] }: Operation, place: Parameter['in']) =>
  parameters.filter((parameter) => parameter.in === place)

const isStream = ({ responses }: Operation) => 'text/event-stream' in (responses[200]?.content ?? {})

const typedExample = ({ example, schema }: Parameter): unknown => {
  const isNumber = schema?.type === 'integer' || schema?.type === 'number'
  const chosen = example ?? schema?.default ?? schema?.enum?.[0] ?? schema?.anyOf?.[0]?.enum?.[0]
  return chosen ?? (isNumber ? (schema.minimum ?? 1) : '…')
}

export const exampleValue = (parameter: Parameter): string => String(typedExample(parameter))

/** The rest of a path keeps its slashes. */
export const fillPath = (operation: Operation): string =>
  operation.path.replace(/\{([^}]+)\}/g, (_, name: string) => {
    const parameter = parametersIn(operation, 'path').find((candidate) => candidate.name === name)
    return encodeURIComponent(parameter ? exampleValue(parameter) : '').replaceAll('%2F', '/')
  })

const requiredQuery = (operation: Operation) =>
  parametersIn(operation, 'query')
    .filter(({ required }) => required)
    .map((parameter) => [parameter.name, typedExample(parameter)] as const)

const requiredHeaders = (operation: Operation) =>
  parametersIn(operation, 'header')
    .filter(({ required }) => required)
    .map((parameter) => [parameter.name, exampleValue(parameter)] as const)

const exampleUrl = (operation: Operation, baseUrl: string) => {
  const query = new URLSearchParams(
    requiredQuery(operation).map(([name, value]): [string, string] => [name, String(value)]),
  )
  return `${baseUrl}${fillPath(operation)}${query.size > 0 ? `?${query}` : ''}`
}

const keyVariables: Record<Credential, { header: string; variable: string }> = {
  apiKey: { header: 'X-API-Key', variable: 'COUNTERSIGN_API_KEY' },
  adminKey: { header: 'X-Admin-Key', variable: 'COUNTERSIGN_ADMIN_KEY' },
}

const quoteForShell = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`

export function codeSamples(operation: Operation, options: SampleOptions): CodeSamples {
  return { curl: curlSample(operation, options), typescript: typescriptSample(operation, options) }
}

function curlSample(operation: Operation, { baseUrl }: SampleOptions): string {
  const url = exampleUrl(operation, baseUrl)
  const credential = credentialOf(operation)
  const body = exampleBody(operation)
  const method = operation.method.toUpperCase()
  const impliedMethod = body === undefined ? 'GET' : 'POST'
  const lines = [
    `curl ${isStream(operation) ? '-N ' : ''}${method === impliedMethod ? '' : `-X ${method} `}${quoteForShell(url)}`,
    credential && `-H "${keyVariables[credential].header}: $${keyVariables[credential].variable}"`,
    ...requiredHeaders(operation).map(([name, value]) => `-H ${quoteForShell(`${name}: ${value}`)}`),
    takesIdempotencyKey(operation) && '-H "Idempotency-Key: $IDEMPOTENCY_KEY"',
    body !== undefined && "-H 'Content-Type: application/json'",
    body !== undefined && `-d ${quoteForShell(JSON.stringify(body, null, 2))}`,
  ].filter(Boolean)
  const command = lines.join(` \\\n${INDENT}`)
  return takesIdempotencyKey(operation) ? `IDEMPOTENCY_KEY=$(openssl rand -hex 16)\n${command}` : command
}

function typescriptSample(operation: Operation, options: SampleOptions): string {
  if (isStream(operation) || isRedirect(operation)) return fetchSample(operation, options)
  const paidCall = SDK_PAID_CALLS[operation.operationId]
  if (paidCall) return paidSample(operation, paidCall, options)
  const credential = credentialOf(operation)
  const key = credential && `${credential}: process.env.${keyVariables[credential].variable}`
  const opening = [
    `import { createApiClient } from '@countersign/sdk'`,
    '',
    `const client = createApiClient(${object([`baseUrl: ${literal(options.baseUrl)}`, key], 0, 'const client = createApiClient()'.length)})`,
  ]
  const list = SDK_LISTS[operation.operationId]
  if (list)
    return [...opening, `for await (const ${list.item} of client.${list.list}.list()) console.log(${list.item})`].join(
      '\n',
    )
  const path = parametersIn(operation, 'path').map((parameter) => [parameter.name, exampleValue(parameter)] as const)
  const body = exampleBody(operation)
  const headers = [
    ...requiredHeaders(operation).map(([name, value]) => `${literal(name)}: ${literal(value)}`),
    ...(takesIdempotencyKey(operation) ? [`'idempotency-key': crypto.randomUUID()`] : []),
  ]
  const request = [
    path.length > 0 && `path: ${literal(Object.fromEntries(path), 1)}`,
    requiredQuery(operation).length > 0 && `query: ${literal(Object.fromEntries(requiredQuery(operation)), 1)}`,
    headers.length > 0 && `headers: { ${headers.join(', ')} }`,
    body !== undefined && `body: ${literal(body, 1)}`,
  ].filter((part) => part !== false)
  const call = `const response = await client.${operation.method}(${literal(operation.path)}`
  const rest = request.length > 0 ? `, ${object(request, 0, call.length + 3)}` : ''
  return [...opening, `${call}${rest})`, 'console.log(response)'].join('\n')
}

const isRedirect = ({ responses }: Operation) => !Object.keys(responses).some((status) => status.startsWith('2'))

function paidSample(
  operation: Operation,
  { method, result, print }: { method: string; result: string; print: string },
  { baseUrl, hasDevelopmentChain }: SampleOptions,
): string {
  const credential = credentialOf(operation)
  const settings = [
    `baseUrl: ${literal(baseUrl)}`,
    credential && `${credential}: process.env.${keyVariables[credential].variable}`,
    'account',
    'maxUsdc: 1',
    hasDevelopmentChain && 'allowDevelopmentChain: true',
  ]
  const path = parametersIn(operation, 'path').map((parameter) => literal(exampleValue(parameter)))
  const callArguments = [...path, literal(exampleBody(operation) ?? {}, 1), '{ idempotencyKey: crypto.randomUUID() }']
  return [
    `import { accountFromKey, createClient } from '@countersign/sdk'`,
    '',
    ...(hasDevelopmentChain
      ? ["// The key of this service's development payer, never one with money on Base."]
      : ['// The key of an account with USDC on Base.']),
    `const account = await accountFromKey(process.env.PAYER_PRIVATE_KEY as \`0x\${string}\`)`,
    `const client = createClient(${object(settings, 0, MAX_LINE)})`,
    `const ${result} = await client.${method}(`,
    ...callArguments.map((argument) => `${INDENT}${argument},`),
    ')',
    `console.log(${print})`,
  ].join('\n')
}

function fetchSample(operation: Operation, { baseUrl }: SampleOptions): string {
  const url = exampleUrl(operation, baseUrl)
  const body = exampleBody(operation)
  const settings = [
    operation.method !== 'get' && `method: ${literal(operation.method.toUpperCase())}`,
    isRedirect(operation) && `redirect: 'manual'`,
    body !== undefined && `headers: { 'content-type': 'application/json' }`,
    body !== undefined && `body: JSON.stringify(${literal(body, 1)})`,
  ].filter((part) => part !== false)
  const call = `fetch(${[literal(url), ...(settings.length > 0 ? [object(settings)] : [])].join(', ')})`
  return isStream(operation)
    ? [
        `const response = await ${call}`,
        'const decoder = new TextDecoder()',
        'for await (const chunk of response.body!) console.log(decoder.decode(chunk, { stream: true }))',
      ].join('\n')
    : [`const response = await ${call}`, `console.log(response.status, response.headers.get('location'))`].join('\n')
}

const MAX_LINE = 62

/** The parts of an object literal, on one line when they fit behind what `used` characters of the line have. */
function object(parts: readonly (string | false | undefined)[], depth = 0, used = depth * 2): string {
  const members = parts.filter((part): part is string => Boolean(part))
  const line = `{ ${members.join(', ')} }`
  if (line.length <= MAX_LINE - used && !line.includes('\n')) return line
  const inner = INDENT.repeat(depth + 1)
  return `{\n${members.map((member) => `${inner}${member},\n`).join('')}${INDENT.repeat(depth)}}`
}

/** A JSON value as TypeScript. */
function literal(value: unknown, depth = 0): string {
  if (typeof value === 'string')
    return `'${JSON.stringify(value).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'`
  if (Array.isArray(value)) {
    const line = `[${value.map((item) => literal(item, depth)).join(', ')}]`
    if (line.length <= MAX_LINE && !line.includes('\n')) return line
    const inner = INDENT.repeat(depth + 1)
    return `[\n${value.map((item) => `${inner}${literal(item, depth + 1)},\n`).join('')}${INDENT.repeat(depth)}]`
  }
  if (typeof value !== 'object' || value === null) return String(value)
  const members = Object.entries(value).map(([name, member]) => {
    const key = /^[A-Za-z_$][\w$]*$/.test(name) ? name : literal(name)
    return `${key}: ${literal(member, depth + 1)}`
  })
  return members.length === 0 ? '{}' : object(members, depth)
}
