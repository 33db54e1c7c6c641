import { Type } from 'typebox'
import { microFromUsdc, usdcFromMicro } from '../../../platform/money.ts'
import { invalid } from '../../../platform/problem.ts'
import { pattern, plainName } from '../../../platform/schema.ts'
import { isAddress, type PaymentFacts, permittingNames } from '../assess/payment-facts.ts'
import { type CounterDemand, type CounterState, evaluateDemand } from '../counters/limit-counters.ts'
import { periodOf, type Window } from '../counters/windows.ts'
import { findPayee, type PayeeList, unlistedNames } from '../rules/payee-names.ts'
import { missingFieldFinding } from '../rules/required-fields.ts'
import type { Finding, RuleResult } from '../rules/rule-result.ts'

const Amount = Type.Union(
  [
    Type.Number({ minimum: 0, maximum: 1_000_000_000 }),
    Type.String(pattern('^(0|[1-9][0-9]{0,15})$', 'a whole number of atomic units, as text, with at most 16 digits')),
  ],
  { description: 'A number is USDC; a text is atomic units.' },
)
const currency = Type.String({ minLength: 1, maxLength: 12, description: 'USDC.' })
const time = Type.String({ maxLength: 40, description: 'A date or a time, ISO 8601.' })
const Payee = Type.Union([
  Type.String({ minLength: 1, maxLength: 200, ...plainName }),
  Type.Object(
    {
      id: Type.Optional(Type.String({ minLength: 1, maxLength: 200, ...plainName })),
      name: Type.Optional(Type.String({ maxLength: 200, ...plainName })),
      website: Type.Optional(Type.String({ maxLength: 500, ...plainName })),
    },
    { additionalProperties: false },
  ),
])

const frequencies = {
  ON_DEMAND: undefined,
  DAILY: 'day',
  WEEKLY: 'week',
  BIWEEKLY: 'two_weeks',
  MONTHLY: 'month',
  QUARTERLY: 'quarter',
  ANNUALLY: 'year',
} as const satisfies Record<string, Window | undefined>

const constraintSchema = <T extends Record<string, Parameters<typeof Type.Object>[0][string]>>(
  type: string,
  properties: T,
  description: string,
) => {
  // `payment.amount_range` becomes `MandateAmountRange`.
  const words = type.replace('payment.', '').split('_')
  const title = `Mandate${words.map((word) => `${word[0]!.toUpperCase()}${word.slice(1)}`).join('')}`
  return Type.Object({ type: Type.Literal(type), ...properties }, { title, additionalProperties: false, description })
}

/** The constraint types of AP2 payment mandates, under their AP2 names; amounts are in USDC. */
const constraintSchemas = [
  constraintSchema(
    'payment.amount_range',
    { currency, min: Type.Optional(Amount), max: Amount },
    'What one payment may be.',
  ),
  constraintSchema(
    'payment.allowed_payees',
    { allowed: Type.Array(Payee, { minItems: 1, maxItems: 500 }) },
    'Who may be paid: by id, name or website.',
  ),
  constraintSchema(
    'payment.budget',
    { currency, max: Amount },
    'The most that all payments together may be, over all merchants.',
  ),
  constraintSchema(
    'payment.agent_recurrence',
    {
      frequency: Type.Union(Object.keys(frequencies).map((frequency) => Type.Literal(frequency))),
      max_occurrences: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000 })),
    },
    'How often: one payment in each calendar window (UTC), and so many in all.',
  ),
  constraintSchema(
    'payment.execution_date',
    { not_before: Type.Optional(time), not_after: Type.Optional(time) },
    'When a payment may be made.',
  ),
]

/** `type` selects the schema, so a validation error refers to that constraint alone. */
export const MandateConstraintSchema = Type.Unsafe<MandateConstraint>({
  type: 'object',
  required: ['type'],
  discriminator: { propertyName: 'type' },
  oneOf: constraintSchemas,
})

type Amount = number | string
export type Payee = string | { id?: string; name?: string; website?: string }
export type MandateConstraint =
  | { type: 'payment.amount_range'; currency: string; min?: Amount; max: Amount }
  | { type: 'payment.allowed_payees'; allowed: Payee[] }
  | { type: 'payment.budget'; currency: string; max: Amount }
  | { type: 'payment.agent_recurrence'; frequency: keyof typeof frequencies; max_occurrences?: number }
  | { type: 'payment.execution_date'; not_before?: string; not_after?: string }

export type Mandate = {
  id: string
  name: string
  agent_id: string | null
  /** The holder's key and its rotated successors; null when any key of the tenant may use the mandate. */
  holderKeyIds: ReadonlySet<string> | null
  constraints: MandateConstraint[]
  status: 'active' | 'revoked'
  starts_at: Date
  expires_at: Date
}

