/** What the pages need of the OpenAPI document: operations in order, and schemas as trees of fields. */

export type Schema = {
  $ref?: string
  type?: string | string[]
  description?: string
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
  additionalProperties?: boolean | Schema
  anyOf?: Schema[]
  oneOf?: Schema[]
  allOf?: Schema[]
  enum?: unknown[]
  const?: unknown
  default?: unknown
  format?: string
  minimum?: number
  maximum?: number
  exclusiveMinimum?: number
  exclusiveMaximum?: number
  minLength?: number
  maxLength?: number
  minItems?: number
  maxItems?: number
  minProperties?: number
  maxProperties?: number
  'x-form'?: string
}

export type Parameter = {
  name: string
  in: 'path' | 'query' | 'header' | 'cookie'
  required?: boolean
  description?: string
  schema?: Schema
  example?: unknown
}

type Media = Record<string, { schema?: Schema; example?: unknown }>

export type Response = {
  $ref?: string
  description?: string
  content?: Media
  headers?: Record<string, { description?: string; schema?: Schema }>
}

export type SecurityScheme = { type: string; in?: string; name?: string; scheme?: string }

export type OperationObject = {
  operationId: string
  summary?: string
  description?: string
  tags?: string[]
  security?: Record<string, unknown>[]
  deprecated?: boolean
  parameters?: Parameter[]
  requestBody?: { required?: boolean; description?: string; content?: Media }
  responses: Record<string, Response>
  'x-payment-info'?: { price?: { min?: string; max?: string; currency?: string } }
}

export type OpenApi = {
  info: { title: string; version: string; description: string; 'x-guidance'?: string }
  tags?: { name: string; description: string }[]
  paths: Record<string, Record<string, OperationObject>>
  components: {
    schemas?: Record<string, Schema>
    responses?: Record<string, Response>
    securitySchemes?: Record<string, SecurityScheme>
  }
}

export type Operation = OperationObject & { method: string; path: string; tag: string }

export type Field = {
  name: string
  /** Names from the outermost object on, joined by dots. */
  path: string
  type: string
  required: boolean
  description: string
  /** Limits in words. */
  limits: string
  values: unknown[]
  default?: unknown
  fields: Field[]
}

export type ApiDescription = ReturnType<typeof readApiDescription>

const MAX_DEPTH = 8
const METHODS = ['get', 'post', 'put', 'patch', 'delete']

