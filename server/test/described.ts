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
type Operation = { responses: Record<string, { content?: Record<string, { schema?: Schema }> }> }
export type Description = {
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, Schema> }
}
type Answer = { status: number; headers: Headers; text: string; body: unknown }

/** Holds answers against the machine description: status, media type, schema, and members that nobody described. */
export function createDescribed(description: Description) {
  const ajv = new Ajv2020({ strict: false, allErrors: true })
  formats.default(ajv)
  ajv.addFormat('binary', true)
  ajv.addSchema({ ...description, $id: 'description' })
  const patterns = Object.keys(description.paths)
    .map((path) => ({ path, fits: patternOf(path), names: path.split('{').length }))
    .sort((a, b) => a.names - b.names)

  /** What an answer does that the description does not say; empty when it is as described. */
  const faults = (method: string, path: string, answer: Answer): string[] => {
    const bare = path.split('?')[0]!
    const name = method.toLowerCase()
    const found = patterns.find((one) => one.fits.test(bare) && description.paths[one.path]![name])
    if (!found) return [`${method} ${bare} is not described`]
    const where = `${method} ${found.path} ${answer.status}`
    const described = description.paths[found.path]![name]!.responses[answer.status]
    if (!described) return [`${where} is not described: ${answer.text.slice(0, 200)}`]
    if (answer.text === '') return []
    const type = answer.headers.get('content-type')!.split(';')[0]!
    const schema = described.content?.[type]?.schema
    if (!schema) return [`${where} is not described as ${type}`]
    if (type !== 'application/json') return []
    const keys = ['paths', found.path, name, 'responses', String(answer.status), 'content', type, 'schema']
    const valid = ajv.compile({ $ref: `description#/${keys.map(escapeKey).join('/')}` })
    if (!valid(answer.body))
      return valid.errors!.slice(0, 3).map(({ instancePath, message }) => `${where}: ${instancePath} ${message}`)
    return [...new Set(unknownMembers(schema, answer.body))].map((member) => `${where}: ${member} is not described`)
  }

  const unknownMembers = (given: Schema, value: unknown, at = ''): string[] => {
    const schema = given.$ref ? description.components.schemas[given.$ref.split('/').at(-1)!]! : given
    if (schema.anyOf)
      return schema.anyOf.map((one) => unknownMembers(one, value, at)).sort((a, b) => a.length - b.length)[0]!
    if (schema.allOf) {
      const properties = Object.assign({}, ...schema.allOf.map((one) => one.properties))
      return unknownMembers({ properties }, value, at)
    }
    if (Array.isArray(value)) return value.flatMap((item) => unknownMembers(schema.items ?? {}, item, `${at}[]`))
    if (typeof value !== 'object' || value === null || !schema.properties) return []
    const open = Boolean(schema.additionalProperties ?? schema.patternProperties)
    return Object.entries(value).flatMap(([name, member]) => {
      const known = schema.properties![name]
      if (known) return unknownMembers(known, member, `${at}.${name}`)
      return open ? [] : [`${at}.${name}`]
    })
  }

  return { faults }
}

const escapeKey = (key: string) => encodeURIComponent(key.replaceAll('~', '~0').replaceAll('/', '~1'))

const patternOf = (path: string) =>
  new RegExp(
    `^${path
      .replaceAll('.', '\\.')
      .replaceAll('{*}', '.+')
      .replace(/\{[^}]+\}/g, '[^/]+')}$`,
  )
