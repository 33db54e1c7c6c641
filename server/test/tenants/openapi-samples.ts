/** What a test needs to call a route, read from the OpenAPI document. */
export type RouteDescription = {
  method: string
  path: string
  query: string[]
  body: Schema | undefined
  admin: boolean
}

export type Schema = {
  type?: string
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
  enum?: unknown[]
  const?: unknown
  anyOf?: Schema[]
  oneOf?: Schema[]
  allOf?: Schema[]
  minimum?: number
  format?: string
  pattern?: string
  minItems?: number
}

type Operation = {
  parameters?: { name: string; in: string; schema: Schema }[]
  requestBody?: { content: Record<string, { schema: Schema }> }
  security?: Record<string, unknown>[]
}

export function listRoutes(description: {
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, Schema> }
}): RouteDescription[] {
  const resolveReferences = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(resolveReferences)
    if (typeof value !== 'object' || value === null) return value
    const name = '$ref' in value && typeof value.$ref === 'string' ? value.$ref.split('/').at(-1)! : undefined
    if (name !== undefined) return resolveReferences(description.components.schemas[name])
    return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, resolveReferences(member)]))
  }
  return Object.entries(description.paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]) => ({
      method: method.toUpperCase(),
      path,
      query: (operation.parameters ?? [])
        .filter((parameter) => parameter.in === 'query' && parameter.schema.type === 'string' && !parameter.schema.enum)
        .map((parameter) => parameter.name),
      body: resolveReferences(operation.requestBody?.content['application/json']?.schema) as Schema | undefined,
      admin: (operation.security ?? []).some((scheme) => 'adminKey' in scheme),
    })),
  )
}

/** A value that matches the schema, with `id` for every id, also the optional ones, to try the id of another tenant everywhere. */
export function sampleValue(schema: Schema, id: string, name = ''): unknown {
  if (schema.const !== undefined) return schema.const
  if (schema.enum) return schema.enum[0]
  const variant = schema.anyOf?.[0] ?? schema.oneOf?.[0] ?? schema.allOf?.[0]
  if (variant) return sampleValue(variant, id, name)
  switch (schema.type) {
    case 'object':
      return Object.fromEntries(
        Object.entries(schema.properties ?? {})
          .filter(([key]) => schema.required?.includes(key) || (isId(key) && key !== 'idempotency_key'))
          .map(([key, value]) => [key, sampleValue(value, id, key)]),
      )
    case 'array':
      return schema.items ? [sampleValue(schema.items, id, name.replace(/s$/, ''))] : []
    case 'integer':
    case 'number':
      return Math.max(1, schema.minimum ?? 1)
    case 'boolean':
      return true
    case 'string':
      return sampleText(schema, id, name)
    default:
      return {}
  }
}

const isId = (name: string) => /(^|_)ids?$|token$/.test(name)

function sampleText(schema: Schema, id: string, name: string): string {
  if (isId(name)) return id
  if (schema.format === 'date-time') return '2030-01-01T00:00:00Z'
  if (schema.format === 'email') return 'intruder@example.com'
  if (schema.format === 'uri' || name === 'url') return 'https://example.com/'
  if (name === 'event') return '*'
  return schema.pattern?.includes('0x') ? `0x${'0'.repeat(40)}` : 'text'
}
