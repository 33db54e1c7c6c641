import type { Operation, Schema } from './operations.ts'
import type { Random } from './random.ts'
import type { Draft } from './recipes.ts'
import type { WireRequest } from './send.ts'

/** A draft with its credential, ready to be mutated and written to the wire. */
export type FuzzDraft = {
  method: string
  path: string
  params: Record<string, string>
  query: [string, string][]
  headers: [string, string][]
  body: unknown
  hasBody: boolean
}

export type Mutated = {
  wire: WireRequest
  mutations: string[]
  /** The request is no longer one of this operation: another method or path, a broken header. Any refusal with an error body is right. */
  isForeign: boolean
}

export type MutationContext = { operation: Operation; victimIds: readonly string[]; ownIds: readonly string[] }

const MAX_MUTATIONS = 3
/** Some requests are sent as they are, so that the state goes on changing between the broken ones. */
const UNCHANGED = 0.04

const LONE_HIGH = '\ud83d'
const LONE_LOW = '\udc00'

const texts = (random: Random, context: MutationContext): string =>
  random.pick<() => string>([
    () => '',
    () => ' ',
    () => '\u0000',
    () => `a\u0000b`,
    () => LONE_HIGH,
    () => `${LONE_LOW}text`,
    () => `half an emoji ${LONE_HIGH} inside`,
    () => '🦊'.repeat(1 + random.below(40)),
    () => '\u202eright to left\u202c',
    () => `e${'\u0301'.repeat(1 + random.below(600))}`,
    () => '\ufeff\ufffe\uffff',
    () => '\u001b[31mred\u001b[0m\r\n\t\b',
    () => "'; drop table runs; --",
    () => '%s%n%x%d',
    () => '{{7*7}}<%= 7*7 %>#{7*7}',
    () => '<script>alert(1)</script>',
    () => '../../../../etc/passwd',
    () =>
      random.pick([
        '__proto__',
        'constructor',
        'prototype',
        'toString',
        'hasOwnProperty',
        'valueOf',
        '__defineGetter__',
      ]),
    () => random.pick(['null', 'undefined', 'NaN', 'true', '0', '-1', '1e309', '0x10', '1_000']),
    () => random.pick(context.victimIds),
    () => random.pick(context.ownIds),
    () => random.pick(['a', '.', '(', '[', '{', '\\', '"', "'", '`', '-', '\n', '|']).repeat(1 + random.below(3_000)),
    () => 'x'.repeat(random.pick([79, 80, 81, 120, 121, 200, 201, 255, 256, 257, 500, 501, 2_001, 8_001])),
    () => 'x'.repeat(random.pick([32_000, 32_001, 70_000, 250_000])),
    () =>
      random.pick([
        '2026-02-30T00:00:00Z',
        '0000-01-01T00:00:00Z',
        '9999-12-31T23:59:59.999999999Z',
        '2026-11-15T24:00:00Z',
        '275760-09-13T00:00:00Z',
        '1969-12-31T23:59:59-23:59',
        '2026-11-15t10:00:00z',
        '-001000-01-01T00:00:00Z',
      ]),
    () => `0x${'0'.repeat(random.pick([40, 64, 3]))}`,
    () => `sha256:${'0'.repeat(64)}`,
    () =>
      random.pick([
        'http://127.0.0.1:1/',
        'https://[::1]/',
        'https://169.254.169.254/',
        'file:///etc/passwd',
        'https://host.invalid/a',
        'javascript:alert(1)',
        'https://user:pass@host.invalid/',
      ]),
    () => String.fromCharCode(...Array.from({ length: 1 + random.below(24) }, () => random.below(0xd7ff))),
  ])()

