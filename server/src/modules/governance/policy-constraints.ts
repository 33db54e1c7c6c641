import { Type } from 'typebox'
import { microFromUsdc, usdcFromMicro } from '../../platform/money.ts'
import { invalid } from '../../platform/problem.ts'
import { normalizeName, type PaymentFacts } from './payment-facts.ts'
import type { Finding, SmallestChange } from './rule-result.ts'
import type { Window } from './windows.ts'

const MAX_USDC = 1_000_000_000
const usdc = (description: string) => Type.Optional(Type.Number({ minimum: 0, maximum: MAX_USDC, description }))
const names = (description: string) =>
  Type.Optional(Type.Array(Type.String({ minLength: 1, maxLength: 200 }), { maxItems: 500, description }))
const hour = Type.Integer({ minimum: 0, maximum: 23 })

/** Every constraint a policy can have. One that is not listed is refused, since ignoring it would be a hole. */
export const ConstraintsSchema = Type.Object(
  {
    max_per_run_usdc: usdc('Most that one payment may cost.'),
    max_per_day_usdc: usdc('Most in one UTC day, counted from when the policy begins to say so.'),
    max_per_month_usdc: usdc('Most in one UTC month, counted from when the policy begins to say so.'),
    max_runs_per_minute: Type.Optional(
      Type.Integer({ minimum: 0, maximum: 1_000_000, description: 'Payments in one clock minute.' }),
    ),
    allowed_agents: names('Only these agents. An empty list allows none.'),
    denied_agents: names('Never these agents.'),
    allowed_merchants: names(
      'Only these merchants, by id, host or address. Our own runs have the merchant `countersign`.',
    ),
    denied_merchants: names('Never these merchants.'),
    allowed_networks: names('Only these networks, in CAIP-2 form.'),
    allowed_hours_utc: Type.Optional(
      Type.Union(
        [
          Type.Array(hour, { maxItems: 24 }),
          Type.Object({ start: hour, end: Type.Integer({ minimum: 0, maximum: 24 }) }, { additionalProperties: false }),
        ],
        {
          description:
            'The hours that are allowed: a list, or from `start` up to but without `end`, over midnight when `start` is the later.',
        },
      ),
    ),
    require_approval_above_usdc: usdc('A person has to approve what costs more.'),
    approvals_required: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 10, description: 'How many different keys have to approve. Default 1.' }),
    ),
    separate_approver: Type.Optional(Type.Boolean({ description: 'Who asked may not approve.' })),
    require_preauth: Type.Optional(
      Type.Boolean({ description: 'A pre-authorisation token has to come before execution.' }),
    ),
    allowed_instruments: names('Trades: only these instrument types.'),
    denied_instruments: names('Trades: never these instrument types.'),
    max_leverage: Type.Optional(Type.Number({ minimum: 0, maximum: 1_000, description: 'Trades: highest leverage.' })),
    max_notional_usdc: usdc('Trades: highest notional.'),
  },
  { additionalProperties: false },
)

type Hours = readonly number[] | { start: number; end: number }

export type Constraints = {
  max_per_run_usdc?: number
  max_per_day_usdc?: number
  max_per_month_usdc?: number
  max_runs_per_minute?: number
  allowed_agents?: string[]
  denied_agents?: string[]
  allowed_merchants?: string[]
  denied_merchants?: string[]
  allowed_networks?: string[]
  allowed_hours_utc?: Hours
  require_approval_above_usdc?: number
  approvals_required?: number
  separate_approver?: boolean
  require_preauth?: boolean
  allowed_instruments?: string[]
  denied_instruments?: string[]
  max_leverage?: number
  max_notional_usdc?: number
}

/** Constraints on how much or how often: counted in `limits`, where alone they can be exact. */
export const velocityConstraints = {
  max_per_day_usdc: { window: 'day', measure: 'money' },
  max_per_month_usdc: { window: 'month', measure: 'money' },
  max_runs_per_minute: { window: 'minute', measure: 'count' },
} as const satisfies Partial<Record<keyof Constraints, { window: Window; measure: 'money' | 'count' }>>

