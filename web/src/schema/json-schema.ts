/** Checks values against the JSON schemas of the API by reading them: the page's security policy forbids generated code. */
export type Schema = {
  $ref?: string
  type?: string
  description?: string
  properties?: Record<string, Schema>
  required?: string[]
  additionalProperties?: boolean | Schema
  minProperties?: number
  items?: Schema
  minItems?: number
  maxItems?: number
  uniqueItems?: boolean
  anyOf?: Schema[]
  oneOf?: Schema[]
  discriminator?: { propertyName: string }
  enum?: unknown[]
  const?: unknown
  minimum?: number
  maximum?: number
  exclusiveMinimum?: number
  minLength?: number
  maxLength?: number
  pattern?: string
  format?: string
  default?: unknown
  /** A name without white space at its ends. */
  'x-name'?: boolean
  /** The pattern in words. */
  'x-form'?: string
}
export type Schemas = Record<string, Schema>
/** `path` is written as the service writes it: `rules[0].value`. */
export type SchemaError = { path: string; message: string }

const MAX_ERRORS = 50

export function findSchemaErrors(schemas: Schemas, schema: Schema, value: unknown): SchemaError[] {
  const errors: SchemaError[] = []
  check(schemas, schema, value, '', errors)
  return errors.slice(0, MAX_ERRORS)
}

export const joinPath = (path: string, part: string | number) =>
  typeof part === 'number' ? `${path}[${part}]` : path === '' ? part : `${path}.${part}`

export const resolveSchema = (schemas: Schemas, schema: Schema): Schema => {
  const name = schema.$ref?.split('/').at(-1)
  return name === undefined ? schema : (schemas[name] ?? {})
}

function check(schemas: Schemas, reference: Schema, value: unknown, path: string, errors: SchemaError[]): void {
  const schema = resolveSchema(schemas, reference)
  const fail = (message: string) => errors.push({ path, message })
  const options = literalsOf(schemas, schema)
  if (options) {
    if (!options.includes(value)) fail(`must be ${options.map((option) => JSON.stringify(option)).join(' or ')}.`)
    return
  }
  if (schema.oneOf && schema.discriminator) {
    checkDiscriminated(schemas, schema, schema.discriminator.propertyName, value, path, errors)
    return
  }
  const branches = schema.anyOf ?? schema.oneOf
  if (branches) {
    checkBranches(schemas, branches, value, path, errors)
    return
  }
  if (schema.type !== undefined && !hasType(schema.type, value)) {
    fail(`must be ${typeWords[schema.type] ?? schema.type}.`)
    return
  }
  if (typeof value === 'string') checkText(schema, value, fail)
  if (typeof value === 'number') checkNumber(schema, value, fail)
  if (Array.isArray(value)) {
    if (schema.minItems !== undefined && value.length < schema.minItems) fail(`must have ${schema.minItems} at least.`)
    if (schema.maxItems !== undefined && value.length > schema.maxItems) fail(`must have ${schema.maxItems} at most.`)
    if (schema.uniqueItems && new Set(value.map((item) => JSON.stringify(item))).size < value.length)
      fail('must not have an entry twice.')
    if (schema.items)
      for (const [index, item] of value.entries()) check(schemas, schema.items, item, joinPath(path, index), errors)
  } else if (isObject(value)) checkObject(schemas, schema, value, path, errors)
}

function checkObject(schemas: Schemas, schema: Schema, value: JsonObject, path: string, errors: SchemaError[]): void {
  const properties = schema.properties ?? {}
  for (const name of schema.required ?? [])
    if (!Object.hasOwn(value, name)) errors.push({ path: joinPath(path, name), message: 'is missing.' })
  for (const [name, member] of Object.entries(value)) {
    const memberSchema = Object.hasOwn(properties, name) ? properties[name] : undefined
    if (memberSchema) check(schemas, memberSchema, member, joinPath(path, name), errors)
    else if (schema.additionalProperties === false)
      errors.push({ path: joinPath(path, name), message: `is not a field here.${describeNearest(name, properties)}` })
    else if (typeof schema.additionalProperties === 'object')
      check(schemas, schema.additionalProperties, member, joinPath(path, name), errors)
  }
  if (schema.minProperties !== undefined && Object.keys(value).length < schema.minProperties)
    errors.push({ path, message: `must have ${schema.minProperties} field at least.` })
}

function checkDiscriminated(
  schemas: Schemas,
  schema: Schema,
  name: string,
  value: unknown,
  path: string,
  errors: SchemaError[],
): void {
  if (!isObject(value)) {
    errors.push({ path, message: 'must be an object.' })
    return
  }
  const branches = schema.oneOf!.map((branch) => resolveSchema(schemas, branch))
  const kindOf = (branch: Schema) => literalsOf(schemas, branch.properties?.[name] ?? {})?.[0]
  const branch = branches.find((candidate) => kindOf(candidate) === value[name])
  if (branch) check(schemas, branch, value, path, errors)
  else
    errors.push({
      path: joinPath(path, name),
      message: `must be ${branches.map((candidate) => JSON.stringify(kindOf(candidate))).join(' or ')}.`,
    })
}

