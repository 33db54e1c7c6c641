import { Type } from 'typebox'
import { microFromUsdc, usdcFromMicro } from '../../platform/money.ts'
import { invalid } from '../../platform/problem.ts'
import { normalizeName, type PaymentFacts } from './payment-facts.ts'
import type { Finding } from './rule-result.ts'

/** What a rule of the legacy shape can ask about; money is compared in micro-USDC, never as a float. */
const fields = {
  agent_id: { type: 'text', read: (facts: PaymentFacts) => facts.agentId },
  merchant: { type: 'name', read: (facts: PaymentFacts) => facts.merchants },
  network: { type: 'text', read: (facts: PaymentFacts) => facts.network ?? undefined },
  action: { type: 'text', read: (facts: PaymentFacts) => facts.action },
  session_id: { type: 'text', read: (facts: PaymentFacts) => facts.sessionId ?? undefined },
  instrument: { type: 'text', read: (facts: PaymentFacts) => facts.instrument },
  amount_usdc: { type: 'money', read: (facts: PaymentFacts) => facts.amountMicro },
  price_usdc: { type: 'money', read: (facts: PaymentFacts) => facts.amountMicro },
  notional_usdc: { type: 'money', read: (facts: PaymentFacts) => facts.notionalMicro },
  hour_utc: { type: 'number', read: (facts: PaymentFacts) => facts.at.getUTCHours() },
  leverage: { type: 'number', read: (facts: PaymentFacts) => facts.leverage },
} as const

type FieldName = keyof typeof fields
type Comparable = string | number | bigint