export function readApiDescription(document: OpenApi) {
  const schemas = document.components.schemas ?? {}
  const resolveResponse = (response: Response): Response =>
    response.$ref ? document.components.responses![response.$ref.split('/').at(-1)!]! : response
  const operations: Operation[] = Object.entries(document.paths).flatMap(([path, item]) =>
    METHODS.filter((method) => item[method]).map((method) => ({
      ...item[method]!,
      responses: Object.fromEntries(
        Object.entries(item[method]!.responses).map(([status, response]) => [status, resolveResponse(response)]),
      ),
      method,
      path,
      tag: item[method]!.tags?.[0] ?? 'Other',
    })),
  )

  /** The schema itself, or the component that it refers to; what stands beside the reference goes first. */
  const resolve = (schema: Schema = {}): Schema => {
    if (!schema.$ref) return schema
    const { $ref, ...own } = schema
    return { ...schemas[$ref.split('/').at(-1)!], ...own }
  }

  const variantsOf = (schema: Schema) => (schema.anyOf ?? schema.oneOf)?.map(resolve)

  /** The values that a schema allows, when it allows no others. */
  const valuesOf = (given: Schema): unknown[] => {
    const schema = resolve(given)
    if ('const' in schema) return [schema.const]
    if (schema.enum) return schema.enum
    const variants = variantsOf(schema)?.map(valuesOf) ?? []
    return variants.length > 0 && variants.every((values) => values.length > 0) ? variants.flat() : []
  }

  const typeOf = (given: Schema): string => {
    const schema = resolve(given)
    const values = valuesOf(schema)
    if (values.length > 0) return joinTypes(values.map((value) => (value === null ? 'null' : typeof value)))
    const variants = variantsOf(schema)
    if (variants) return joinTypes(variants.map(typeOf))
    if (schema.allOf || schema.properties) return 'object'
    if (schema.type === 'array') return `array of ${plural(typeOf(schema.items ?? {}))}`
    if (schema.type === 'object' && typeof schema.additionalProperties === 'object')
      return `object of ${plural(typeOf(schema.additionalProperties))}`
    return joinTypes([schema.type ?? 'any'].flat())
  }

  /** The properties of all variants; in a union only what every variant requires is required. */
  const propertiesOf = (given: Schema): Pick<Schema, 'properties' | 'required'> => {
    const schema = resolve(given)
    if (schema.type === 'array') return propertiesOf(schema.items ?? {})
    const parts = (schema.allOf ?? variantsOf(schema))?.map(propertiesOf).filter(({ properties }) => properties)
    if (!parts?.length) {
      const values = schema.additionalProperties
      return schema.properties || typeof values !== 'object' ? schema : propertiesOf(values)
    }
    const required = parts.map((part) => part.required ?? [])
    return {
      properties: Object.assign({}, ...parts.map(({ properties }) => properties), schema.properties),
      required: schema.allOf
        ? required.flat()
        : required[0]!.filter((name) => required.every((names) => names.includes(name))),
    }
  }

  const describeField = (
    given: Schema,
    place: { name: string; path: string; required: boolean; description?: string; depth?: number },
  ): Field => {
    const schema = resolve(given)
    const { name, path, required, description, depth = 0 } = place
    return {
      name,
      path,
      type: typeOf(schema),
      required,
      description: description ?? schema.description ?? '',
      limits: describeLimits(schema.type === 'array' ? { ...schema, ...onlyForm(resolve(schema.items)) } : schema),
      values: valuesOf(schema.type === 'array' ? (schema.items ?? {}) : schema),
      ...('default' in schema && { default: schema.default }),
      fields: depth < MAX_DEPTH ? fieldsOf(schema, path, depth + 1) : [],
    }
  }

  const fieldsOf = (schema: Schema, prefix: string, depth = 0): Field[] => {
    const { properties = {}, required = [] } = propertiesOf(schema)
    return Object.entries(properties).map(([name, property]) =>
      describeField(property, {
        name,
        path: prefix ? `${prefix}.${name}` : name,
        required: required.includes(name),
        depth,
      }),
    )
  }

  return {
    document,
    operations,
    /** In the order of the document's tags, then of first use; tags without an operation are left out. */
    groups: groupByTag(document, operations),
    typeOf,
    fieldsOf,
    describeField,
    /** The name of the component that a schema refers to. */
    nameOf: (schema: Schema) => schema.$ref?.split('/').at(-1),
    descriptionOf: (schema: Schema) => resolve(schema).description ?? '',
  }
}

export type TagGroup = { tag: string; description: string; operations: Operation[] }

function groupByTag({ tags = [] }: OpenApi, operations: Operation[]): TagGroup[] {
  const names = new Set([...tags.map(({ name }) => name), ...operations.map(({ tag }) => tag)])
  return [...names]
    .map((tag) => ({
      tag,
      description: tags.find(({ name }) => name === tag)?.description ?? '',
      operations: operations.filter((operation) => operation.tag === tag),
    }))
    .filter((group) => group.operations.length > 0)
}

const joinTypes = (types: string[]) => [...new Set(types)].join(' or ')

const plural = (type: string) => (/^(string|number|integer|boolean|object)$/.test(type) ? `${type}s` : type)

const onlyForm = ({ 'x-form': form }: Schema): Schema => (form ? { 'x-form': form } : {})

const FORMATS: Record<string, string> = {
  'date-time': 'a time as in RFC 3339',
  date: 'a date as in 2026-11-16',
  email: 'an e-mail address',
  uri: 'a URL',
  uuid: 'a UUID',
}

/** A pattern is described by its `x-form`; the expression itself is for machines. */
function describeLimits(schema: Schema): string {
  const range = (minimum: number | undefined, maximum: number | undefined, unit: string) => {
    const units = unit && ` ${unit}`
    if (minimum === undefined && maximum === undefined) return ''
    if (minimum === undefined) return `at most ${maximum}${units}`
    if (maximum === undefined) return `at least ${minimum}${units}`
    return `${minimum} to ${maximum}${units}`
  }
  return [
    schema['x-form'],
    schema.format && (FORMATS[schema.format] ?? schema.format),
    range(schema.minLength, schema.maxLength, 'characters'),
    range(schema.minimum, schema.maximum, ''),
    schema.exclusiveMinimum !== undefined && `more than ${schema.exclusiveMinimum}`,
    schema.exclusiveMaximum !== undefined && `less than ${schema.exclusiveMaximum}`,
    range(schema.minItems, schema.maxItems, 'items'),
    range(schema.minProperties, schema.maxProperties, 'members'),
  ]
    .filter(Boolean)
    .join(', ')
}
