import { Type } from 'typebox'
import { microFromUsdc, usdcFromMicro } from '../../../platform/money.ts'
import { invalid } from '../../../platform/problem.ts'
import { plainName } from '../../../platform/schema.ts'
import { agentNames, type PaymentFacts, permittingNames, TAG_NAME } from '../assess/payment-facts.ts'
import { exactName, instrumentName, looseName } from './name-list.ts'
import { findPayee, unlistedNames } from './payee-names.ts'
import { INSTRUMENT_TYPES, isInstrumentType, requireNetwork } from './possible-values.ts'
import type { Finding, SmallestChange } from './rule-result.ts'

/** The fields that a rule can compare; also `tags.<name>`. Money is compared in micro-USDC, never as a float. */
const fields = {
  agent_id: { type: 'names', read: agentNames },
  lane: {
    type: 'text',
    read: ({ kind, agentId }: PaymentFacts) => (kind === 'run' || kind === 'loop' ? agentId : undefined),
  },
  spender: { type: 'text', read: (facts: PaymentFacts) => facts.spender },
  team: { type: 'text', read: (facts: PaymentFacts) => facts.team },
  key_id: { type: 'text', read: (facts: PaymentFacts) => facts.keyId },
  merchant: { type: 'payee', read: (facts: PaymentFacts) => facts.merchants },
  network: { type: 'text', read: (facts: PaymentFacts) => facts.network },
  action: { type: 'text', read: (facts: PaymentFacts) => facts.action },
  session_id: { type: 'text', read: (facts: PaymentFacts) => facts.sessionId },
  instrument: { type: 'instrument', read: (facts: PaymentFacts) => facts.instrument?.toLowerCase() },
  amount_usdc: { type: 'money', read: (facts: PaymentFacts) => facts.amountMicro },
  price_usdc: { type: 'money', read: (facts: PaymentFacts) => facts.amountMicro },
  notional_usdc: { type: 'money', read: (facts: PaymentFacts) => facts.notionalMicro },
  hour_utc: { type: 'number', read: (facts: PaymentFacts) => facts.at.getUTCHours() },
  leverage: { type: 'number', read: (facts: PaymentFacts) => facts.leverage },
} as const satisfies Record<string, Field>

type Field = {
  type: 'text' | 'names' | 'payee' | 'instrument' | 'money' | 'number'
  read(facts: PaymentFacts): Comparable | readonly string[] | null | undefined
}
type FieldName = keyof typeof fields | `tags.${string}`

const TAG_FIELD = new RegExp(`^tags\\.(${TAG_NAME})$`)

/** The name of the tag that a field like `tags.project` compares. */
export const tagOf = (field: string): string | undefined => TAG_FIELD.exec(field)?.[1]

function fieldOf(name: FieldName): Field {
  const tag = tagOf(name)
  return tag === undefined
    ? fields[name as keyof typeof fields]
    : { type: 'text', read: ({ tags }) => (Object.hasOwn(tags, tag) ? tags[tag] : undefined) }
}

const fieldList = [...Object.keys(fields), 'tags.<name>'].join(', ')

type Comparable = string | number | bigint

const opAliases = {
  '=': 'eq',
  '==': 'eq',
  '!=': 'ne',
  neq: 'ne',
  '>': 'gt',
  '>=': 'gte',
  '<': 'lt',
  '<=': 'lte',
  nin: 'not_in',
} as const

/** The value or values of a rule in the form in which they are compared. */
type Compiled = { first: Comparable; all: ReadonlySet<Comparable> }

const ops = {
  eq: (actual: Comparable, { first }: Compiled) => actual === first,
  ne: (actual: Comparable, { first }: Compiled) => actual !== first,
  gt: (actual: Comparable, { first }: Compiled) => actual > first,
  gte: (actual: Comparable, { first }: Compiled) => actual >= first,
  lt: (actual: Comparable, { first }: Compiled) => actual < first,
  lte: (actual: Comparable, { first }: Compiled) => actual <= first,
  in: (actual: Comparable, { all }: Compiled) => all.has(actual),
  not_in: (actual: Comparable, { all }: Compiled) => !all.has(actual),
} as const

type Op = keyof typeof ops

/** Each operator with its other spellings. */
const opList = Object.keys(ops)
  .map((op) => {
    const aliases = Object.entries(opAliases).flatMap(([alias, name]) => (name === op ? [alias] : []))
    return aliases.length === 0 ? op : `${op} (${aliases.join(' or ')})`
  })
  .join(', ')

const opWords: Record<Op, string> = {
  eq: 'is',
  ne: 'is not',
  gt: 'is above',
  gte: 'is at least',
  lt: 'is below',
  lte: 'is at most',
  in: 'is one of',
  not_in: 'is none of',
}

const scalar = Type.Union([Type.String({ maxLength: 200, ...plainName }), Type.Number()])

