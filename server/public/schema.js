// A JSON schema as rows a person can read: name, type, whether it is required, and its limits.
import { el, prose } from '/docs/element.js'

const MOST_LEVELS = 8

const limits = {
  minimum: '≥',
  maximum: '≤',
  exclusiveMinimum: '>',
  exclusiveMaximum: '<',
  minLength: 'length ≥',
  maxLength: 'length ≤',
  minItems: 'items ≥',
  maxItems: 'items ≤',
  maxProperties: 'members ≤',
  pattern: 'matches',
  format: 'format',
  default: 'default',
}

export function typeOf(schema) {
  if (!schema || typeof schema !== 'object') return 'anything'
  if ('const' in schema) return JSON.stringify(schema.const)
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(' | ')
  const parts = schema.anyOf ?? schema.oneOf
  if (parts) return [...new Set(parts.map(typeOf))].join(' | ')
  if (schema.allOf) return 'object'
  if (schema.type === 'array') {
    const item = typeOf(schema.items)
    return item.includes(' | ') ? `(${item})[]` : `${item}[]`
  }
  return [schema.type].flat().filter(Boolean).join(' | ') || 'anything'
}

/** Said only where it is not JSON. */
export const answerType = (type) => (type === undefined || type === 'application/json' ? '' : ` (${type})`)

const limitsOf = (schema) =>
  Object.entries(limits)
    .filter(([key]) => schema?.[key] !== undefined)
    .map(([key, word]) => `${word} ${schema[key]}`)
    .join(', ')

const noteOf = (schema, description) => [limitsOf(schema), description].filter(Boolean).join('. ')

/** The fields of something that may be several: those of all parts, of which only the common ones are required. */
function merged(schema) {
  const parts = (schema?.allOf ?? schema?.anyOf ?? schema?.oneOf)?.map(merged).filter((part) => part?.properties)
  if (!parts) return schema
  const required = parts.map((part) => part.required ?? [])
  return {
    description: schema.description,
    properties: Object.assign({}, ...parts.map((part) => part.properties)),
    required: schema.allOf
      ? required.flat()
      : (required[0] ?? []).filter((name) => required.every((one) => one.includes(name))),
  }
}

const inside = (schema) => merged(schema?.type === 'array' ? schema.items : schema)

const row = (name, type, required, ...note) =>
  el(
    'tr',
    {},
    el('td', {}, el('code', { textContent: name })),
    el('td', { className: 'type', textContent: type }),
    el('td', { className: 'required', textContent: required ? 'required' : '' }),
    el('td', {}, ...note),
  )

const table = (rows) => el('div', { className: 'scroll' }, el('table', {}, el('tbody', {}, ...rows)))

export function fields(given, level = 0) {
  const schema = merged(given?.type === 'array' ? given.items : given)
  const rows = Object.entries(schema?.properties ?? {}).map(([name, property]) => {
    const nested = inside(property)
    const more =
      nested?.properties &&
      Object.keys(nested.properties).length > 0 &&
      level < MOST_LEVELS &&
      el('details', {}, el('summary', { className: 'soft', textContent: 'fields' }), fields(nested, level + 1))
    const note = noteOf(property, property?.description)
    return row(name, typeOf(property), schema.required?.includes(name), ...prose(note), more)
  })
  return rows.length > 0
    ? el('div', {}, schema.description && el('p', { className: 'soft' }, ...prose(schema.description)), table(rows))
    : el('p', { className: 'soft' }, ...prose(noteOf(schema, schema?.description) || typeOf(given)))
}

export const parameters = (list) =>
  table(
    list.map(({ name, in: where, required, schema, description }) =>
      row(name, `${where}, ${typeOf(schema)}`, required, ...prose(noteOf(schema, description ?? schema?.description))),
    ),
  )