const numbers = (random: Random, schema: Schema): number => {
  const bounds = [schema.minimum, schema.maximum, schema.exclusiveMinimum, schema.exclusiveMaximum].filter(
    (bound) => bound !== undefined,
  )
  const steps = [-1, -0.000_001, 0, 0.000_001, 1]
  const near = bounds.flatMap((bound) => steps.map((step) => bound + step))
  return random.pick([
    ...near,
    ...near,
    0,
    -0,
    1,
    -1,
    0.1,
    1e-7,
    1e-20,
    1.0000005,
    123_456.789_012,
    2 ** 31,
    2 ** 32,
    2 ** 53 - 1,
    -(2 ** 53 - 1),
    9.007e15,
    1e21,
    1.7e308,
    5e-324,
  ])
}

const deep = (depth: number): unknown => {
  let value: unknown = 'bottom'
  for (let level = 0; level < depth; level += 1) value = level % 2 === 0 ? [value] : { a: value }
  return value
}

const oddValue = (random: Random, context: MutationContext): unknown =>
  random.pick<() => unknown>([
    () => null,
    () => random.chance(0.5),
    () => numbers(random, {}),
    () => texts(random, context),
    () => [],
    () => ({}),
    () => [null, [], {}],
    () => ({ __proto__: null, constructor: { prototype: { polluted: true } } }),
    () => ({ length: 1e9, toString: 'text', valueOf: 1 }),
    () => deep(random.pick([5, 20, 31, 33, 60])),
    () => Array.from({ length: random.pick([2, 51, 101, 201, 1_001]) }, (_, index) => index),
    () => Array.from({ length: 60 }, () => texts(random, context)),
    () => Object.fromEntries(Array.from({ length: random.pick([30, 300, 5_200]) }, (_, index) => [`k${index}`, index])),
  ])()

/** A value that the schema allows, or almost: the routes that check by hand are behind the validator. */
function sample(schema: Schema, random: Random, context: MutationContext, depth = 0): unknown {
  if (schema.const !== undefined) return schema.const
  if (schema.enum) return random.pick(schema.enum)
  const variants = schema.anyOf ?? schema.oneOf
  if (variants) return sample(random.pick(variants), random, context, depth)
  const type = Array.isArray(schema.type) ? random.pick(schema.type) : schema.type
  if (type === 'object' || schema.properties) {
    if (!schema.properties || depth > 5) return random.chance(0.3) ? { a: 1, b: ['c'] } : {}
    const required = new Set(schema.required ?? [])
    return Object.fromEntries(
      Object.entries(schema.properties)
        .filter(([name]) => required.has(name) || random.chance(0.3))
        .map(([name, property]) => [name, sample(property, random, context, depth + 1)]),
    )
  }
  if (type === 'array')
    return Array.from({ length: (schema.minItems ?? 0) + random.below(4) }, () =>
      sample(schema.items ?? {}, random, context, depth + 1),
    )
  if (type === 'integer') return Math.round(numberWithin(schema, random))
  if (type === 'number') return numberWithin(schema, random)
  if (type === 'boolean') return random.chance(0.5)
  if (type === 'null') return null
  if (type === 'string') return sampleText(schema, random, context)
  return oddValue(random, context)
}

function numberWithin(schema: Schema, random: Random): number {
  const low = schema.minimum ?? schema.exclusiveMinimum ?? -1_000
  const high = schema.maximum ?? schema.exclusiveMaximum ?? 1_000_000
  if (random.chance(0.3)) return random.chance(0.5) ? low : high
  // Most limits are amounts of money; small ones let more requests through.
  const span = random.chance(0.7) ? Math.min(high - low, 10) : high - low
  return Number((low + random.next() * span).toFixed(random.pick([0, 2, 6, 7])))
}

