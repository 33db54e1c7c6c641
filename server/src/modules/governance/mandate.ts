import { Type } from 'typebox'
import { microFromUsdc, usdcFromMicro } from '../../platform/money.ts'
import { invalid } from '../../platform/problem.ts'
import { type CounterDemand, type CounterState, evaluateDemand } from './limit-counters.ts'
import { normalizeName, type PaymentFacts, urlHosts } from './payment-facts.ts'
import type { Finding, RuleResult } from './rule-result.ts'
import { periodOf, type Window } from './windows.ts'

const Amount = Type.Union(
  [Type.Number({ minimum: 0, maximum: 1_000_000_000 }), Type.String({ pattern: '^(0|[1-9][0-9]{0,15})$' })],
  { description: 'A number is USDC; a text is atomic units.' },
)
const currency = Type.String({ minLength: 1, maxLength: 12, description: 'USDC.' })
const time = Type.String({ maxLength: 40, description: 'A date or a time, ISO 8601.' })
const Payee = Type.Union([
  Type.String({ minLength: 1, maxLength: 200 }),
  Type.Object(
    {
      id: Type.Optional(Type.String({ minLength: 1, maxLength: 200 })),
      name: Type.Optional(Type.String({ maxLength: 200 })),
      website: Type.Optional(Type.String({ maxLength: 500 })),
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

const constraint = <T extends Record<string, Parameters<typeof Type.Object>[0][string]>>(
  type: string,
  properties: T,
  description: string,
) => Type.Object({ type: Type.Literal(type), ...properties }, { additionalProperties: false, description })

/** The constraint types of AP2's payment mandates, in their own words; amounts are in USDC. */
const constraintSchemas = [
  constraint('payment.amount_range', { currency, min: Type.Optional(Amount), max: Amount }, 'What one payment may be.'),
  constraint(
    'payment.allowed_payees',
    { allowed: Type.Array(Payee, { minItems: 1, maxItems: 500 }) },
    'Who may be paid: by id, name or website.',
  ),
  constraint(
    'payment.budget',
    { currency, max: Amount },
    'The most that all payments together may be, over all merchants.',
  ),
  constraint(
    'payment.agent_recurrence',
    {
      frequency: Type.Union(Object.keys(frequencies).map((one) => Type.Literal(one))),
      max_occurrences: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000 })),
    },
    'How often: one payment in each calendar window (UTC), and so many in all.',
  ),
  constraint(
    'payment.execution_date',
    { not_before: Type.Optional(time), not_after: Type.Optional(time) },
    'When a payment may be made.',
  ),
]

/** `type` decides which of them is meant, so that a refusal speaks of that one. */
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
  /** The key that holds it and those that took that key's place; null when any key of the tenant may use it. */
  holderKeyIds: ReadonlySet<string> | null
  constraints: MandateConstraint[]
  status: 'active' | 'revoked'
  starts_at: Date
  expires_at: Date
}

export function checkMandateConstraints(constraints: readonly MandateConstraint[]): void {
  const seen = new Set<string>()
  constraints.forEach((one, index) => {
    const where = `body/constraints/${index}`
    if (seen.has(one.type)) throw invalid(`${where} repeats ${one.type}.`)
    seen.add(one.type)
    if ('currency' in one && one.currency !== 'USDC')
      throw invalid(`${where}/currency must be USDC, not '${one.currency}'.`)
    for (const name of ['min', 'max'] as const) {
      if (name in one && amountOf((one as { max: Amount })[name as 'max']) === undefined)
        throw invalid(`${where}/${name} must be a non-negative amount with at most six decimals.`)
    }
    if (one.type === 'payment.amount_range' && one.min !== undefined && amountOf(one.min)! > amountOf(one.max)!)
      throw invalid(`${where}: min is above max.`)
    if (one.type === 'payment.execution_date') {
      for (const name of ['not_before', 'not_after'] as const)
        if (one[name] !== undefined && !isTime(one[name]))
          throw invalid(`${where}/${name} is neither a date (2030-01-31) nor a time with its zone.`)
      if (
        one.not_before !== undefined &&
        one.not_after !== undefined &&
        new Date(one.not_before) > endOfTime(one.not_after)
      )
        throw invalid(`${where}: not_before is later than not_after.`)
    }
    if (one.type === 'payment.allowed_payees')
      for (const payee of one.allowed)
        if (payeeNames(payee).length === 0) throw invalid(`${where}/allowed names nobody.`)
  })
}

const amountOf = (amount: Amount): bigint | undefined =>
  typeof amount === 'string' ? BigInt(amount) : microFromUsdc(amount)

export type MandateLimit = {
  scope: string
  window: Window
  measure: 'money' | 'count'
  limitMicro: bigint
  rule: string
}

/** The counters of a mandate. Its budget is one counter over all merchants: that is the point of it. */
export const mandateLimits = (mandateId: string, constraints: readonly MandateConstraint[]): MandateLimit[] =>
  constraints.flatMap((one): MandateLimit[] => {
    if (one.type === 'payment.budget')
      return [
        {
          scope: mandateScope(mandateId, one.type),
          window: 'total',
          measure: 'money',
          limitMicro: amountOf(one.max)!,
          rule: one.type,
        },
      ]
    if (one.type !== 'payment.agent_recurrence') return []
    const window = frequencies[one.frequency]
    const spaced = window && {
      scope: mandateScope(mandateId, one.type),
      window,
      measure: 'count' as const,
      limitMicro: 1n,
      rule: one.type,
    }
    const most = one.max_occurrences && {
      scope: mandateScope(mandateId, 'max_occurrences'),
      window: 'total' as const,
      measure: 'count' as const,
      limitMicro: BigInt(one.max_occurrences),
      rule: `${one.type}.max_occurrences`,
    }
    return [spaced, most].filter((limit) => limit !== undefined && limit !== 0)
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
    foreseenLimitMicro: limitMicro,
    rule,
    path: rule,
  }))