const spellings = {
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

const ops = {
  eq: (asked: Comparable, [value]: Comparable[]) => asked === value,
  ne: (asked: Comparable, [value]: Comparable[]) => asked !== value,
  gt: (asked: Comparable, [value]: Comparable[]) => asked > value!,
  gte: (asked: Comparable, [value]: Comparable[]) => asked >= value!,
  lt: (asked: Comparable, [value]: Comparable[]) => asked < value!,
  lte: (asked: Comparable, [value]: Comparable[]) => asked <= value!,
  in: (asked: Comparable, values: Comparable[]) => values.includes(asked),
  not_in: (asked: Comparable, values: Comparable[]) => !values.includes(asked),
} as const

type Op = keyof typeof ops
const words: Record<Op, string> = {
  eq: 'is',
  ne: 'is not',
  gt: 'is above',
  gte: 'is at least',
  lt: 'is below',
  lte: 'is at most',
  in: 'is one of',
  not_in: 'is none of',
}

const scalar = Type.Union([Type.String({ maxLength: 200 }), Type.Number()])

export const RuleSchema = Type.Object(
  {
    field: Type.String({
      minLength: 1,
      maxLength: 40,
      description: `One of ${Object.keys(fields).join(', ')}. A merchant is known by its id, host and address.`,
    }),
    op: Type.String({
      minLength: 1,
      maxLength: 10,
      description: `One of ${Object.keys(ops).join(', ')}, or their signs.`,
    }),
    value: Type.Union([scalar, Type.Array(scalar, { minItems: 1, maxItems: 500 })]),
    effect: Type.Union(['allow', 'deny', 'review'].map((one) => Type.Literal(one))),
    reason: Type.Optional(Type.String({ maxLength: 500 })),
  },
  {
    additionalProperties: false,
    description: 'A rule speaks when its condition holds. Where a policy has allow rules, one of them has to hold.',
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

/** The rule in one spelling, or a refusal that names what cannot be compared. */
export function readRule(rule: RuleInput, index: number): Rule {
  const where = `body/rules/${index}`
  if (!Object.hasOwn(fields, rule.field))
    throw invalid(`${where}/field '${rule.field}' is unknown; it is one of ${Object.keys(fields).join(', ')}.`)
  const op = (Object.hasOwn(spellings, rule.op) ? spellings[rule.op as keyof typeof spellings] : rule.op) as Op
  if (!Object.hasOwn(ops, op))
    throw invalid(`${where}/op '${rule.op}' is unknown; it is one of ${Object.keys(ops).join(', ')}.`)
  const field = rule.field as FieldName
  const many = op === 'in' || op === 'not_in'
  if (many !== Array.isArray(rule.value))
    throw invalid(`${where}/value must be ${many ? 'a list' : 'a single value'} with '${rule.op}'.`)
  const { type } = fields[field]
  const text = type === 'text' || type === 'name'
  if (text && ['gt', 'gte', 'lt', 'lte'].includes(op))
    throw invalid(`${where}/op '${rule.op}' does not fit the text '${field}'.`)
  for (const value of [rule.value].flat()) {
    if (text ? typeof value !== 'string' : typeof value !== 'number')
      throw invalid(`${where}/value does not fit '${field}'.`)
    if (type === 'money' && microFromUsdc(value as number) === undefined)
      throw invalid(`${where}/value must be a non-negative amount with at most six decimals.`)
  }
  return { ...rule, field, op }
}

/** A merchant goes by several names: it is one of these when any of its names is, and none of them when no name is. */
const matches = ({ field, op, value }: Rule, facts: PaymentFacts): boolean => {
  const { type, read } = fields[field]
  const asked = read(facts)
  if (asked === undefined) return false
  const values = [value].flat()
  if (type === 'name') {
    const names = values.map((one) => normalizeName(one as string))
    const fits = (name: string) => ops[op](normalizeName(name), names)
    return op === 'ne' || op === 'not_in' ? facts.merchants.every(fits) : facts.merchants.some(fits)
  }
  return ops[op](asked as Comparable, type === 'money' ? values.map((one) => microFromUsdc(one as number)!) : values)
}

type Told = { rule: string; finding: Finding }

/** Deny and review rules speak when they match; of the allow rules one has to match. */
export function evaluateRuleList(rules: readonly Rule[], facts: PaymentFacts): Told[] {
  const allows = rules.filter((rule) => rule.effect === 'allow')
  const found = rules.flatMap((rule, index): Told[] => {
    if (rule.effect === 'allow') return []
    const spoke = matches(rule, facts)
    const condition = say(rule)
    const common = { asked: shown(rule.field, facts), limit: rule.value }
    if (!spoke)
      return [
        {
          rule: `rules[${index}]`,
          finding: { verdict: 'pass', reason: `It is not so that ${condition}.`, ...common },
        },
      ]
    const verdict = rule.effect === 'deny' ? 'blocked' : 'review_required'
    const smallest_change = { text: `Let it not be that ${condition}, or remove the rule.`, path: `rules[${index}]` }
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
  return allows.length === 0 ? found : [...found, { rule: 'rules.allow', finding: evaluateAllowRules(allows, facts) }]
}

function evaluateAllowRules(allows: readonly Rule[], facts: PaymentFacts): Finding {
  const hit = allows.find((rule) => matches(rule, facts))
  if (hit)
    return {
      verdict: 'pass',
      reason: hit.reason ?? `Allowed, since ${say(hit)}.`,
      asked: shown(hit.field, facts),
      limit: hit.value,
    }
  const first = allows[0]!
  return {
    verdict: 'blocked',
    reason: 'No allow rule of this policy holds.',
    asked: shown(first.field, facts),
    limit: first.value,
    smallest_change: { text: `Let it be that ${say(first)}, or add an allow rule.`, path: 'rules' },
  }
}

const say = ({ field, op, value }: Rule) => `${field} ${words[op]} ${Array.isArray(value) ? value.join(', ') : value}`

function shown(field: FieldName, facts: PaymentFacts): unknown {
  const asked = field === 'merchant' ? facts.merchants[0] : fields[field].read(facts)
  return typeof asked === 'bigint' ? usdcFromMicro(asked) : (asked ?? null)
}