function sampleText(schema: Schema, random: Random, context: MutationContext): string {
  if (schema.format === 'date-time')
    return new Date(Date.now() + (random.next() - 0.5) * 10 ** (4 + random.below(9))).toISOString()
  if (schema.format === 'email') return `a${random.below(1e9)}@example.com`
  if (schema.format === 'uuid') return '01a1de22-2381-770e-b99a-abc7cd767945'
  const min = schema.minLength ?? 0
  const max = Math.min(schema.maxLength ?? 40, 40_000)
  if (random.chance(0.25)) return 'x'.repeat(random.pick([min, max]))
  if (schema.pattern?.includes('0x')) return `0x${'1'.repeat(schema.pattern.includes('64') ? 64 : 40)}`
  if (schema.pattern?.includes('[0-9]')) return String(1 + random.below(100_000))
  return random.chance(0.5)
    ? texts(random, context)
    : random.pick(['shop', 'buyer', 'comedian-v1', 'analyst-v1', 'USDC', 'gt', 'amount_usdc', 'merchant', 'in', 'eq'])
}

type Place = { holder: Record<string, unknown> | unknown[]; key: string | number; schema: Schema }

/** Every member of a value, with its schema where there is one, and every described member that is absent. */
function placesOf(value: unknown, schema: Schema | undefined, places: Place[] = []): Place[] {
  const objectSchema = schema?.properties ? schema : (schema?.anyOf?.find((variant) => variant.properties) ?? schema)
  if (Array.isArray(value)) {
    for (const [key, item] of value.entries()) {
      places.push({ holder: value, key, schema: objectSchema?.items ?? {} })
      placesOf(item, objectSchema?.items, places)
    }
    return places
  }
  if (typeof value !== 'object' || value === null) return places
  const holder = value as Record<string, unknown>
  for (const key of new Set([...Object.keys(holder), ...Object.keys(objectSchema?.properties ?? {})])) {
    places.push({ holder, key, schema: objectSchema?.properties?.[key] ?? {} })
    if (Object.hasOwn(holder, key)) placesOf(holder[key], objectSchema?.properties?.[key], places)
  }
  return places
}

function setMember(place: Place, value: unknown) {
  if (Array.isArray(place.holder)) place.holder[place.key as number] = value
  // `__proto__` becomes a member like any other, not the prototype.
  else Object.defineProperty(place.holder, place.key, { value, enumerable: true, configurable: true, writable: true })
}

/** Changes one member of a JSON value; its name says how. */
function mutateValue(
  root: { value: unknown },
  schema: Schema | undefined,
  random: Random,
  context: MutationContext,
): string {
  const places = placesOf(root, schema && { properties: { value: schema } })
  const place = random.pick(places)
  const at = String(place.key)
  const kind = random.below(10)
  if (kind === 0 && place.key !== 'value' && !Array.isArray(place.holder)) {
    delete place.holder[place.key as string]
    return `without ${at}`
  }
  if (kind <= 2) {
    setMember(place, oddValue(random, context))
    return `odd value in ${at}`
  }
  if (kind <= 5) {
    setMember(place, sample(place.schema, random, context))
    return `other value in ${at}`
  }
  if (kind === 6) {
    setMember(place, texts(random, context))
    return `odd text in ${at}`
  }
  if (kind === 7) {
    setMember(place, boundary(place.schema, random, context))
    return `boundary in ${at}`
  }
  if (kind === 8) {
    setMember(place, random.pick(context.victimIds))
    return `id of another tenant in ${at}`
  }
  const target = random.chance(0.5) ? place.holder : root.value
  if (typeof target !== 'object' || target === null || Array.isArray(target)) {
    setMember(place, oddValue(random, context))
    return `odd value in ${at}`
  }
  const name = random.pick([
    '__proto__',
    'constructor',
    'prototype',
    'unknown',
    'tenant_id',
    'id',
    'idempotency_key',
    '',
  ])
  setMember({ holder: target as Record<string, unknown>, key: name, schema: {} }, oddValue(random, context))
  return `member ${name} added`
}