export function checkMandateConstraints(constraints: readonly MandateConstraint[]): void {
  const types = new Set<string>()
  constraints.forEach((constraint, index) => {
    const path = `body/constraints/${index}`
    if (types.has(constraint.type)) throw invalid(`${path} repeats ${constraint.type}.`)
    types.add(constraint.type)
    if ('currency' in constraint && constraint.currency !== 'USDC')
      throw invalid(`${path}/currency must be USDC, not '${constraint.currency}'.`)
    for (const name of ['min', 'max'] as const) {
      if (name in constraint && toMicro((constraint as { max: Amount })[name as 'max']) === undefined)
        throw invalid(`${path}/${name} must be a non-negative amount with at most six decimals.`)
    }
    if (
      constraint.type === 'payment.amount_range' &&
      constraint.min !== undefined &&
      toMicro(constraint.min)! > toMicro(constraint.max)!
    )
      throw invalid(`${path}: min is above max.`)
    if (constraint.type === 'payment.execution_date') {
      for (const name of ['not_before', 'not_after'] as const)
        if (constraint[name] !== undefined && !isDateOrTime(constraint[name]))
          throw invalid(`${path}/${name} is neither a date (2030-01-31) nor a time with its zone.`)
      if (
        constraint.not_before !== undefined &&
        constraint.not_after !== undefined &&
        new Date(constraint.not_before) > toEndOfDay(constraint.not_after)
      )
        throw invalid(`${path}: not_before is later than not_after.`)
    }
    if (constraint.type === 'payment.allowed_payees')
      for (const payee of constraint.allowed)
        if (payeeNames(payee).length === 0) throw invalid(`${path}/allowed has a payee without id, name or website.`)
  })
}

const toMicro = (amount: Amount): bigint | undefined =>
  typeof amount === 'string' ? BigInt(amount) : microFromUsdc(amount)

export type MandateLimit = {
  scope: string
  window: Window
  measure: 'money' | 'count'
  limitMicro: bigint
  rule: string
}

/** The limits of a mandate. Its budget is one counter across all merchants. */
export const mandateLimits = (mandateId: string, constraints: readonly MandateConstraint[]): MandateLimit[] =>
  constraints.flatMap((constraint): MandateLimit[] => {
    if (constraint.type === 'payment.budget')
      return [
        {
          scope: mandateScope(mandateId, constraint.type),
          window: 'total',
          measure: 'money',
          limitMicro: toMicro(constraint.max)!,
          rule: constraint.type,
        },
      ]
    if (constraint.type !== 'payment.agent_recurrence') return []
    const window = frequencies[constraint.frequency]
    const recurrenceLimit = window && {
      scope: mandateScope(mandateId, constraint.type),
      window,
      measure: 'count' as const,
      limitMicro: 1n,
      rule: constraint.type,
    }
    const totalLimit = constraint.max_occurrences && {
      scope: mandateScope(mandateId, 'max_occurrences'),
      window: 'total' as const,
      measure: 'count' as const,
      limitMicro: BigInt(constraint.max_occurrences),
      rule: `${constraint.type}.max_occurrences`,
    }
    return [recurrenceLimit, totalLimit].filter((limit) => limit !== undefined && limit !== 0)
  })

const mandateScope = (mandateId: string, name: string) => `mandate:${mandateId}:${name}`

export const mandateDemands = (mandate: Mandate, facts: PaymentFacts): CounterDemand[] =>
  mandateLimits(mandate.id, mandate.constraints).map(({ scope, window, measure, limitMicro, rule }) => ({
    scope,
    window,
    period: periodOf(window, facts.at),
    amountMicro: measure === 'count' ? 1n : facts.amountMicro,
    measure,
    enforce: true,
    expectedLimitMicro: limitMicro,
    rule,
    path: rule,
  }))

/** Evaluates every rule of the mandate. Mandates are always enforced. */
export function evaluateMandate(
  mandate: Mandate,
  facts: PaymentFacts,
  stateOf: (demand: CounterDemand) => CounterState | 'held' | undefined,
): RuleResult[] {
  const counterResults = mandateDemands(mandate, facts).flatMap((demand) => {
    const state = stateOf(demand)
    return state === undefined
      ? []
      : [mandateResult(mandate, demand.rule, evaluateDemand(demand, state, facts.at), demand.scope)]
  })
  return [...evaluateStatelessMandate(mandate, facts), ...counterResults]
}