/** The errors of the branch that the value seems to be meant for, or what all branches would take. */
function checkBranches(
  schemas: Schemas,
  branches: Schema[],
  value: unknown,
  path: string,
  errors: SchemaError[],
): void {
  const attempts = branches.map((branch) => {
    const branchErrors: SchemaError[] = []
    check(schemas, branch, value, path, branchErrors)
    return { branch: resolveSchema(schemas, branch), branchErrors }
  })
  if (attempts.some(({ branchErrors }) => branchErrors.length === 0)) return
  const sameType = attempts.filter(({ branch }) => branch.type === undefined || hasType(branch.type, value))
  if (sameType.length === 1) errors.push(...sameType[0]!.branchErrors)
  else
    errors.push({ path, message: `must be ${branches.map((branch) => describeType(schemas, branch)).join(' or ')}.` })
}

/** The values of an enumeration, however it is written; undefined when the schema is none. */
export function literalsOf(schemas: Schemas, reference: Schema): unknown[] | undefined {
  const schema = resolveSchema(schemas, reference)
  if (schema.enum) return schema.enum
  if ('const' in schema) return [schema.const]
  const parts = schema.anyOf?.map((branch) => literalsOf(schemas, branch))
  return parts && parts.length > 0 && parts.every((part) => part !== undefined) ? parts.flat() : undefined
}

function checkText(schema: Schema, value: string, fail: (message: string) => void): void {
  if (schema.minLength !== undefined && value.length < schema.minLength)
    fail(schema.minLength === 1 ? 'must not be empty.' : `must have ${schema.minLength} characters at least.`)
  if (schema.maxLength !== undefined && value.length > schema.maxLength)
    fail(`must have ${schema.maxLength} characters at most.`)
  if (schema.pattern !== undefined && !new RegExp(schema.pattern, 'u').test(value))
    fail(`must be ${schema['x-form'] ?? `like ${schema.pattern}`}.`)
  if (schema['x-name'] && value !== value.trim()) fail('must not begin or end with white space.')
  if (schema.format === 'date-time' && (!/T.*(Z|[+-]\d\d:\d\d)$/.test(value) || Number.isNaN(Date.parse(value))))
    fail('must be a time with its zone, such as 2030-01-31T12:00:00Z.')
}

function checkNumber(schema: Schema, value: number, fail: (message: string) => void): void {
  if (schema.minimum !== undefined && value < schema.minimum) fail(`must be ${schema.minimum} at least.`)
  if (schema.maximum !== undefined && value > schema.maximum)
    fail(`must be ${schema.maximum.toLocaleString('en-US')} at most.`)
  if (schema.exclusiveMinimum !== undefined && value <= schema.exclusiveMinimum)
    fail(`must be above ${schema.exclusiveMinimum}.`)
}

type JsonObject = Record<string, unknown>
export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const typeWords: Record<string, string> = {
  number: 'a number',
  integer: 'a whole number',
  string: 'text',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  null: 'null',
}

function hasType(type: string, value: unknown): boolean {
  if (type === 'integer') return Number.isInteger(value)
  if (type === 'array') return Array.isArray(value)
  if (type === 'null') return value === null
  return type === 'object' ? isObject(value) : typeof value === type
}

/** The type of a field in a few words, as help beside it. */
export function describeType(schemas: Schemas, reference: Schema): string {
  const schema = resolveSchema(schemas, reference)
  const options = literalsOf(schemas, schema)
  if (options) return options.map((option) => JSON.stringify(option)).join(' or ')
  const branches = schema.anyOf ?? schema.oneOf
  if (branches) return [...new Set(branches.map((branch) => describeType(schemas, branch)))].join(' or ')
  if (schema.type === 'array' && schema.items) return `a list of ${pluralOf(resolveSchema(schemas, schema.items).type)}`
  return typeWords[schema.type ?? ''] ?? 'any value'
}

const pluralOf = (type: string | undefined) =>
  type === 'string' ? 'texts' : type === 'number' || type === 'integer' ? 'numbers' : 'entries'

/** A field with a similar name, for a slip of the pen. */
function describeNearest(name: string, properties: Record<string, Schema>): string {
  const distances = Object.keys(properties).map((candidate) => ({ candidate, distance: editDistance(name, candidate) }))
  const nearest = distances.sort((a, b) => a.distance - b.distance)[0]
  return nearest && nearest.distance <= 3 ? ` Is it ${nearest.candidate}?` : ''
}

function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i]
    for (let j = 1; j <= b.length; j += 1)
      next.push(Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)))
    row = next
  }
  return row[b.length]!
}

export type AllowedField = { name: string; type: string; description: string; schema: Schema }

/** The fields that the object at a path may have; empty when there is no object there. */
export function fieldsAt(schemas: Schemas, root: Schema, path: readonly (string | number)[]): AllowedField[] {
  let schema: Schema | undefined = resolveSchema(schemas, root)
  for (const part of path) {
    const next: Schema | undefined = typeof part === 'number' ? schema?.items : schema?.properties?.[part]
    schema = next && resolveSchema(schemas, next)
  }
  return Object.entries(schema?.properties ?? {}).map(([name, reference]) => {
    const field = resolveSchema(schemas, reference)
    return { name, type: describeType(schemas, field), description: field.description ?? '', schema: field }
  })
}
