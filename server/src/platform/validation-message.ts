/** What is wrong with a request, in words: no regular expression and no keyword of JSON Schema. */
import { NAME_FAULT } from './schema.ts'
import { didYouMean } from './suggest.ts'

export type ValidationError = {
  instancePath: string
  keyword?: string
  message?: string
  params?: Record<string, unknown>
  /** The schema that holds the keyword, where the validator is verbose. */
  parentSchema?: {
    properties?: Record<string, unknown>
    patternProperties?: object
    additionalProperties?: unknown
    description?: string
    /** The form of a pattern in words, as its schema has them. */
    'x-form'?: string
  }
  data?: unknown
}

/** Names that people know from another list here, or from another interface. */
const otherNames = new Map<string, string[]>([
  ['status', ['outcome', 'state', 'decision']],
  ['offset', ['cursor', 'after']],
  ['page', ['cursor', 'after']],
  ['per_page', ['limit']],
  ['page_size', ['limit']],
  ['from', ['since', 'after']],
  ['to', ['until']],
  ['starting_after', ['after', 'cursor']],
  ['created', ['since']],
  ['created[gt]', ['since']],
  ['created[gte]', ['since']],
  ['created[lt]', ['until']],
  ['created[lte]', ['until']],
  ['prompt', ['task']],
  ['messages', ['task']],
  ['input', ['task']],
  ['model', ['agent_id']],
  ['metadata', ['tags']],
  ['wallet_id', ['payment.wallet_id']],
  ['walletId', ['payment.wallet_id']],
])

/** The sentence for the first error of a request part (`body`, `querystring`, …). */
export function validationMessage(errors: readonly ValidationError[], part = 'request'): string {
  const [error] = errors as [ValidationError]
  const location = `${part}${error.instancePath}`
  const { tag, tagValue, additionalProperty, allowedValues } = (error.params ?? {}) as {
    tag?: string
    tagValue?: unknown
    additionalProperty?: string
    allowedValues?: unknown[]
  }
  if (tag !== undefined) return `${location}/${tag} ${quoteValue(tagValue)} is unknown.`
  if (additionalProperty !== undefined) return unknownProperty(location, additionalProperty, error)
  const choices = allowedValues ?? allowedConstants(errors, error.instancePath)
  if (choices.length > 0) return `${location} must be one of ${choices.join(', ')}.${nearest(error.data, choices)}`
  return `${location} ${explain(error)}.`
}

/** For `details`: each error without a regular expression. */
export const validationDetails = (errors: readonly ValidationError[]) =>
  errors.map((error) => ({ path: error.instancePath, message: explain(error) }))

const MAX_LISTED = 40

function unknownProperty(location: string, name: string, { parentSchema }: ValidationError): string {
  const form = parentSchema?.['x-form']
  if (parentSchema?.patternProperties)
    return `${location} has a name that is not allowed${form ? `: a name has ${form}` : ''}.`
  const properties = Object.keys(parentSchema?.properties ?? {})
  const alias = otherNames.get(name)?.find((other) => properties.includes(other.split('.')[0]!))
  const hint = alias === undefined ? didYouMean(name, properties) : ` Did you mean '${alias}'?`
  const list =
    hint === '' && properties.length > 0 && properties.length <= MAX_LISTED ? ` It takes ${properties.join(', ')}.` : ''
  return `${location} has the unknown property '${shorten(name)}'.${hint}${list}`
}

const nearest = (value: unknown, choices: unknown[]) =>
  typeof value === 'string' ? didYouMean(value, choices.map(String)) : ''

function explain(error: ValidationError): string {
  const { keyword, message = 'is not valid', params } = error
  if (keyword === 'x-name') return NAME_FAULT
  if (keyword === 'pattern') return describePattern(String(params?.pattern), error)
  if (keyword === 'format' && params?.format === 'date-time')
    return 'must match format "date-time": ISO 8601, for example 2026-11-16T09:30:00Z'
  if (keyword === 'format' && params?.format === 'uri') return 'must be an address that begins with https://'
  if (keyword === 'format') return `must be a valid ${String(params?.format)}`
  if (keyword === 'required') return `${message}${describeUnknown(error)}`
  if (keyword === 'type' && params?.type === 'number' && typeof error.data === 'string' && /^\$?\d/.test(error.data))
    return `${message}, without quotation marks`
  if (keyword === 'propertyNames') return 'has a name of a member that is not allowed'
  // Of a time sent as a number.
  if (keyword === 'type' && typeof error.data === 'number' && params?.type === 'string')
    return 'must be a string, in quotation marks'
  return message
}

/** Of an object that lacks a member: what it has instead that it may not have. */
function describeUnknown({ data, parentSchema }: ValidationError): string {
  const properties = parentSchema?.properties
  if (!properties || parentSchema.additionalProperties !== false || typeof data !== 'object' || data === null) return ''
  const unknown = Object.keys(data).find((name) => !Object.hasOwn(properties, name))
  return unknown === undefined ? '' : `, and has the unknown '${shorten(unknown)}'`
}

const forms: [pattern: RegExp, words: string][] = [
  [/^\^0x\[0-9a-fA-F\]\{40\}\$$/, 'must be an EVM address: 0x and 40 hexadecimal digits'],
  [/^\^0x\[0-9a-fA-F\]\{64\}\$$/, 'must be a transaction hash: 0x and 64 hexadecimal digits'],
  [/\[1-9\]\[0-9\]\{0,\d+\}/, 'must be a whole number of atomic units as text: 1 USDC is "1000000"'],
  [/sha256/, 'must be a hash: sha256: and 64 hexadecimal digits'],
  [/^\\S$/, 'must not be blank'],
  [/^\^\[\^\\+u0000/, 'must not contain NUL or broken characters'],
  [/^\^\w+_\[\\w-\]/, 'must be an id or cursor from an earlier answer'],
  [/^\^\\d\{4\}-/, 'must be a date or a time as ISO 8601, for example 2026-11-16'],
  [/,\[a-z\]\+/, 'must be names in lower case, separated by commas'],
  [/:\[-_a-zA-Z0-9\]/, 'must be a network as CAIP-2, for example eip155:8453'],
]

/** The words for a pattern; for one without them, what the schema says about the member. */
function describePattern(pattern: string, { parentSchema }: ValidationError): string {
  if (parentSchema?.['x-form']) return `must be ${parentSchema['x-form']}`
  const words = forms.find(([form]) => form.test(pattern))?.[1]
  if (words) return words
  const length = /\{1?,?(\d+)\}\$$/.exec(pattern)?.[1]
  const about = parentSchema?.description ? ` (${parentSchema.description.replace(/\.$/, '')})` : ''
  return `may contain letters, digits and a few signs only${length ? `, at most ${length} of them` : ''}${about}`
}

const MAX_SHOWN = 80
const shorten = (text: string) => (text.length <= MAX_SHOWN ? text : `${text.slice(0, MAX_SHOWN)}…`)

/** A caller's value may be an object whose `toString` is no function, so it is never converted by a template. */
const quoteValue = (value: unknown) => (typeof value === 'string' ? `'${shorten(value)}'` : 'of another type')

/** A union of constants fails validation once for each constant; together they are the allowed values. */
const allowedConstants = (errors: readonly ValidationError[], path: string): unknown[] =>
  errors.flatMap(({ instancePath, params }) =>
    instancePath === path && params && 'allowedValue' in params ? [params.allowedValue] : [],
  )