export type VelocityConstraint = keyof typeof velocityConstraints

/** JSON cannot say that an amount has at most six decimals, nor that a range of hours is not empty. */
export function checkConstraints(constraints: Constraints): void {
  for (const [name, value] of Object.entries(constraints)) {
    if (name.endsWith('_usdc') && microFromUsdc(value as number) === undefined)
      throw invalid(`body/constraints/${name} must be a non-negative amount with at most six decimals.`)
  }
  const hours = constraints.allowed_hours_utc
  if (hours && 'start' in hours && hours.start === hours.end)
    throw invalid('body/constraints/allowed_hours_utc: start and end are the same hour.')
}

export const microOf = (usdcAmount: number): bigint => microFromUsdc(usdcAmount)!

/** What the stateless constraints say; undefined where a constraint does not speak of this kind of payment. */
const judges: {
  [C in keyof Constraints]?: (value: NonNullable<Constraints[C]>, facts: PaymentFacts) => Finding | undefined
} = {
  max_per_run_usdc: (max, { amountMicro }) => atMost('max_per_run_usdc', amountMicro, microOf(max)),
  allowed_agents: (allowed, { agentId }) => among('allowed_agents', 'agent', [agentId], allowed),
  denied_agents: (denied, { agentId }) => notAmong('denied_agents', 'agent', [agentId], denied),
  allowed_merchants: (allowed, { merchants }) => among('allowed_merchants', 'merchant', merchants, allowed),
  denied_merchants: (denied, { merchants }) => notAmong('denied_merchants', 'merchant', merchants, denied),
  allowed_networks: (allowed, { network }) =>
    network === null ? undefined : among('allowed_networks', 'network', [network], allowed),
  allowed_hours_utc: (hours, { at }) => duringHours(hours, at),
  require_approval_above_usdc: (limit, { amountMicro }) => approvalAbove(amountMicro, microOf(limit)),
  require_preauth: (required, { preauthorised, kind }) =>
    required && kind !== 'action' ? afterPreauth(preauthorised) : undefined,
  allowed_instruments: (allowed, { instrument }) =>
    instrument === undefined ? undefined : among('allowed_instruments', 'instrument', [instrument], allowed),
  denied_instruments: (denied, { instrument }) =>
    instrument === undefined ? undefined : notAmong('denied_instruments', 'instrument', [instrument], denied),
  max_leverage: (max, { leverage }) => (leverage === undefined ? undefined : leverageAtMost(leverage, max)),
  max_notional_usdc: (max, { notionalMicro }) =>
    notionalMicro === undefined ? undefined : atMost('max_notional_usdc', notionalMicro, microOf(max)),
}

/** Each constraint that has something to say about this payment, in the order they are listed above. */
export function evaluateConstraints(
  constraints: Constraints,
  facts: PaymentFacts,
): { rule: string; finding: Finding }[] {
  return Object.entries(judges).flatMap(([name, judge]) => {
    const value = constraints[name as keyof Constraints]
    const finding =
      value === undefined
        ? undefined
        : (judge as (value: unknown, facts: PaymentFacts) => Finding | undefined)(value, facts)
    return finding ? [{ rule: name, finding }] : []
  })
}

function atMost(name: string, askedMicro: bigint, limitMicro: bigint): Finding {
  const asked = usdcFromMicro(askedMicro)
  const limit = usdcFromMicro(limitMicro)
  if (askedMicro <= limitMicro)
    return { verdict: 'pass', reason: `${asked} USDC is within ${name} ${limit}.`, asked, limit }
  return {
    verdict: 'blocked',
    reason: `${asked} USDC is more than ${name} ${limit}.`,
    asked,
    limit,
    smallest_change: raise(name, limit, asked),
  }
}

function approvalAbove(askedMicro: bigint, limitMicro: bigint): Finding {
  const name = 'require_approval_above_usdc'
  const asked = usdcFromMicro(askedMicro)
  const limit = usdcFromMicro(limitMicro)
  if (askedMicro <= limitMicro)
    return { verdict: 'pass', reason: `${asked} USDC needs no approval: ${name} is ${limit}.`, asked, limit }
  return {
    verdict: 'review_required',
    reason: `${asked} USDC is more than ${name} ${limit}: a person has to approve it.`,
    asked,
    limit,
    smallest_change: raise(name, limit, asked),
  }
}

