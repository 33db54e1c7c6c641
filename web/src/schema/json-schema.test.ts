import { expect, test } from 'vitest'
import schemas from '../generated/request-schemas.json' with { type: 'json' }
import { fieldsAt, findSchemaErrors, literalsOf, type Schema, type Schemas } from './json-schema.ts'

const all = schemas as unknown as Schemas
const errorsOf = (name: string, value: unknown) =>
  findSchemaErrors(all, all[name]!, value).map(({ path, message }) => `${path} ${message}`)

/** Every word of JSON schema that `findSchemaErrors` reads, or that says nothing about the value. */
const READ_KEYWORDS = new Set([
  ...['$ref', 'type', 'properties', 'required', 'additionalProperties', 'minProperties', 'items', 'minItems'],
  ...['maxItems', 'uniqueItems', 'anyOf', 'oneOf', 'discriminator', 'enum', 'const', 'minimum', 'maximum'],
  ...['exclusiveMinimum', 'minLength', 'maxLength', 'pattern', 'format', 'x-name', 'x-form'],
  ...['description', 'default', 'title', 'example', 'examples'],
])

test('every keyword of the requests is read', () => {
  const unread = new Set<string>()
  const visit = (schema: Schema) => {
    for (const keyword of Object.keys(schema)) if (!READ_KEYWORDS.has(keyword)) unread.add(keyword)
    for (const part of [...Object.values(schema.properties ?? {}), ...(schema.anyOf ?? []), ...(schema.oneOf ?? [])])
      visit(part)
    if (schema.items) visit(schema.items)
  }
  Object.values(all).forEach(visit)
  expect([...unread]).toEqual([])
})

test('a valid policy, budget and mandate have no errors', () => {
  const rules = [{ field: 'lane', op: 'in', value: ['writer-v1'], effect: 'deny' }]
  const constraints = { max_per_run_usdc: 0.02, allowed_hours_utc: { start: 8, end: 18 }, require_mandate: true }
  expect(errorsOf('PolicyCreate', { name: 'A', mode: 'enforce', constraints, rules })).toEqual([])
  expect(errorsOf('BudgetUpdateRequest', { budget_id: 'a', scope: { type: 'tenant' }, limit_usdc: 1 })).toEqual([])
  expect(
    errorsOf('MandateCreate', {
      name: 'A',
      constraints: [{ type: 'payment.budget', currency: 'USDC', max: 5 }],
      expires_at: '2030-01-01T00:00:00Z',
    }),
  ).toEqual([])
})

test('an error names the path and what would be right', () => {
  expect(errorsOf('PolicyCreate', { constraints: { max_per_run_usdc: '1' } })).toEqual([
    'constraints.max_per_run_usdc must be a number.',
  ])
  expect(errorsOf('PolicyCreate', { constraints: { max_per_run_usd: 1 } })).toEqual([
    'constraints.max_per_run_usd is not a field here. Is it max_per_run_usdc?',
  ])
  expect(errorsOf('PolicyCreate', { mode: 'maybe' })).toEqual(['mode must be "enforce" or "warn" or "shadow".'])
  expect(errorsOf('PolicyCreate', { rules: [{ field: 'lane', op: 'eq', value: 'a', effect: 'no' }] })).toEqual([
    'rules[0].effect must be "allow" or "deny" or "review".',
  ])
  expect(errorsOf('PolicyCreate', { rules: [{ field: 'lane', op: 'eq', effect: 'deny' }] })).toEqual([
    'rules[0].value is missing.',
  ])
  expect(errorsOf('PolicyCreate', { constraints: { allowed_hours_utc: { start: 25, end: 3 } } })).toEqual([
    'constraints.allowed_hours_utc.start must be 23 at most.',
  ])
  expect(errorsOf('PolicyCreate', { constraints: { allowed_agents: ['a', ' b'] } })).toEqual([
    'constraints.allowed_agents[1] must not begin or end with white space.',
  ])
  expect(errorsOf('PolicyCreate', [])).toEqual([' must be an object.'])
  expect(errorsOf('MandateCreate', { name: '', constraints: [{ type: 'payment.gift' }] })[0]).toBe(
    'name must not be empty.',
  )
  expect(errorsOf('MandateCreate', { name: 'A', constraints: [{ type: 'payment.budget', currency: 'USDC' }] })).toEqual(
    ['constraints[0].max is missing.'],
  )
})

test('the fields of an object at a path are listed with type and help', () => {
  const names = (path: (string | number)[]) => fieldsAt(all, all.PolicyCreate!, path).map(({ name }) => name)
  expect(names(['rules', 0])).toEqual(['field', 'op', 'value', 'effect', 'reason'])
  expect(names(['constraints'])).toContain('max_per_day_usdc')
  expect(names(['nowhere', 3])).toEqual([])
  const field = fieldsAt(all, all.PolicyCreate!, ['constraints']).find(({ name }) => name === 'allowed_agents')
  expect(field).toMatchObject({ type: 'a list of texts', description: 'Only these agents. An empty list allows none.' })
  expect(literalsOf(all, all.PolicyCreate!.properties!.mode!)).toEqual(['enforce', 'warn', 'shadow'])
})