function boundary(schema: Schema, random: Random, context: MutationContext): unknown {
  if (schema.type === 'number' || schema.type === 'integer') return numbers(random, schema)
  if (schema.type === 'string' && (schema.maxLength || schema.minLength)) {
    const length = random.pick([(schema.minLength ?? 1) - 1, schema.maxLength ?? 40, (schema.maxLength ?? 40) + 1])
    return random.pick(['x', '🦊', 'é', ' ']).repeat(Math.max(0, length))
  }
  if (schema.type === 'array') {
    const length = random.pick([0, schema.maxItems ?? 50, (schema.maxItems ?? 50) + 1])
    return Array.from({ length }, () => sample(schema.items ?? {}, random, context))
  }
  return oddValue(random, context)
}

/** JSON text in which every character outside ASCII is an escape, as lone surrogates can only be sent so. */
const escapeJson = (text: string) =>
  text.replace(/[\u007f-\uffff]/g, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)

function mutateText(json: string, random: Random): { name: string; body: Buffer } {
  const text = (name: string, changed: string) => ({ name, body: Buffer.from(changed) })
  const cut = random.below(json.length + 1)
  return random.pick<() => { name: string; body: Buffer }>([
    () => text('truncated JSON', json.slice(0, cut)),
    () => text('text after the JSON', `${json}${random.pick(['}', '{}', ',', 'null', '\u0000', ' \n '])}`),
    () =>
      text(
        'duplicate key',
        json.replace(/^\{("[^"]*":)/, (_match, key) => `{${key}1,${key}`),
      ),
    () =>
      text(
        'number too large',
        json.replace(
          /\d+(\.\d+)?/,
          random.pick([
            '1e400',
            '-1e400',
            '9007199254740993',
            '01',
            '.5',
            '1e',
            '--1',
            '+1',
            '0x1',
            'NaN',
            'Infinity',
            `1${'0'.repeat(400)}`,
          ]),
        ),
      ),
    () => ({
      name: 'invalid UTF-8',
      body: Buffer.concat([
        Buffer.from(json.slice(0, cut)),
        Buffer.from([0xff, 0xc0, 0xaf, 0xed, 0xa0, 0x80]),
        Buffer.from(json.slice(cut)),
      ]),
    }),
    () => text('byte order mark', `\ufeff${json}`),
    () => ({ name: 'UTF-16', body: Buffer.from(json, 'utf16le') }),
    () => text('deep brackets', '['.repeat(random.pick([40, 5_000, 200_000]))),
    () => text('deep objects', `${'{"a":'.repeat(2_000)}1${'}'.repeat(2_000)}`),
    () =>
      text(
        'no JSON',
        random.pick([
          '',
          'null',
          'true',
          '0',
          '""',
          '[]',
          '{',
          'undefined',
          'a=1&b=2',
          '<a/>',
          "{'a':1}",
          '{"a":1,}',
          '// x\n{}',
        ]),
      ),
    () => text('white space', `${' '.repeat(random.pick([1_000, 262_144, 270_000]))}${json}`),
    () => text('body over the limit', JSON.stringify({ task: 'x'.repeat(263_000) })),
    () => ({ name: 'flipped byte', body: flipByte(Buffer.from(json), random) }),
    () =>
      text(
        'escaped lone surrogate',
        json.replace(
          /"([^"]*)"(?=[,}\]])/,
          `"${random.pick(['\\ud800', '\\udfff', '\\ud83d\\u0041', '\\u0000', '\\uD83D'])}"`,
        ),
      ),
  ])()
}

function flipByte(body: Buffer, random: Random): Buffer {
  if (body.length === 0) return Buffer.from([random.below(256)])
  const index = random.below(body.length)
  body[index] = body[index]! ^ (1 << random.below(8))
  return body
}

const withoutHeader = (headers: [string, string][], name: string) =>
  headers.filter(([other]) => other.toLowerCase() !== name)

/** Characters that Node refuses to send in a header are replaced; the raw ones never reach a server behind a proxy either. */
const headerText = (text: string) => text.replace(/[^\t\u0020-\u007e\u0080-\u00ff]/g, '?').slice(0, 12_000)