function leverageAtMost(asked: number, limit: number): Finding {
  if (asked <= limit)
    return { verdict: 'pass', reason: `Leverage ${asked} is within max_leverage ${limit}.`, asked, limit }
  return {
    verdict: 'blocked',
    reason: `Leverage ${asked} is more than max_leverage ${limit}.`,
    asked,
    limit,
    smallest_change: raise('max_leverage', limit, asked),
  }
}

function among(name: string, noun: string, asked: readonly string[], allowed: readonly string[]): Finding {
  const first = asked[0]!
  if (asked.some((one) => holds(allowed, one)))
    return { verdict: 'pass', reason: `The ${noun} '${first}' is in ${name}.`, asked: first, limit: allowed }
  return {
    verdict: 'blocked',
    reason: `The ${noun} '${first}' is not in ${name}.`,
    asked: first,
    limit: allowed,
    smallest_change: {
      text: `Add '${first}' to ${name}.`,
      path: `constraints.${name}`,
      from: allowed,
      to: [...allowed, first],
    },
  }
}

function notAmong(name: string, noun: string, asked: readonly string[], denied: readonly string[]): Finding {
  const hit = asked.find((one) => holds(denied, one))
  if (hit === undefined)
    return { verdict: 'pass', reason: `The ${noun} '${asked[0]}' is not in ${name}.`, asked: asked[0], limit: denied }
  return {
    verdict: 'blocked',
    reason: `The ${noun} '${hit}' is in ${name}.`,
    asked: hit,
    limit: denied,
    smallest_change: {
      text: `Remove '${hit}' from ${name}.`,
      path: `constraints.${name}`,
      from: denied,
      to: denied.filter((one) => !holds([one], hit)),
    },
  }
}

const holds = (list: readonly string[], one: string) =>
  list.some((entry) => normalizeName(entry) === normalizeName(one))

function duringHours(hours: Hours, at: Date): Finding {
  const asked = at.getUTCHours()
  const allowed = hoursOf(hours)
  const limit = [...allowed].sort((a, b) => a - b)
  if (allowed.has(asked)) return { verdict: 'pass', reason: `${asked}:00 UTC is in allowed_hours_utc.`, asked, limit }
  const wait = Array.from({ length: 24 }, (_, ahead) => ahead).find((ahead) => allowed.has((asked + ahead) % 24))
  const next = new Date(Math.floor(at.getTime() / 3_600_000) * 3_600_000 + (wait ?? 0) * 3_600_000)
  return {
    verdict: 'blocked',
    reason: `${asked}:00 UTC is not in allowed_hours_utc.`,
    asked,
    limit,
    smallest_change:
      wait === undefined
        ? {
            text: 'Add an hour to allowed_hours_utc: it allows none.',
            path: 'constraints.allowed_hours_utc',
            from: limit,
            to: [asked],
          }
        : { text: `Ask again at ${next.toISOString()}.`, retry_at: next.toISOString() },
  }
}

function hoursOf(hours: Hours): Set<number> {
  if (!('start' in hours)) return new Set(hours)
  const length = (hours.end - hours.start + 24) % 24 || 24
  return new Set(Array.from({ length }, (_, index) => (hours.start + index) % 24))
}

function afterPreauth(preauthorised: boolean): Finding {
  if (preauthorised) return { verdict: 'pass', reason: 'A pre-authorisation came first.', asked: true, limit: true }
  return {
    verdict: 'blocked',
    reason: 'A pre-authorisation has to come first.',
    asked: false,
    limit: true,
    smallest_change: { text: 'POST /api/pre-auth first, and send its token as preauth_token.', path: 'preauth_token' },
  }
}

const raise = (name: string, from: number, to: number): SmallestChange => ({
  text: `Raise ${name} to ${to}.`,
  path: `constraints.${name}`,
  from,
  to,
})