export const RuleSchema = Type.Object(
  {
    field: Type.String({
      minLength: 1,
      maxLength: 70,
      description: `One of ${fieldList}. A merchant is known by its id, host and address, an agent by lane (or agent) and spender.`,
    }),
    op: Type.String({
      minLength: 1,
      maxLength: 10,
      description: `One of ${opList}.`,
    }),
    value: Type.Union([scalar, Type.Array(scalar, { minItems: 1, maxItems: 500 })]),
    effect: Type.Union(['allow', 'deny', 'review'].map((effect) => Type.Literal(effect))),
    reason: Type.Optional(Type.String({ maxLength: 500 })),
  },
  {
    additionalProperties: false,
    description:
      'A rule applies when its condition is true. In a policy with allow rules, at least one of them must apply.',
  },
)

export type RuleInput = {
  field: string
  op: string
  value: string | number | (string | number)[]
  effect: 'allow' | 'deny' | 'review'
  reason?: string
}
export type Rule = Omit<RuleInput, 'field' | 'op'> & { field: FieldName; op: Op }

/** Normalises the operator and rejects fields, operators and values that cannot be compared. */
export function readRule(rule: RuleInput, index: number): Rule {
  const path = `body/rules/${index}`
  if (!Object.hasOwn(fields, rule.field) && tagOf(rule.field) === undefined)
    throw invalid(`${path}/field '${rule.field}' is unknown; it is one of ${fieldList}.`)
  const op = (Object.hasOwn(opAliases, rule.op) ? opAliases[rule.op as keyof typeof opAliases] : rule.op) as Op
  if (!Object.hasOwn(ops, op)) throw invalid(`${path}/op '${rule.op}' is unknown; it is one of ${opList}.`)
  const field = rule.field as FieldName
  const isList = op === 'in' || op === 'not_in'
  if (isList !== Array.isArray(rule.value))
    throw invalid(`${path}/value must be ${isList ? 'a list' : 'a single value'} with '${rule.op}'.`)
  const { type } = fieldOf(field)
  const isText = type !== 'money' && type !== 'number'
  if (isText && ['gt', 'gte', 'lt', 'lte'].includes(op))
    throw invalid(`${path}/op '${rule.op}' cannot compare '${field}', which is text.`)
  for (const value of [rule.value].flat()) {
    if (isText ? typeof value !== 'string' : typeof value !== 'number')
      throw invalid(`${path}/value must be ${isText ? 'text' : 'a number'} for '${field}'.`)
    requirePossibleValue(`${path}/value`, field, value)
    if (type === 'money' && microFromUsdc(value as number) === undefined)
      throw invalid(`${path}/value must be a non-negative amount with at most six decimals.`)
  }
  return { ...rule, field, op }
}

/** What `action` can be: the doors of payments. The actions that a loop proposes have the types that its agent gives them. */
const ACTIONS = ['run', 'loop', 'pre-auth', 'trade']

/** A rule that can never hold is a mistake, and a deny rule that can never hold lets everything pass. */
function requirePossibleValue(path: string, field: FieldName, value: string | number): void {
  if (field === 'action' && !ACTIONS.includes(String(value)))
    throw invalid(`${path} '${value}' is no action; it is one of ${ACTIONS.join(', ')}.`)
  if (field === 'network') requireNetwork(path, String(value))
  if (field === 'instrument' && !isInstrumentType(String(value)))
    throw invalid(`${path} '${value}' is no type of instrument; it is one of ${INSTRUMENT_TYPES.join(', ')}.`)
  if (field === 'hour_utc' && !(Number.isInteger(value) && Number(value) >= 0 && Number(value) < HOURS_OF_A_DAY))
    throw invalid(`${path} must be an hour from 0 to 23.`)
}

/** Rules are cached, so the values of a rule are compiled once per version of its policy. */
const compiledRules = new WeakMap<Rule, Compiled & { list: readonly string[] }>()

function compileRule(rule: Rule): Compiled & { list: readonly string[] } {
  const existing = compiledRules.get(rule)
  if (existing) return existing
  const normalize = normalizerOf(rule)
  const values = [rule.value].flat().map(normalize)
  const compiled = { first: values[0]!, all: new Set(values), list: [rule.value].flat().map(String) }
  compiledRules.set(rule, compiled)
  return compiled
}

/** Whether only what the values name is let through: an allow rule for them, or any other rule against the rest. */
const isAllowList = ({ effect, op }: Rule) => (effect === 'allow') === (op === 'eq' || op === 'in')

function normalizerOf(rule: Rule): (value: string | number) => Comparable {
  switch (fieldOf(rule.field).type) {
    case 'money':
      return (value) => microFromUsdc(value as number)!
    case 'names':
      return (value) => (isAllowList(rule) ? exactName : looseName)(String(value))
    case 'instrument':
      return (value) => instrumentName(String(value))
    default:
      return (value) => value
  }
}