function mutateHeaders(
  draft: FuzzDraft,
  random: Random,
  context: MutationContext,
): { name: string; isForeign: boolean } {
  const set = (name: string, value: string) => {
    draft.headers = [...withoutHeader(draft.headers, name), [name, headerText(value)]]
  }
  const changed = (name: string, isForeign = false) => ({ name, isForeign })
  return random.pick<() => { name: string; isForeign: boolean }>([
    () => {
      set(
        'content-type',
        random.pick([
          'text/plain',
          'application/x-www-form-urlencoded',
          'multipart/form-data; boundary=x',
          'application/json; charset=utf-16',
          'application/problem+json',
          'APPLICATION/JSON',
          'application/json;',
          '*/*',
          'a',
          'application/json, text/plain',
        ]),
      )
      return changed('content type', true)
    },
    () => {
      draft.headers = withoutHeader(draft.headers, 'content-type')
      return changed('no content type', true)
    },
    () => {
      set('content-encoding', random.pick(['gzip', 'br', 'identity', 'x']))
      return changed('content encoding', true)
    },
    () => {
      set('accept-encoding', random.pick(['gzip', 'br', 'zstd', '*;q=0', 'identity', 'gzip;q=x']))
      return changed('accept encoding')
    },
    () => {
      set('accept', random.pick(['text/html', 'application/xml', '*/*;q=0', 'a/b/c']))
      return changed('accept')
    },
    () => {
      set('idempotency-key', random.chance(0.5) ? texts(random, context) : 'the-same-key')
      return changed('idempotency key')
    },
    () => {
      set('x-api-key', random.pick(['', 'x', `csk_${'0'.repeat(48)}`, 'x'.repeat(5_000), '\u00ff\u0080']))
      return changed('wrong API key', true)
    },
    () => {
      draft.headers = withoutHeader(withoutHeader(draft.headers, 'x-api-key'), 'x-admin-key')
      return changed('no credential', true)
    },
    () => {
      draft.headers.push(['x-api-key', 'another'], ['x-api-key', 'third'])
      return changed('repeated credential', true)
    },
    () => {
      set('x-admin-key', random.pick(['', 'wrong', 'x'.repeat(3_000)]))
      return changed('wrong admin key', true)
    },
    () => {
      set(
        'cookie',
        random.pick([
          'countersign_session=',
          'countersign_session=x; countersign_session=y',
          `countersign_session=${'x'.repeat(3_000)}`,
          '=;=;',
          'a=b; __proto__=c',
        ]),
      )
      return changed('cookie', true)
    },
    () => {
      set('authorization', random.pick(['Bearer', 'Bearer x', 'Basic YTpi', 'Bearer \u00ff', 'x'.repeat(3_000)]))
      return changed('authorization', true)
    },
    () => {
      set('x-request-id', texts(random, context).slice(0, 300))
      return changed('request id')
    },
    () => {
      set('x-forwarded-for', random.pick(['1.2.3.4', '::1', 'x', ', , ,', "'"]))
      return changed('forwarded address')
    },
    () => {
      set('x-tenant-id', random.chance(0.5) ? random.pick(context.victimIds) : texts(random, context))
      return changed('tenant id header')
    },
    () => {
      set('if-none-match', random.pick(['*', '""', 'W/"x"', 'x'.repeat(2_000)]))
      return changed('if-none-match', true)
    },
    () => {
      set('range', random.pick(['bytes=0-1', 'bytes=-1', 'bytes=9-1', 'x']))
      return changed('range', true)
    },
    () => {
      set('origin', random.pick(['null', 'https://evil.example', 'x']))
      return changed('origin')
    },
    () => {
      set(
        'x-payment',
        Buffer.from(JSON.stringify(oddValue(random, context)) ?? 'x')
          .toString('base64')
          .slice(0, 8_000),
      )
      return changed('odd payment of version 1', context.operation.body === undefined)
    },
    () => {
      set(
        'payment-signature',
        random.pick(['', 'x', '====', 'e30=', Buffer.from('[]').toString('base64'), texts(random, context)]),
      )
      return changed('odd payment of version 2', context.operation.body === undefined)
    },
    () => {
      for (let index = 0; index < 60; index += 1)
        draft.headers.push([`x-many-${index}`, 'x'.repeat(random.pick([1, 250]))])
      return changed('many headers', true)
    },
  ])()
}

