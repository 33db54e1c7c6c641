/** The operations of the OpenAPI document, as the fuzzer needs them. */
export type Schema = {
  $ref?: string
  type?: string | string[]
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
  enum?: unknown[]
  const?: unknown
  anyOf?: Schema[]
  oneOf?: Schema[]
  allOf?: Schema[]
  minimum?: number
  maximum?: number
  exclusiveMinimum?: number
  exclusiveMaximum?: number
  minLength?: number
  maxLength?: number
  minItems?: number
  maxItems?: number
  format?: string
  pattern?: string
}

export type Parameter = { name: string; in: 'path' | 'query' | 'header' | 'cookie'; schema: Schema }

export type Operation = {
  id: string
  method: string
  path: string
  parameters: Parameter[]
  body: Schema | undefined
  statuses: number[]
  /** Which credential a caller sends; `optional` routes take one and need none. */
  credential: 'none' | 'tenant' | 'optional' | 'admin'
  /** A stream does not end by itself. */
  endless: boolean
}

type Described = {
  operationId: string
  parameters?: Parameter[]
  requestBody?: { content: Record<string, { schema: Schema }> }
  responses: Record<string, unknown>
  security?: Record<string, unknown>[]
}

export type Description = {
  paths: Record<string, Record<string, Described>>
  components: { schemas: Record<string, Schema> }
}

export function listOperations(description: Description): Operation[] {
  const resolve = (value: unknown, depth = 0): unknown => {
    if (depth > 40 || typeof value !== 'object' || value === null) return value
    if (Array.isArray(value)) return value.map((item) => resolve(item, depth + 1))
    if ('$ref' in value && typeof value.$ref === 'string')
      return resolve(description.components.schemas[value.$ref.split('/').at(-1)!], depth + 1)
    return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, resolve(member, depth + 1)]))
  }
  return Object.entries(description.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, described]) => ({
      id: described.operationId,
      method: method.toUpperCase(),
      path,
      parameters: (resolve(described.parameters ?? []) as Parameter[]) ?? [],
      body: resolve(described.requestBody?.content['application/json']?.schema) as Schema | undefined,
      statuses: Object.keys(described.responses).map(Number),
      // A paid call takes a key too, which is described as a header.
      credential: 'x-payment-info' in described ? paidCredential(described.security) : credentialOf(described.security),
      endless: path.endsWith('/stream'),
    })),
  )
}

const paidCredential = (security: Record<string, unknown>[] = []): Operation['credential'] =>
  security.length === 0 ? 'optional' : credentialOf(security)

function credentialOf(security: Record<string, unknown>[] = []): Operation['credential'] {
  if (security.some((scheme) => 'adminKey' in scheme)) return 'admin'
  if (security.length === 0) return 'none'
  return security.some((scheme) => Object.keys(scheme).length === 0) ? 'optional' : 'tenant'
}

/** The statuses that count as reaching an operation; one operation is planned, and its only other answer is 501. */
export const successStatuses = (operation: Operation): number[] => {
  const successes = operation.statuses.filter((status) => status < 400)
  return successes.length > 0 ? successes : operation.statuses.filter((status) => status === 501)
}
