import { readdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type pg from 'pg'
import { Type } from 'typebox'
import { Check } from 'typebox/value'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { StepDefinition } from '../src/platform/sql-step.ts'
import { createTestDatabase } from './harness.ts'

/**
 * Every SQL step is called with a value made from its schema, on a connection whose JSON operators report each key that
 * they read. A key that SQL reads and the schema lacks would be a silent NULL; a key that SQL never reads is an error too.
 */
const source = resolve(import.meta.dirname, '../src')
const files = readdirSync(source, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.steps.ts'))
const isStep = (value: unknown): value is StepDefinition =>
  typeof value === 'object' && value !== null && 'name' in value && 'input' in value && 'answer' in value
const definitions = (
  await Promise.all(files.map(async (name) => Object.values(await import(pathToFileURL(join(source, name)).href))))
)
  .flat()
  .filter(isStep)

/** Steps whose input has no schema yet. Do not add to this list. */
const untypedStepNames = [
  'abandon_run',
  'admit_and_keep_run',
  'admit_run',
  'close_preauth',
  'complete_run',
  'escalate_preauth',
  'expire_approval',
  'finish_refund',
  'keep_and_complete_run',
  'keep_run',
  'note_arrival',
  'open_preauth',
  'record_refusal',
  'resolve_approval',
]

/** The JSON Schema keywords that the schemas of steps use. */
type Schema = {
  type?: string
  const?: Json
  format?: string
  pattern?: string
  properties?: Record<string, Schema>
  items?: Schema
  anyOf?: Schema[]
}
type Json = string | number | boolean | null | Json[] | { [key: string]: Json }
/** `input` replaces values of the sample by their path. */
type Case = { prepare: string[]; input: Record<string, Json> }

const TENANT = `insert into tenants (id, org_name, email, created_at, updated_at) values ('ten_1', 'Tenant', 't@example.com', now(), now())`
const RUN = `insert into runs (id, kind, action, agent_id, session_id, loop_id, state, outcome, request_hash, request, terms, price_micro, created_at, deadline_at)
   values ('run_1', 'run', 'run', 'default', 'ses_1', 'loop_1', 'settling', 'pending', 'h', '{}', '{}', 10000, now(), now())`
const SETTLEMENT = (state: string) => [
  TENANT,
  RUN,
  `insert into settlements (id, run_id, method, state, network, asset, payer, pay_to, amount_micro, nonce, valid_before, payment, created_at, updated_at)
   values ('stl_1', 'run_1', 'x402', '${state}', 'n', 'a', 'p', 't', 10000, 'nonce', 4000000000, '{}', now(), now())`,
]
const DELIVERY = [
  TENANT,
  `insert into webhook_subscriptions (id, tenant_id, url, events, secret, is_active, standing, created_at, updated_at)
   values ('whk_1', 'ten_1', 'http://127.0.0.1/', '{run.completed}', 's', true, 'good', now(), now())`,
  `insert into events (id, tenant_id, type, data, created_at) values ('evt_1', 'ten_1', 'run.completed', '{}', now())`,
  `insert into webhook_deliveries (id, subscription_id, tenant_id, event_id, seq, state, next_attempt_at, claim, created_at)
   values ('dlv_1', 'whk_1', 'ten_1', 'evt_1', 1, 'pending', now(), 'worker', now())`,
]

/** The rows a step needs, and one case for each branch that reads other keys. */
const cases: Record<string, Case[]> = {
  emit_event: [{ prepare: [TENANT], input: { tenant_id: 'ten_1' } }],
  audit_event: [{ prepare: [TENANT], input: { tenant_id: 'ten_1' } }],
  issue_receipt: [{ prepare: [TENANT], input: { tenant_id: 'ten_1' } }],
  write_memory: [{ prepare: [TENANT, RUN], input: { tenant_id: 'ten_1', run_id: 'run_1' } }],
  raise_alert: [{ prepare: [TENANT], input: { tenant_id: 'ten_1' } }],
  define_limit: [{ prepare: [TENANT], input: { tenant_id: 'ten_1' } }],
  finish_delivery: [
    { prepare: DELIVERY, input: { id: 'dlv_1', claim: 'worker', ok: true } },
    { prepare: DELIVERY, input: { id: 'dlv_1', claim: 'worker', ok: false } },
  ],
  note_unknown: [
    { prepare: SETTLEMENT('pending'), input: { settlement_id: 'stl_1', 'event.tenant_id': 'ten_1' } },
    { prepare: SETTLEMENT('settled'), input: { settlement_id: 'stl_1' } },
  ],
}

// Reported as notices, because an exception undoes rows but not notices.
const REPORTING_OPERATORS = `
  create schema reporting;
  create function reporting.report(value jsonb, key text) returns void language plpgsql as $$
  begin
    raise notice 'step key %', jsonb_build_object('value', value, 'key', key);
  end $$;
  create function reporting.get(value jsonb, key text) returns jsonb language plpgsql as $$
  begin
    perform reporting.report(value, key);
    return jsonb_object_field(value, key);
  end $$;
  create function reporting.get_text(value jsonb, key text) returns text language plpgsql as $$
  begin
    perform reporting.report(value, key);
    return jsonb_object_field_text(value, key);
  end $$;
  create function reporting.get_path(value jsonb, path text[]) returns jsonb language plpgsql as $$
  begin
    for depth in 1 .. cardinality(path) loop
      perform reporting.report(value, path[depth]);
      value := jsonb_object_field(value, path[depth]);
    end loop;
    return value;
  end $$;
  create function reporting.get_path_text(value jsonb, path text[]) returns text language plpgsql as $$
  begin
    return reporting.get_path(value, path) operator(pg_catalog.#>>) '{}';
  end $$;
  create function reporting.has(value jsonb, key text) returns boolean language plpgsql as $$
  begin
    perform reporting.report(value, key);
    return jsonb_exists(value, key);
  end $$;
  create operator reporting.-> (leftarg = jsonb, rightarg = text, function = reporting.get);
  create operator reporting.->> (leftarg = jsonb, rightarg = text, function = reporting.get_text);
  create operator reporting.#> (leftarg = jsonb, rightarg = text[], function = reporting.get_path);
  create operator reporting.#>> (leftarg = jsonb, rightarg = text[], function = reporting.get_path_text);
  create operator reporting.? (leftarg = jsonb, rightarg = text, function = reporting.has);`

let scratch: Awaited<ReturnType<typeof createTestDatabase>>
let client: pg.Client
beforeAll(async () => {
  scratch = await createTestDatabase()
  const database = scratch.open(1)
  client = await database.connect()
  await client.query(REPORTING_OPERATORS)
  await client.query('set client_min_messages = notice; set search_path = reporting, pg_catalog, public')
  await database.close()
})
afterAll(async () => {
  await client.end()
  await scratch.drop()
})

test('every step has a schema and cases, except the listed ones', () => {
  const isUntyped = ({ input }: StepDefinition) => JSON.stringify(input) === JSON.stringify(Type.Unknown())
  const names = (steps: StepDefinition[]) => steps.map(({ name }) => name).sort()
  expect(names(definitions.filter(isUntyped))).toEqual(untypedStepNames)
  expect(names(definitions.filter((step) => !isUntyped(step)))).toEqual(Object.keys(cases).sort())
})

describe.each(definitions.filter(({ name }) => name in cases))('$name', (definition) => {
  test('reads exactly the keys of its input schema, and its answer matches the answer schema', async () => {
    const { missing, unread, answers } = await callWithReport(definition)
    expect({ missing, unread }).toEqual({ missing: [], unread: [] })
    for (const answer of answers) {
      if ((definition.answer as Schema).type === 'void') expect(answer).toBeNull()
      else expect(Check(definition.answer, answer), JSON.stringify(answer)).toBe(true)
    }
  })

  test('a key renamed in SQL is detected', async () => {
    const { rows } = await client.query<{ source: string }>(
      `select pg_get_functiondef(oid) as source from pg_proc where proname = $1 and pronamespace = 'public'::regnamespace`,
      [definition.name],
    )
    const original = rows[0]!.source
    const required = Object.keys((definition.input as Schema).properties!).filter((key) =>
      original.includes(`>'${key}'`),
    )
    expect(required.length).toBeGreaterThan(0)
    for (const key of required) {
      await client.query(original.replaceAll(`>'${key}'`, `>'${key}_renamed'`))
      const { missing, unread } = await callWithReport(definition)
      expect(missing, key).toContain(`${key}_renamed`)
      expect(unread, key).toContain(key)
    }
    await client.query(original)
  })
})

async function callWithReport(definition: StepDefinition) {
  const shape = shapeOf(definition.input as Schema)
  const read = new Set<string>()
  const missing = new Set<string>()
  const answers: unknown[] = []
  for (const { prepare, input: replacements } of cases[definition.name]!) {
    const input = sample(definition.input as Schema)
    for (const [path, value] of Object.entries(replacements)) replaceAt(input, path.split('.'), value)
    const paths = pathsOf(input)
    const report = ({ message }: { message?: string }) => {
      if (!message?.startsWith('step key ')) return
      const { value, key } = JSON.parse(message.slice('step key '.length)) as { value: Json; key: string }
      const path = paths.get(stable(value))
      if (path === undefined || shape.opaque.has(path)) return
      const full = path === '' ? key : `${path}.${key}`
      if (shape.keys.has(full)) read.add(full)
      else missing.add(full)
    }
    await client.query('begin')
    for (const statement of prepare) await client.query(statement)
    client.on('notice', report)
    try {
      const { rows } = await client.query(`select ${definition.name}($1::jsonb) as answer`, [JSON.stringify(input)])
      answers.push(rows[0].answer)
    } catch (error) {
      // A renamed key may break a constraint; the keys have been reported by then.
      answers.push(error)
    } finally {
      await client.query('rollback')
      client.off('notice', report)
    }
  }
  return { missing: [...missing], unread: [...shape.keys].filter((key) => !read.has(key)), answers }
}

/** The paths of all keys of a schema. A value that is stored whole as JSON is opaque: its keys are not listed. */
function shapeOf(schema: Schema, path = '', keys = new Set<string>(), opaque = new Set<string>()) {
  const variant = firstVariant(schema)
  const properties = Object.entries(variant.properties ?? {})
  if (variant.type === 'object' && properties.length === 0) opaque.add(path)
  for (const [name, property] of properties) {
    const full = path === '' ? name : `${path}.${name}`
    keys.add(full)
    shapeOf(property, full, keys, opaque)
  }
  return { keys, opaque }
}

const firstVariant = (schema: Schema): Schema =>
  schema.anyOf ? firstVariant(schema.anyOf.find(({ type }) => type !== 'null')!) : schema

let unique = 0
/** A value of the schema in which every leaf is different, so that an object can be identified by its content. */
function sample(schema: Schema): Json {
  const { type, const: literal, format, pattern, properties, items } = firstVariant(schema)
  unique += 1
  if (literal !== undefined) return literal
  if (type === 'string') {
    if (format === 'date-time') return new Date(Date.UTC(2026, 0, 1) + unique * 1_000).toISOString()
    return pattern ? `${unique}` : `text-${unique}`
  }
  if (type === 'integer' || type === 'number') return unique
  if (type === 'boolean') return true
  if (type === 'array') return [sample(items!)]
  const members = Object.entries(properties ?? {})
  if (type === 'object' && members.length === 0) return { [`stored_${unique}`]: unique }
  if (type === 'object') return Object.fromEntries(members.map(([name, member]) => [name, sample(member)]))
  throw new Error(`No sample for ${JSON.stringify(schema)}`)
}

function replaceAt(value: Json, [name, ...rest]: string[], replacement: Json) {
  const object = value as Record<string, Json>
  if (rest.length === 0) object[name!] = replacement
  else replaceAt(object[name!]!, rest, replacement)
}

function pathsOf(value: Json, path = '', paths = new Map<string, string>()): Map<string, string> {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return paths
  paths.set(stable(value), path)
  for (const [name, member] of Object.entries(value)) pathsOf(member, path === '' ? name : `${path}.${name}`, paths)
  return paths
}

/** JSON with sorted keys: PostgreSQL stores an object's keys in an order of its own. */
function stable(value: Json): string {
  return JSON.stringify(value, (_, item: Json) =>
    item !== null && typeof item === 'object' && !Array.isArray(item)
      ? Object.fromEntries(Object.entries(item).sort(([a], [b]) => (a < b ? -1 : 1)))
      : item,
  )
}