/** A payment is JSON in a header; one of its members changes. */
function mutatePayment(draft: FuzzDraft, random: Random, context: MutationContext): string | undefined {
  const header = draft.headers.find(([name]) => name === 'payment-signature')
  if (!header) return undefined
  const text = Buffer.from(header[1], 'base64').toString()
  // An earlier mutation may have left something else in the header, or cut it.
  if (!text.startsWith('{"x402Version"') || !text.endsWith('}')) return undefined
  const root = { value: JSON.parse(text) as unknown }
  const name = mutateValue(root, undefined, random, context)
  header[1] = Buffer.from(escapeJson(JSON.stringify(root.value) ?? 'x'))
    .toString('base64')
    .slice(0, 14_000)
  return `payment: ${name}`
}

const encodings = (random: Random, context: MutationContext): string =>
  random.pick<() => string>([
    () => encodeURIComponent(texts(random, context).slice(0, 400).toWellFormed()),
    () => encodeURIComponent(random.pick(context.victimIds)),
    () => encodeURIComponent(random.pick(context.ownIds)),
    () =>
      random.pick([
        '%00',
        '%ff',
        '%C0%AF',
        '%ED%A0%80',
        '%',
        '%zz',
        '%2e%2e%2f',
        '..',
        '.',
        '%2F',
        '%252F',
        '+',
        '%20',
        '~',
        '*',
        "'",
        '"',
        ';',
        '&',
        '=',
        '#',
        '?',
      ]),
    () =>
      random
        .pick([
          '0',
          '-1',
          '1.5',
          '1e3',
          '1e309',
          '99999999999999999999',
          'NaN',
          'true',
          'null',
          '[]',
          '{}',
          '0x10',
          ' 1',
        ])
        .replaceAll(' ', '%20'),
    () => 'x'.repeat(random.pick([81, 129, 256, 257, 2_000, 6_000])),
    () => random.pick(['__proto__', 'constructor', 'toString']),
    () => encodeURIComponent(new Date(random.below(2 ** 31) * 1000).toISOString()),
    () => random.pick(['2026-11-15', '0001-01-01T00:00:00Z', '9999-12-31T23:59:59Z', '2026-13-01T00:00:00Z']),
  ])()

