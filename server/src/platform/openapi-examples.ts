/** Examples for every operation, made from its schemas, so that they cannot be out of date. */
type Json = Record<string, unknown>

export type ExampleData = {
  /** A value for every member of this name, where its schema allows it. */
  fields: Record<string, unknown>
  /** Bodies and answers that deserve more than values by name, by operationId. */
  requests: Record<string, unknown>
  responses: Record<string, unknown>
}

const MAX_DEPTH = 5
const ID = '01a1e237-b8a3-77d2-bb1e-9ac638207396'

export function createExamples(components: Record<string, Json>, { fields, requests, responses }: ExampleData) {
  const resolve = (schema: Json): Json => {
    if (typeof schema.$ref === 'string') return resolve(components[schema.$ref.split('/').at(-1)!]!)
    return Array.isArray(schema.allOf) ? merge(schema.allOf.map(resolve)) : schema
  }

  const typeOf = ({ type, properties }: Json): string | undefined => {
    const named = [type].flat().find((name) => name !== 'null') as string | undefined
    return named ?? (properties ? 'object' : undefined)
  }

  const fits = (value: unknown, schema: Json): boolean => {
    if (Array.isArray(schema.enum) && !schema.enum.includes(value)) return false
    if ('const' in schema && schema.const !== value) return false
    if (typeof schema.pattern === 'string' && !new RegExp(schema.pattern, 'u').test(String(value))) return false
    const type = typeOf(schema)
    if (type === undefined) return true
    if (type === 'string') return typeof value === 'string' && lengthFits(value, schema) && formatFits(value, schema)
    if (type === 'integer') return Number.isInteger(value) && inRange(value as number, schema)
    if (type === 'number') return typeof value === 'number' && inRange(value, schema)
    if (type === 'boolean') return typeof value === 'boolean'
    if (type === 'array')
      return Array.isArray(value) && value.every((item) => fits(item, resolve((schema.items ?? {}) as Json)))
    return typeof value === 'object' && value !== null && !Array.isArray(value) && !schema.properties
  }

  const example = (reference: Json, name: string, depth: number, wholly: boolean): unknown => {
    const schema = resolve(reference)
    if (Array.isArray(schema.examples)) return schema.examples[0]
    if (schema.default !== undefined) return schema.default
    const variants = (schema.anyOf ?? schema.oneOf) as Json[] | undefined
    if (!variants && name in fields && fits(fields[name], schema)) return fields[name]
    if ('const' in schema) return schema.const
    if (Array.isArray(schema.enum)) return schema.enum[0]
    if (variants)
      return example({ ...variants.find((variant) => resolve(variant).type !== 'null') }, name, depth, wholly)
    switch (typeOf(schema)) {
      case 'object':
        return objectExample(schema, depth, wholly)
      case 'array':
        return arrayExample(schema, name, depth, wholly)
      case 'string':
        return stringExample(schema, name)
      case 'integer':
      case 'number':
        return numberExample(schema)
      case 'boolean':
        return true
      default:
        return {}
    }
  }

  function objectExample(schema: Json, depth: number, wholly: boolean): Json {
    const required = (schema.required ?? []) as string[]
    const members = Object.entries((schema.properties ?? {}) as Record<string, Json>).filter(
      ([name, member]) => required.includes(name) || (wholly && depth < MAX_DEPTH && !isDeep(member, depth)),
    )
    const [first] = Object.entries((schema.properties ?? {}) as Record<string, Json>)
    const shown = members.length === 0 && schema.minProperties && first ? [first] : members
    return Object.fromEntries(shown.map(([name, member]) => [name, example(member, name, depth + 1, wholly)]))
  }

  const isDeep = (member: Json, depth: number) => depth >= 2 && typeOf(resolve(member)) === 'object'

  function arrayExample(schema: Json, name: string, depth: number, wholly: boolean): unknown[] {
    const count = Math.max(Number(schema.minItems ?? 0), depth < MAX_DEPTH ? 1 : 0)
    const item = example((schema.items ?? {}) as Json, name.replace(/s$/, ''), depth + 1, wholly)
    return Array.from({ length: Math.min(count, Number(schema.maxItems ?? count)) }, () => item)
  }

  return {
    resolve,
    ofRequest: (operationId: string, schema: Json) => requests[operationId] ?? example(schema, '', 0, false),
    ofResponse: (operationId: string, schema: Json) => responses[operationId] ?? example(schema, '', 0, true),
    ofParameter: (parameter: Json) => example((parameter.schema ?? {}) as Json, String(parameter.name), 0, false),
  }
}

const merge = (parts: Json[]): Json => ({
  type: 'object',
  properties: Object.assign({}, ...parts.map(({ properties }) => properties)),
  required: parts.flatMap(({ required }) => (required ?? []) as string[]),
})

/** A value by name has no format unless it is the one of its format. */
const formatFits = (value: string, { format }: Json) =>
  format === undefined ||
  (format === 'date-time' && !Number.isNaN(Date.parse(value))) ||
  (format === 'email' && value.includes('@')) ||
  (format === 'uri' && URL.canParse(value))

const lengthFits = (
  value: string,
  { minLength = 0, maxLength = Infinity }: { minLength?: number; maxLength?: number },
) => value.length >= minLength && value.length <= maxLength

const inRange = (value: number, { minimum = -Infinity, maximum = Infinity }: { minimum?: number; maximum?: number }) =>
  value >= minimum && value <= maximum

const formatExamples: Record<string, string> = {
  'date-time': '2026-11-16T09:30:00.000Z',
  uuid: ID,
  email: 'agents@example.com',
  uri: 'https://example.com/hook',
}

/** Samples of patterns in use, tried in order; the longest specific ones first. */
const patternExamples = [
  `sha256:${'a1'.repeat(32)}`,
  `0x${'a1'.repeat(32)}`,
  `0x${'a1'.repeat(20)}`,
  'a1'.repeat(32),
  `att_${'a1'.repeat(16)}`,
  '25000',
  '2026-11-16',
  'AAPL',
  'analyst-v1',
  `run_${ID}`,
]

function stringExample(schema: Json, name: string): string {
  const { format, pattern, maxLength = Infinity } = schema as { format?: string; pattern?: string; maxLength?: number }
  if (format && formatExamples[format]) return formatExamples[format]
  if (pattern !== undefined)
    return patternExamples.find((text) => new RegExp(pattern, 'u').test(text)) ?? patternExamples[0]!
  return (name === '' ? 'text' : name.replaceAll('_', ' ')).slice(0, maxLength)
}

function numberExample({ minimum, exclusiveMinimum, maximum }: Json): number {
  const low = Number(minimum ?? (exclusiveMinimum === undefined ? 0 : Number(exclusiveMinimum) + 1))
  return Math.max(low, Math.min(1, Number(maximum ?? 1)))
}
