import { Ajv2020 } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'

type Schema = {
  $ref?: string
  properties?: Record<string, Schema>
  additionalProperties?: unknown
  patternProperties?: unknown
  items?: Schema
  anyOf?: Schema[]
  allOf?: Schema[]
}
type Response = { content?: Record<string, { schema?: Schema }> }
type Operation = { responses: Record<string, Response & { $ref?: string }> }
export type OpenApiDocument = {
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, Schema>; responses?: Record<string, Response> }
}
type TestResponse = { status: number; headers: Headers; text: string; body: unknown }

/** Checks responses against the OpenAPI document: status, media type, schema and undescribed members. */
export function createResponseChecker(document: OpenApiDocument) {
  const ajv = new Ajv2020({ strict: false, allErrors: true })
  formats.default(ajv)
  ajv.addFormat('binary', true)
  ajv.addSchema({ ...document, $id: 'description' })
  const patterns = Object.keys(document.paths)
    .map((path) => ({ path, pattern: toPattern(path), parameterCount: path.split('{').length }))
    .sort((a, b) => a.parameterCount - b.parameterCount)

  const validators = new Map<string, ReturnType<typeof ajv.compile>>()
  const compile = ($ref: string) => {
    const validator = validators.get($ref) ?? ajv.compile({ $ref })
    validators.set($ref, validator)
    return validator
  }

  /** What in a response is not as described; empty when everything is. */
  const findDeviations = (method: string, path: string, response: TestResponse): string[] => {
    const pathname = path.split('?')[0]!
    const name = method.toLowerCase()
    const match = patterns.find(
      (candidate) => candidate.pattern.test(pathname) && document.paths[candidate.path]![name],
    )
    if (!match) return [`${method} ${pathname} is not described`]
    const label = `${method} ${match.path} ${response.status}`
    const described = document.paths[match.path]![name]!.responses[response.status]
    const shared = described?.$ref?.split('/').at(-1)
    const responseObject = shared ? document.components.responses![shared] : described
    if (!responseObject) return [`${label} is not described: ${response.text.slice(0, 200)}`]
    if (response.text === '') return []
    const type = response.headers.get('content-type')!.split(';')[0]!
    const schema = responseObject.content?.[type]?.schema
    if (!schema) return [`${label} is not described as ${type}`]
    if (type !== 'application/json') return []
    const place = shared
      ? ['components', 'responses', shared]
      : ['paths', match.path, name, 'responses', String(response.status)]
    const keys = [...place, 'content', type, 'schema']
    const valid = compile(`description#/${keys.map(escapeKey).join('/')}`)
    if (!valid(response.body))
      return valid.errors!.slice(0, 3).map(({ instancePath, message }) => `${label}: ${instancePath} ${message}`)
    return [...new Set(unknownMembers(schema, response.body))].map((member) => `${label}: ${member} is not described`)
  }

  const resolveReference = (schema: Schema): Schema =>
    schema.$ref ? document.components.schemas[schema.$ref.split('/').at(-1)!]! : schema

  const unknownMembers = (schemaOrRef: Schema, value: unknown, at = ''): string[] => {
    const schema = resolveReference(schemaOrRef)
    if (schema.anyOf)
      return schema.anyOf
        .map((candidate) => unknownMembers(candidate, value, at))
        .sort((a, b) => a.length - b.length)[0]!
    if (schema.allOf) {
      const properties = Object.assign({}, ...schema.allOf.map((candidate) => resolveReference(candidate).properties))
      return unknownMembers({ properties }, value, at)
    }
    if (Array.isArray(value)) return value.flatMap((item) => unknownMembers(schema.items ?? {}, item, `${at}[]`))
    if (typeof value !== 'object' || value === null || !schema.properties) return []
    const isOpen = Boolean(schema.additionalProperties ?? schema.patternProperties)
    return Object.entries(value).flatMap(([name, member]) => {
      const property = schema.properties![name]
      if (property) return unknownMembers(property, member, `${at}.${name}`)
      return isOpen ? [] : [`${at}.${name}`]
    })
  }

  return { findDeviations }
}

const escapeKey = (key: string) => encodeURIComponent(key.replaceAll('~', '~0').replaceAll('/', '~1'))

const toPattern = (path: string) =>
  new RegExp(
    `^${path
      .replaceAll('.', '\\.')
      .replaceAll('{tile}', '.+')
      .replace(/\{[^}]+\}/g, '[^/]+')}$`,
  )