/** The value that the rule compares. A rule that lets only listed agents pass compares the names that permit. */
const readValue = (rule: Rule, facts: PaymentFacts): ReturnType<Field['read']> => {
  const { type, read } = fieldOf(rule.field)
  return type === 'names' && isAllowList(rule) ? permittingNames(facts) : read(facts)
}

/**
 * A merchant and an agent have several names: they equal a value when any of their names does, and differ when all do. A merchant
 * that must be among the values is read as by a list of allowed merchants.
 */
const matches = (rule: Rule, facts: PaymentFacts): boolean => {
  const { op } = rule
  const { type } = fieldOf(rule.field)
  const actual = readValue(rule, facts)
  if (actual === undefined || actual === null) return false
  const values = compileRule(rule)
  const isNegated = op === 'ne' || op === 'not_in'
  if (type === 'payee') {
    const isAmong = isAllowList(rule)
      ? unlistedNames(values.list, facts).length === 0
      : findPayee(values.list, facts) !== undefined
    return isAmong !== isNegated
  }
  if (isNames(actual)) {
    const normalize = normalizerOf(rule)
    const matchesName = (name: string) => ops[op](normalize(name), values)
    return isNegated ? actual.every(matchesName) : actual.some(matchesName)
  }
  return ops[op](actual, values)
}

const isNames = (value: Comparable | readonly string[]): value is readonly string[] => Array.isArray(value)

/** What the trace says of a rule: its value, or of a list the number of entries and the one that matched. */
function traceOf(rule: Rule, facts: PaymentFacts): Pick<Finding, 'asked' | 'limit' | 'matched'> {
  const asked = readForDisplay(rule, facts)
  if (!Array.isArray(rule.value)) return { asked, limit: rule.value }
  const matched = matchedValue(rule, facts)
  return { asked, limit: { entries: rule.value.length }, ...(matched !== undefined && { matched }) }
}

/** The name of the payment that a list has. */
function matchedValue(rule: Rule, facts: PaymentFacts): string | undefined {
  const { type } = fieldOf(rule.field)
  const actual = readValue(rule, facts)
  if (actual === undefined || actual === null) return undefined
  const { all, list } = compileRule(rule)
  if (type === 'payee') return findPayee(list, facts)?.name
  const normalize = normalizerOf(rule)
  if (isNames(actual)) return actual.find((name) => all.has(normalize(name)))
  return all.has(actual) ? String(readForDisplay(rule, facts)) : undefined
}

type RuleFinding = { rule: string; finding: Finding }

/** Deny and review rules apply when they match. If there are allow rules, one of them has to match. */
export function evaluateRuleList(rules: readonly Rule[], facts: PaymentFacts): RuleFinding[] {
  const allows = [...rules.entries()].filter(([, rule]) => rule.effect === 'allow')
  const findings = rules.flatMap((rule, index): RuleFinding[] => {
    if (rule.effect === 'allow') return []
    const isMatch = matches(rule, facts)
    const condition = describeCondition(rule)
    const common = traceOf(rule, facts)
    if (!isMatch)
      return [
        {
          rule: `rules[${index}]`,
          finding: { verdict: 'pass', reason: `The condition does not hold: ${condition}.`, ...common },
        },
      ]
    const verdict = rule.effect === 'deny' ? 'blocked' : 'review_required'
    const smallest_change = {
      text: `Change the request so that this does not hold: ${condition}. Or remove the rule.`,
      path: `rules[${index}]`,
    }
    return [
      {
        rule: `rules[${index}]`,
        finding: {
          verdict,
          reason: rule.reason ?? `${condition[0]!.toUpperCase()}${condition.slice(1)}.`,
          ...common,
          smallest_change,
        },
      },
    ]
  })
  return allows.length === 0
    ? findings
    : [...findings, { rule: 'rules.allow', finding: evaluateAllowRules(allows, facts) }]
}

function evaluateAllowRules(allows: readonly [index: number, rule: Rule][], facts: PaymentFacts): Finding {
  const matchingRule = allows.find(([, rule]) => matches(rule, facts))?.[1]
  if (matchingRule)
    return {
      verdict: 'pass',
      reason: matchingRule.reason ?? `Allowed: ${describeCondition(matchingRule)}.`,
      ...traceOf(matchingRule, facts),
    }
  const nearest = allows
    .map(([index, rule]) => ({ rule, ...findChange(rule, index, facts) }))
    .reduce((best, candidate) => (candidate.distance < best.distance ? candidate : best))
  return {
    verdict: 'blocked',
    reason: 'No allow rule of this policy matches.',
    ...traceOf(nearest.rule, facts),
    smallest_change: nearest.change,
  }
}