/** The rules of the mandate that need no counter. */
export const evaluateStatelessMandate = (mandate: Mandate, facts: PaymentFacts): RuleResult[] => [
  mandateResult(mandate, 'mandate', evaluateMandateStatus(mandate, facts)),
  ...mandate.constraints.flatMap((constraint) => {
    const finding = evaluateMandateConstraint(constraint, facts)
    return finding ? [mandateResult(mandate, constraint.type, finding)] : []
  }),
]

const mandateResult = (mandate: Mandate, rule: string, finding: Finding, counter?: string): RuleResult => ({
  policy_id: null,
  mandate_id: mandate.id,
  mandate_name: mandate.name,
  rule,
  mode: 'enforce',
  outcome: finding.verdict,
  ...finding,
  ...(counter !== undefined && { counter }),
})

/** The order in which mandates are tried: smallest amount, smallest budget, earliest expiry, id. */
export function compareMandates(a: Mandate, b: Mandate): number {
  return (
    compareAmounts(maxOf(a, 'payment.amount_range'), maxOf(b, 'payment.amount_range')) ||
    compareAmounts(maxOf(a, 'payment.budget'), maxOf(b, 'payment.budget')) ||
    a.expires_at.getTime() - b.expires_at.getTime() ||
    (a.id < b.id ? -1 : 1)
  )
}

function maxOf({ constraints }: Mandate, type: 'payment.amount_range' | 'payment.budget'): bigint | undefined {
  const constraint = constraints.find((candidate) => candidate.type === type)
  return constraint && 'max' in constraint ? toMicro(constraint.max) : undefined
}

/** A mandate without the constraint comes last. */
function compareAmounts(a: bigint | undefined, b: bigint | undefined): number {
  if (a === b) return 0
  if (a === undefined) return 1
  return b === undefined || a < b ? -1 : 1
}

/** Whether the mandate binds the payment: it is in force, and for one of the payment's agents or for the whole tenant. */
export const binds = (mandate: Mandate, facts: PaymentFacts): boolean =>
  isInForce(mandate, facts.at) && (mandate.agent_id === null || permittingNames(facts).includes(mandate.agent_id))

/** Whether the mandate would bind some agent's payment at this time. */
export const bindsAgent = (mandate: Mandate, { at }: PaymentFacts): boolean =>
  mandate.agent_id !== null && isInForce(mandate, at)

const isInForce = ({ status, starts_at, expires_at }: Mandate, at: Date) =>
  status === 'active' && starts_at <= at && at < expires_at

/** The result when the payment leaves out the agent, which would tell whether the mandate binds it. */
export const unboundResult = (mandate: Mandate): RuleResult =>
  mandateResult(mandate, 'mandate', missingFieldFinding({ missing: 'agent_id' }))

function evaluateMandateStatus(mandate: Mandate, facts: PaymentFacts): Finding {
  const block = (reason: string, text: string): Finding => ({ verdict: 'blocked', reason, smallest_change: { text } })
  if (mandate.status === 'revoked')
    return block(`The mandate '${mandate.name}' is revoked.`, 'Use a mandate that is not revoked.')
  if (facts.at < mandate.starts_at) {
    const from = mandate.starts_at.toISOString()
    return {
      verdict: 'blocked',
      reason: `The mandate '${mandate.name}' begins at ${from}.`,
      smallest_change: { text: `Ask again at ${from}.`, retry_at: from },
    }
  }
  if (facts.at >= mandate.expires_at)
    return block(
      `The mandate '${mandate.name}' expired at ${mandate.expires_at.toISOString()}.`,
      'Use a mandate that has not expired.',
    )
  if (mandate.agent_id !== null && !permittingNames(facts).includes(mandate.agent_id))
    return block(
      `The mandate '${mandate.name}' is for the agent '${mandate.agent_id}'.`,
      `Pay as the agent '${mandate.agent_id}'.`,
    )
  if (mandate.holderKeyIds && !mandate.holderKeyIds.has(facts.keyId ?? ''))
    return block(`The mandate '${mandate.name}' is held by another key.`, 'Use the key that holds the mandate.')
  return { verdict: 'pass', reason: `The mandate '${mandate.name}' is in force.` }
}

function evaluateMandateConstraint(constraint: MandateConstraint, facts: PaymentFacts): Finding | undefined {
  switch (constraint.type) {
    case 'payment.amount_range':
      return evaluateAmountRange(
        facts.amountMicro,
        constraint.min === undefined ? 0n : toMicro(constraint.min)!,
        toMicro(constraint.max)!,
      )
    case 'payment.allowed_payees':
      return evaluatePayees(facts, constraint.allowed)
    case 'payment.execution_date':
      return evaluateDates(facts.at, constraint)
    default:
      return undefined
  }
}

