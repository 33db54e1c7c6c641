import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { Ajv2020 } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import { expect, test } from 'vitest'

type Media = Record<string, { schema?: Record<string, unknown>; example?: unknown }>
type Parameter = { name: string; in: string; example?: unknown; required?: boolean }
type Operation = {
  operationId: string
  summary: string
  description: string
  tags: string[]
  security: Record<string, unknown>[]
  deprecated?: boolean
  parameters?: Parameter[]
  requestBody?: { content: Media }
  responses: Record<string, { description: string; content?: Media; headers?: Record<string, unknown> }>
  'x-payment-info'?: { price: Record<string, string>; protocols: unknown[] }
}

// `npm run gen` writes it, and `gen:check` fails when it differs from what the service serves.
const text = readFileSync(resolve(import.meta.dirname, '../../openapi.json'), 'utf8')
const document = JSON.parse(text) as {
  info: Record<string, unknown>
  tags: { name: string; description: string }[]
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, Record<string, unknown>>; securitySchemes: Record<string, unknown> }
}
const operations = Object.entries(document.paths).flatMap(([path, item]) =>
  Object.entries(item).map(([method, operation]) => ({ path, method, operation, name: `${method} ${path}` })),
)
const failing = (isBroken: (entry: (typeof operations)[number]) => boolean) =>
  operations.filter(isBroken).map(({ name }) => name)

const pointer = (...keys: string[]) =>
  `description#/${keys.map((key) => encodeURIComponent(key.replaceAll('~', '~0').replaceAll('/', '~1'))).join('/')}`

const ajv = new Ajv2020({ strict: false, allErrors: true })
formats.default(ajv)
ajv.addFormat('binary', true)
ajv.addSchema({ ...document, $id: 'description' })

test('every operation has a summary, a description, known tags and its security', () => {
  const tags = document.tags.map(({ name }) => name)
  expect(failing(({ operation }) => !operation.summary || !operation.description || !operation.security)).toEqual([])
  expect(failing(({ operation }) => operation.tags.length !== 1 || !tags.includes(operation.tags[0]!))).toEqual([])
  const schemes = Object.keys(document.components.securitySchemes)
  const named = operations.flatMap(({ operation }) => operation.security.flatMap(Object.keys))
  expect(named.filter((name) => !schemes.includes(name))).toEqual([])
  // A 308 is followed with the same credential: the former path itself asks for none.
  expect(failing(({ operation }) => operation.deprecated === true && operation.security.length > 0)).toEqual([])
})

test('every operation has an example of its body and of its answer, which its schemas accept', () => {
  const deviations: string[] = []
  for (const { path, method, operation, name } of operations) {
    const success = Object.keys(operation.responses).find((status) => status.startsWith('2'))
    const parts: [Media | undefined, string[]][] = [
      [operation.requestBody?.content, ['requestBody']],
      [success && operation.responses[success]!.content, ['responses', success ?? '']],
    ].filter((part): part is [Media, string[]] => part[0] !== undefined)
    for (const [media, keys] of parts) {
      const json = media?.['application/json']
      if (!json) continue
      if (json.example === undefined) {
        deviations.push(`${name} ${keys[0]} has no example`)
        continue
      }
      const validate = ajv.compile({
        $ref: pointer('paths', path, method, ...keys, 'content', 'application/json', 'schema'),
      })
      if (!validate(json.example))
        deviations.push(
          `${name} ${keys[0]}: ${validate.errors!.slice(0, 2).map(({ instancePath, message }) => `${instancePath} ${message}`)}`,
        )
    }
    for (const parameter of operation.parameters ?? [])
      if (parameter.in === 'path' && parameter.example === undefined) deviations.push(`${name} {${parameter.name}}`)
  }
  expect(deviations).toEqual([])
})

test('paid operations name their price and their headers, and read as paid rather than as for keys only', () => {
  const paid = operations.filter(({ operation }) => operation.responses['402'])
  expect(paid.map(({ path }) => path).sort()).toEqual(['/api/loop', '/api/run', '/api/wallets/{id}/topup'])
  for (const { operation, path } of paid) {
    const { price, protocols } = operation['x-payment-info']!
    expect(price).toMatchObject({ mode: 'dynamic', currency: 'USD' })
    expect(Number(price.min)).toBeGreaterThan(0)
    expect(Number(price.max)).toBeGreaterThan(Number(price.min))
    expect(protocols).toEqual([{ x402: {} }])
    const headers = operation.parameters!.filter((parameter) => parameter.in === 'header').map(({ name }) => name)
    for (const name of ['PAYMENT-SIGNATURE', 'X-PAYMENT', 'Idempotency-Key']) expect(headers).toContain(name)
    expect(Object.keys(operation.responses['402']!.headers!)).toEqual(['PAYMENT-REQUIRED'])
    expect(Object.keys(operation.responses['200']!.headers!)).toEqual(['PAYMENT-RESPONSE', 'X-PAYMENT-RESPONSE'])
    if (path !== '/api/wallets/{id}/topup') {
      expect(operation.security).toEqual([])
      expect(headers).toContain('X-API-Key')
    }
  }
})

test('what creates or spends declares Idempotency-Key', () => {
  const hasKeyInBody = ({ operation }: (typeof operations)[number]) => {
    const schema = operation.requestBody?.content['application/json']?.schema
    const name = (schema?.$ref as string | undefined)?.split('/').at(-1)
    const { properties = {} } = (name ? document.components.schemas[name]! : (schema ?? {})) as { properties?: object }
    return 'idempotency_key' in properties
  }
  const declares = ({ operation }: (typeof operations)[number]) =>
    (operation.parameters ?? []).some(({ name }) => name === 'Idempotency-Key')
  expect(operations.filter(hasKeyInBody).length).toBeGreaterThan(20)
  expect(failing((entry) => hasKeyInBody(entry) !== declares(entry))).toEqual([])
})

test('bodies and answers are named components, enumerations are enums, and parameters stand in their path', () => {
  const isInline = (media: Media | undefined) => {
    const schema = media?.['application/json']?.schema
    return schema?.type === 'object' && Object.keys((schema.properties ?? {}) as object).length > 0
  }
  const inline = failing(
    ({ operation }) =>
      isInline(operation.requestBody?.content) ||
      Object.values(operation.responses).some(({ content }) => isInline(content)),
  )
  expect(inline).toEqual([])
  const unions: string[] = []
  const visit = (value: unknown, place: string) => {
    if (typeof value !== 'object' || value === null) return
    const { anyOf } = value as { anyOf?: { const?: unknown }[] }
    if (anyOf?.length && anyOf.every((variant) => 'const' in variant)) unions.push(place)
    for (const [key, member] of Object.entries(value)) visit(member, `${place}/${key}`)
  }
  visit(document, '')
  expect(unions).toEqual([])
  const misplaced = failing(({ path, operation }) => {
    const named = [...path.matchAll(/\{([^}]+)\}/g)].map(([, name]) => name)
    const declared = (operation.parameters ?? []).filter((parameter) => parameter.in === 'path').map(({ name }) => name)
    return named.sort().join() !== declared.sort().join() || named.some((name) => !/^\w+$/.test(name!))
  })
  expect(misplaced).toEqual([])
})

test('the document says whom to ask and how to begin, and stays small', () => {
  expect(document.info).toMatchObject({ contact: { url: expect.any(String) }, 'x-guidance': expect.any(String) })
  expect(JSON.stringify(document).length).toBeLessThan(700_000)
  expect(text.length).toBeLessThan(1_000_000)
})