/** Whether the mandate covers this payment, rule by rule. A mandate is always enforced. */
export function evaluateMandate(
  mandate: Mandate,
  facts: PaymentFacts,
  keyId: string,
  stateOf: (demand: CounterDemand) => CounterState | 'held' | undefined,
): RuleResult[] {
  const told = (rule: string, finding: Finding, counter?: string): RuleResult => ({
    policy_id: null,
    mandate_id: mandate.id,
    rule,
    mode: 'enforce',
    outcome: finding.verdict,
    ...finding,
    ...(counter !== undefined && { counter }),
  })
  const stateless = mandate.constraints.flatMap((one) => {
    const finding = evaluateMandateConstraint(one, facts)
    return finding ? [told(one.type, finding)] : []
  })
  const counted = mandateDemands(mandate, facts).flatMap((demand) => {
    const state = stateOf(demand)
    return state === undefined ? [] : [told(demand.rule, evaluateDemand(demand, state, facts.at), demand.scope)]
  })
  return [told('mandate', evaluateMandateStatus(mandate, facts, keyId)), ...stateless, ...counted]
}

function evaluateMandateStatus(mandate: Mandate, facts: PaymentFacts, keyId: string): Finding {
  const refuse = (reason: string, text: string): Finding => ({ verdict: 'blocked', reason, smallest_change: { text } })
  if (mandate.status === 'revoked')
    return refuse(`The mandate '${mandate.name}' is revoked.`, 'Use a mandate that is not revoked.')
  if (facts.at < mandate.starts_at) {
    const from = mandate.starts_at.toISOString()
    return {
      verdict: 'blocked',
      reason: `The mandate '${mandate.name}' begins at ${from}.`,
      smallest_change: { text: `Ask again at ${from}.`, retry_at: from },
    }
  }
  if (facts.at >= mandate.expires_at)
    return refuse(
      `The mandate '${mandate.name}' ended at ${mandate.expires_at.toISOString()}.`,
      'Use a mandate that has not ended.',
    )
  if (mandate.agent_id !== null && mandate.agent_id !== facts.agentId)
    return refuse(
      `The mandate '${mandate.name}' is for the agent '${mandate.agent_id}'.`,
      `Pay as the agent '${mandate.agent_id}'.`,
    )
  if (mandate.holderKeyIds && !mandate.holderKeyIds.has(keyId))
    return refuse(`The mandate '${mandate.name}' is held by another key.`, 'Ask with the key that holds the mandate.')
  return { verdict: 'pass', reason: `The mandate '${mandate.name}' is in force.` }
}

function evaluateMandateConstraint(one: MandateConstraint, facts: PaymentFacts): Finding | undefined {
  switch (one.type) {
    case 'payment.amount_range':
      return withinRange(facts.amountMicro, one.min === undefined ? 0n : amountOf(one.min)!, amountOf(one.max)!)
    case 'payment.allowed_payees':
      return payable(facts.merchants, one.allowed)
    case 'payment.execution_date':
      return inTime(facts.at, one)
    default:
      return undefined
  }
}

function withinRange(amountMicro: bigint, minMicro: bigint, maxMicro: bigint): Finding {
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

function payable(merchants: readonly string[], allowed: readonly Payee[]): Finding {
  const names = allowed.flatMap(payeeNames)
  const common = { asked: merchants[0], limit: names }
  if (merchants.some((one) => names.includes(normalizeName(one))))
    return { verdict: 'pass', reason: `'${merchants[0]}' is an allowed payee.`, ...common }
  return {
    verdict: 'blocked',
    reason: `'${merchants[0]}' is not an allowed payee.`,
    ...common,
    smallest_change: { text: `Make a mandate that allows '${merchants[0]}'.` },
  }
}

function payeeNames(payee: Payee): string[] {
  if (typeof payee === 'string') return [normalizeName(payee)]
  // Of a website with a port only that port is meant.
  const site =
    payee.website !== undefined && URL.canParse(payee.website) ? urlHosts(payee.website).at(-1) : payee.website
  return [payee.id, payee.name, site].filter((name) => name !== undefined).map(normalizeName)
}

const DATE_OR_TIME = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d))?$/

/** JavaScript reads `1`, `Jan 5` and the thirtieth of February as dates, some of them in the zone of the machine. */
function isTime(text: string): boolean {
  const day = text.slice(0, 10)
  return (
    DATE_OR_TIME.test(text) &&
    !Number.isNaN(Date.parse(text)) &&
    new Date(`${day}T00:00:00Z`).toISOString().startsWith(day)
  )
}

/** A day without a time lasts until its end. */
const endOfTime = (text: string) => new Date(/^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T23:59:59.999Z` : text)

function inTime(at: Date, { not_before, not_after }: { not_before?: string; not_after?: string }): Finding {
  const common = { asked: at.toISOString(), limit: { not_before: not_before ?? null, not_after: not_after ?? null } }
  if (not_before !== undefined && at < new Date(not_before)) {
    const from = new Date(not_before).toISOString()
    return {
      verdict: 'blocked',
      reason: `It is before ${not_before}.`,
      ...common,
      smallest_change: { text: `Ask again at ${from}.`, retry_at: from },
    }
  }
  if (not_after !== undefined && at > endOfTime(not_after))
    return {
      verdict: 'blocked',
      reason: `It is after ${not_after}.`,
      ...common,
      smallest_change: { text: 'Make a mandate with a later not_after.' },
    }
  return { verdict: 'pass', reason: 'It is within the dates of the mandate.', ...common }
}