/** How far a rule is from holding, and the change that makes it hold. */
type Change = { distance: number; change: SmallestChange }

// A number is as far away as the share by which it has to change, at most 1, and time as the share of a day.
const LIST_DISTANCE = 1
const VALUE_DISTANCE = 2
const FIELD_DISTANCE = 3
const HOUR_MS = 3_600_000
const HOURS_OF_A_DAY = 24

/**
 * The change of one allow rule that does not hold. Nearest is the number or the time that has to change least, then a list
 * by one entry, then another value; last a field that the payment does not have.
 */
function findChange(rule: Rule, index: number, facts: PaymentFacts): Change {
  const { field, op, value } = rule
  const condition = describeCondition(rule)
  const path = `rules[${index}].value`
  const end = 'Or add an allow rule.'
  const actual = readValue(rule, facts)
  const unknown = {
    distance: FIELD_DISTANCE,
    change: { text: `Change the request so that this holds: ${condition}. ${end}`, path: 'rules' },
  }
  if (actual === undefined || actual === null || (isNames(actual) && actual.length === 0)) return unknown
  const hours = field === 'hour_utc' ? hoursUntilMatch(rule, facts) : undefined
  if (hours !== undefined) {
    const retry_at = new Date((Math.floor(facts.at.getTime() / HOUR_MS) + hours) * HOUR_MS).toISOString()
    return { distance: hours / HOURS_OF_A_DAY, change: { text: `Ask again at ${retry_at}. ${end}`, retry_at } }
  }
  const names = payeeToName(rule, facts)
  if (names && names.length !== 1) return unknown
  const asked = names?.[0] ?? (readForDisplay(rule, facts) as string | number)
  if (op === 'in')
    return {
      distance: LIST_DISTANCE,
      change: { text: `Add '${asked}' to rules[${index}] (${condition}). ${end}`, path, add: String(asked) },
    }
  if (op === 'not_in') {
    const entries = [value].flat()
    const listed = entries.filter((entry) => matchedValue({ ...rule, value: [entry] }, facts) !== undefined)
    // A payment that several entries name, or a list of one, is no change of one entry.
    if (listed.length !== 1 || entries.length === 1) return unknown
    const remove = String(listed[0])
    return {
      distance: LIST_DISTANCE,
      change: { text: `Remove '${remove}' from rules[${index}] (${condition}). ${end}`, path, remove },
    }
  }
  const to = valueThatHolds(rule, actual, asked)
  if (to === undefined) return unknown
  const change = { text: `Change rules[${index}] (${condition}) to ${to}. ${end}`, path, from: value, to }
  if (typeof value !== 'number' || typeof to !== 'number') return { distance: VALUE_DISTANCE, change }
  return { distance: Math.abs(to - value) / Math.max(Math.abs(to), Math.abs(value)), change }
}

/** The names of a merchant that the rule's value would have to be, or its list to get, for an allow rule to hold. */
function payeeToName(rule: Rule, facts: PaymentFacts): string[] | undefined {
  if (fieldOf(rule.field).type !== 'payee' || (rule.op !== 'eq' && rule.op !== 'in')) return undefined
  return unlistedNames(rule.op === 'in' ? compileRule(rule).list : [], facts)
}

/** In how many hours the rule holds; undefined when it never does. */
function hoursUntilMatch(rule: Rule, facts: PaymentFacts): number | undefined {
  for (let hours = 1; hours < HOURS_OF_A_DAY; hours += 1)
    if (matches(rule, { ...facts, at: new Date(facts.at.getTime() + hours * HOUR_MS) })) return hours
  return undefined
}

/** The nearest value of the rule with which it holds; undefined when there is none, or any other one would do. */
function valueThatHolds({ field, op }: Rule, actual: Comparable | readonly string[], asked: string | number) {
  if (op === 'ne') return undefined
  if (op !== 'lt' && op !== 'gt') return asked
  if (typeof actual === 'bigint') {
    const micro = op === 'lt' ? actual + 1n : actual - 1n
    return micro < 0n ? undefined : usdcFromMicro(micro)
  }
  if (typeof asked !== 'number') return undefined
  const step = field === 'leverage' ? 0.01 : 1
  return op === 'lt' ? asked + step : asked - step
}

const describeCondition = ({ field, op, value }: Rule) =>
  `${field} ${opWords[op]} ${Array.isArray(value) ? describeList(value) : value}`

/** A trace does not repeat a list: the policy has it. */
const describeList = (values: readonly unknown[]) =>
  values.length === 1 ? values[0] : `${values.length} listed values`

function readForDisplay(rule: Rule, facts: PaymentFacts): unknown {
  const value = readValue(rule, facts)
  if (typeof value === 'bigint') return usdcFromMicro(value)
  return (Array.isArray(value) ? value[0] : value) ?? null
}