function mutateUrl(draft: FuzzDraft, random: Random, context: MutationContext): { name: string; isForeign: boolean } {
  const names = Object.keys(draft.params)
  const described = context.operation.parameters.filter((parameter) => parameter.in === 'query')
  if (names.length > 0 && random.chance(described.length > 0 ? 0.4 : 0.8)) {
    const name = random.pick(names)
    draft.params[name] = encodings(random, context)
    // A value with a slash or a dot segment leads to another path.
    return {
      name: `path parameter ${name}`,
      isForeign: /^$|[/.?#]|%2f|%00|%(?![0-9a-f]{2})|%[c-f]|__|x{257}/i.test(draft.params[name]!),
    }
  }
  const value = random.chance(0.3)
    ? encodeURIComponent(
        asText(sample(described[0]?.schema ?? {}, random, context))
          .slice(0, 300)
          .toWellFormed(),
      )
    : encodings(random, context)
  if (described.length === 0 || random.chance(0.15)) {
    const name = random.pick(['unknown', '__proto__', 'limit', 'limit[]', 'a[b][c]', '', 'tenant_id', 'cursor'])
    draft.query.push([name, value])
    return { name: `query parameter ${name} added`, isForeign: true }
  }
  const parameter = random.pick(described)
  const isForeign = /%00|%(?![0-9a-f]{2})|#/i.test(value)
  if (random.chance(0.15)) {
    draft.query.push([parameter.name, value])
    return { name: `query parameter ${parameter.name} repeated`, isForeign }
  }
  draft.query = [...draft.query.filter(([name]) => name !== parameter.name), [parameter.name, value]]
  return { name: `query parameter ${parameter.name}`, isForeign }
}

const asText = (value: unknown) => (typeof value === 'string' ? value : (JSON.stringify(value) ?? ''))

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND', 'SEARCH', 'QUERY']

export function draftRequest(operation: Operation, draft: Draft, credential: Record<string, string>): FuzzDraft {
  const headers = Object.entries({ ...credential, ...draft.headers }).filter(([, value]) => value !== '')
  const hasBody = draft.body !== undefined
  return {
    method: operation.method,
    path: operation.path,
    params: { ...draft.params },
    query: Object.entries(draft.query ?? {}).map(([name, value]) => [name, encodeURIComponent(value)]),
    headers: [...(hasBody ? ([['content-type', 'application/json']] as [string, string][]) : []), ...headers],
    body: structuredClone(draft.body),
    hasBody,
  }
}

const pathOf = (draft: FuzzDraft): string => {
  const path = draft.path.replace(/\{([^}]+)\}/g, (_match, name) => draft.params[name] ?? 'x')
  const query = draft.query.map(([name, value]) => `${name}=${value}`).join('&')
  return `${path}${query && `?${query}`}`
}

export function toWire(draft: FuzzDraft, body?: Buffer): WireRequest {
  const bytes = body ?? (draft.hasBody ? Buffer.from(JSON.stringify(draft.body) ?? '') : undefined)
  const headers = withoutHeader(draft.headers, 'content-length')
  return {
    method: draft.method,
    path: pathOf(draft),
    // Without a length Node would announce a body of unknown length, even an absent one.
    headers: [...headers, ['content-length', String(bytes?.length ?? 0)]],
    body: bytes,
  }
}

export function mutate(draft: FuzzDraft, random: Random, context: MutationContext): Mutated {
  const mutations: string[] = []
  if (random.chance(UNCHANGED)) return { wire: toWire(draft), mutations, isForeign: false }
  let isForeign = false
  let body: Buffer | undefined
  const count = 1 + random.below(MAX_MUTATIONS)
  for (let round = 0; round < count; round += 1) {
    const kind = random.below(20)
    if (draft.hasBody && kind < 12) {
      const root = { value: draft.body }
      mutations.push(mutateValue(root, context.operation.body, random, context))
      draft.body = root.value
    } else if (draft.hasBody && kind < 14) {
      const mutated = mutateText(escapeJson(JSON.stringify(draft.body) ?? ''), random)
      mutations.push(mutated.name)
      body = mutated.body
    } else if (kind === 14) {
      const name = mutatePayment(draft, random, context)
      if (name) mutations.push(name)
    } else if (kind === 15) {
      const header = mutateHeaders(draft, random, context)
      mutations.push(header.name)
      isForeign ||= header.isForeign
    } else if (kind === 16 && random.chance(0.3)) {
      draft.method = random.pick(METHODS)
      mutations.push(`method ${draft.method}`)
      isForeign = true
    } else if (kind === 17 && !draft.hasBody && random.chance(0.3)) {
      draft.headers = [...withoutHeader(draft.headers, 'content-type'), ['content-type', 'application/json']]
      draft.body = oddValue(random, context)
      draft.hasBody = true
      mutations.push('body without a schema')
      isForeign ||= context.operation.body === undefined
    } else {
      const url = mutateUrl(draft, random, context)
      mutations.push(url.name)
      isForeign ||= url.isForeign
    }
  }
  body ??= draft.hasBody ? Buffer.from(escapeJson(JSON.stringify(draft.body) ?? '')) : undefined
  const wire = toWire(draft, body)
  return { wire, mutations, isForeign: isForeign || wire.path.length > 7_000 }
}
