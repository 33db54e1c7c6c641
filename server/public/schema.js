// Renders a JSON schema as table rows: name, type, whether it is required, and its constraints.
import { el, prose } from '/docs/element.js'

const MAX_DEPTH = 8

let components = {}
/** The schemas that others refer to by `$ref`. */
export const setComponents = (schemas) => {
  components = schemas
}

/** The schema itself, or the component that it refers to; a description beside the reference goes first. */
function resolveReference(schema) {
  if (!schema?.$ref) return schema
  const { $ref, ...own } = schema
  return { ...components[$ref.split('/').at(-1)], ...own }
}

const constraintLabels = {
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

export function formatType(schemaOrReference) {
  const schema = resolveReference(schemaOrReference)
  if (!schema || typeof schema !== 'object') return 'anything'
  if ('const' in schema) return JSON.stringify(schema.const)
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(' | ')
  const variants = schema.anyOf ?? schema.oneOf
  if (variants) return [...new Set(variants.map(formatType))].join(' | ')
  if (schema.allOf) return 'object'
  if (schema.type === 'array') {
    const item = formatType(schema.items)
    return item.includes(' | ') ? `(${item})[]` : `${item}[]`
  }
  return [schema.type].flat().filter(Boolean).join(' | ') || 'anything'
}

/** The content type in brackets, or nothing for JSON. */
export const formatContentType = (type) => (type === undefined || type === 'application/json' ? '' : ` (${type})`)

const formatConstraints = (schema) =>
  Object.entries(constraintLabels)
    .filter(([key]) => schema?.[key] !== undefined)
    .map(([key, label]) => `${label} ${schema[key]}`)
    .join(', ')

const formatNote = (schema, description) => [formatConstraints(schema), description].filter(Boolean).join('. ')

/** Merges the properties of all variants of a schema; in a union only the properties required by all are required. */
function mergeVariants(schemaOrReference) {
  const schema = resolveReference(schemaOrReference)
  const parts = (schema?.allOf ?? schema?.anyOf ?? schema?.oneOf)?.map(mergeVariants).filter((part) => part?.properties)
  if (!parts) return schema
  const required = parts.map((part) => part.required ?? [])
  return {
    description: schema.description,
    properties: Object.assign({}, ...parts.map((part) => part.properties)),
    required: schema.allOf
      ? required.flat()
      : (required[0] ?? []).filter((name) => required.every((names) => names.includes(name))),
  }
}

function itemSchema(schemaOrReference) {
  const schema = resolveReference(schemaOrReference)
  return mergeVariants(schema?.type === 'array' ? schema.items : schema)
}

const renderRow = (name, type, required, ...note) =>
  el(
    'tr',
    {},
    el('td', {}, el('code', { textContent: name })),
    el('td', { className: 'type', textContent: type }),
    el('td', { className: 'required', textContent: required ? 'required' : '' }),
    el('td', {}, ...note),
  )

const renderTable = (rows) => el('div', { className: 'scroll' }, el('table', {}, el('tbody', {}, ...rows)))

export function renderFields(fullSchema, depth = 0) {
  const schema = itemSchema(fullSchema)
  const rows = Object.entries(schema?.properties ?? {}).map(([name, property]) => {
    const nested = itemSchema(property)
    const nestedFields =
      nested?.properties &&
      Object.keys(nested.properties).length > 0 &&
      depth < MAX_DEPTH &&
      el('details', {}, el('summary', { className: 'muted', textContent: 'fields' }), renderFields(nested, depth + 1))
    const note = formatNote(resolveReference(property), resolveReference(property)?.description)
    return renderRow(name, formatType(property), schema.required?.includes(name), ...prose(note), nestedFields)
  })
  return rows.length > 0
    ? el(
        'div',
        {},
        schema.description && el('p', { className: 'muted' }, ...prose(schema.description)),
        renderTable(rows),
      )
    : el('p', { className: 'muted' }, ...prose(formatNote(schema, schema?.description) || formatType(fullSchema)))
}

export const renderParameters = (parameters) =>
  renderTable(
    parameters.map(({ name, in: location, required, schema, description }) =>
      renderRow(
        name,
        `${location}, ${formatType(schema)}`,
        required,
        ...prose(formatNote(schema, description ?? schema?.description)),
      ),
    ),
  )