function evaluateAmountRange(amountMicro: bigint, minMicro: bigint, maxMicro: bigint): Finding {
  const [asked, min, max] = [amountMicro, minMicro, maxMicro].map(usdcFromMicro)
  const common = { asked, limit: { min, max } }
  if (amountMicro > maxMicro)
    return {
      verdict: 'blocked',
      reason: `${asked} USDC is more than ${max}.`,
      ...common,
      smallest_change: { text: `Ask for ${max} USDC at most.`, to: max },
    }
  if (amountMicro < minMicro)
    return {
      verdict: 'blocked',
      reason: `${asked} USDC is less than ${min}.`,
      ...common,
      smallest_change: { text: `Ask for ${min} USDC at least.`, to: min },
    }
  return { verdict: 'pass', reason: `${asked} USDC lies between ${min} and ${max}.`, ...common }
}

function evaluatePayees(facts: PaymentFacts, allowed: readonly Payee[]): Finding {
  const lists = payeeLists(allowed)
  const first = facts.merchants[0]
  const common = { asked: first, limit: { entries: allowed.length } }
  const unlisted = lists.map((list) => unlistedNames(list, facts))
  const matched = lists.find((_, index) => unlisted[index]!.length === 0)
  if (matched)
    return {
      verdict: 'pass',
      reason: `'${first}' is an allowed payee.`,
      ...common,
      matched: findPayee(matched, facts)?.name,
    }
  const nearest = unlisted.reduce((least, names) => (names.length < least.length ? names : least))
  return {
    verdict: 'blocked',
    reason: `'${nearest[0]}' is not an allowed payee.`,
    ...common,
    asked: nearest[0],
    smallest_change: { text: `Create a mandate that allows ${nearest.map((name) => `'${name}'`).join(' and ')}.` },
  }
}

/** Mandates are cached, so their payees are read once. */
const readPayees = new WeakMap<readonly Payee[], PayeeList[]>()

/**
 * Payees that are given as text are one list, and each that is given as an object is one of its own: its id says nothing of the hosts
 * of another payee. An address is in every list, so that where the mandate names addresses no other is paid.
 */
function payeeLists(allowed: readonly Payee[]): PayeeList[] {
  const existing = readPayees.get(allowed)
  if (existing) return existing
  const texts = allowed.filter((payee) => typeof payee === 'string')
  const objects = allowed.filter((payee) => typeof payee === 'object')
  const addresses = allowed.flatMap(payeeNames).filter(isAddress)
  // A name beside an id or a website is for people: the payee may use it, and need not.
  const named = (payee: Payee): PayeeList =>
    Object.assign([...payeeNames(payee), ...addresses], {
      names: typeof payee === 'object' && payee.name !== undefined ? [payee.name] : [],
    })
  const lists = [...(texts.length > 0 ? [[...texts, ...addresses]] : []), ...objects.map(named)]
  readPayees.set(allowed, lists)
  return lists
}

/** A website with a port allows only that port. */
function payeeNames(payee: Payee): string[] {
  if (typeof payee === 'string') return [payee]
  const names = [payee.id, payee.website].filter((name) => name !== undefined)
  return names.length > 0 || payee.name === undefined ? names : [payee.name]
}

const DATE_OR_TIME = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d))?$/

/** `new Date` accepts `1`, `Jan 5` and 30 February, some of them in the local time zone, so the format is checked. */
function isDateOrTime(text: string): boolean {
  const day = text.slice(0, 10)
  return (
    DATE_OR_TIME.test(text) &&
    !Number.isNaN(Date.parse(text)) &&
    new Date(`${day}T00:00:00Z`).toISOString().startsWith(day)
  )
}

/** A date without a time lasts until the end of that day. */
const toEndOfDay = (text: string) => new Date(/^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T23:59:59.999Z` : text)

function evaluateDates(at: Date, { not_before, not_after }: { not_before?: string; not_after?: string }): Finding {
  const common = { asked: at.toISOString(), limit: { not_before: not_before ?? null, not_after: not_after ?? null } }
  if (not_before !== undefined && at < new Date(not_before)) {
    const from = new Date(not_before).toISOString()
    return {
      verdict: 'blocked',
      reason: `The payment date is before ${not_before}.`,
      ...common,
      smallest_change: { text: `Ask again at ${from}.`, retry_at: from },
    }
  }
  if (not_after !== undefined && at > toEndOfDay(not_after))
    return {
      verdict: 'blocked',
      reason: `The payment date is after ${not_after}.`,
      ...common,
      smallest_change: { text: 'Create a mandate with a later not_after.' },
    }
  return { verdict: 'pass', reason: 'The payment date is within the dates of the mandate.', ...common }
}
