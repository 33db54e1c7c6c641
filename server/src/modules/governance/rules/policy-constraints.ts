import { Type } from 'typebox'
import { microFromUsdc, usdcFromMicro } from '../../../platform/money.ts'
import { invalid } from '../../../platform/problem.ts'
import { plainName } from '../../../platform/schema.ts'
import { agentNames, type PaymentFacts, permittingNames } from '../assess/payment-facts.ts'
import type { Window } from '../counters/windows.ts'
import { exactName, findName, instrumentName, looseName } from './name-list.ts'
import { findPayee, unlistedNames } from './payee-names.ts'
import { requireInstrument, requireNetwork } from './possible-values.ts'
import type { Finding, SmallestChange } from './rule-result.ts'

const MAX_USDC = 1_000_000_000
const usdc = (description: string) => Type.Optional(Type.Number({ minimum: 0, maximum: MAX_USDC, description }))
const names = (description: string) =>
  Type.Optional(Type.Array(Type.String({ minLength: 1, maxLength: 200, ...plainName }), { maxItems: 500, description }))
const hour = Type.Integer({ minimum: 0, maximum: 23 })

/** Every constraint of a policy. Unknown constraints are rejected, because a constraint that is ignored allows what it should deny. */
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
      'Only these merchants, by id, host or address: every name of a kind that the list has must be in it. Our own runs have the merchant `countersign`.',
    ),
    denied_merchants: names('Never these merchants, by any of their names.'),
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
    separate_approver: Type.Optional(Type.Boolean({ description: 'The key that made the request cannot approve it.' })),
    require_preauth: Type.Optional(
      Type.Boolean({ description: 'A pre-authorisation token has to come before execution.' }),
    ),
    require_mandate: Type.Optional(Type.Boolean({ description: 'A mandate has to cover the payment.' })),
    allowed_instruments: names('Trades: only these instrument types or symbols, without regard to case.'),
    denied_instruments: names('Trades: never these instrument types or symbols, without regard to case.'),
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
  require_mandate?: boolean
  allowed_instruments?: string[]
  denied_instruments?: string[]
  max_leverage?: number
  max_notional_usdc?: number
}

/** Constraints on amount or count per window. They are counted in `limits`, which is exact under concurrency. */
export const velocityConstraints = {
  max_per_day_usdc: { window: 'day', measure: 'money' },
  max_per_month_usdc: { window: 'month', measure: 'money' },
  max_runs_per_minute: { window: 'minute', measure: 'count' },
} as const satisfies Partial<Record<keyof Constraints, { window: Window; measure: 'money' | 'count' }>>

export type VelocityConstraint = keyof typeof velocityConstraints

/** Checks that JSON schema cannot express: at most six decimals, and a range of hours that is not empty. */
export function checkConstraints(constraints: Constraints): void {
  for (const [name, value] of Object.entries(constraints)) {
    if (name.endsWith('_usdc') && microFromUsdc(value as number) === undefined)
      throw invalid(`body/constraints/${name} must be a non-negative amount with at most six decimals.`)
  }
  for (const list of ['allowed_instruments', 'denied_instruments'] as const)
    constraints[list]?.forEach((name, index) => {
      requireInstrument(`body/constraints/${list}/${index}`, name)
    })
  constraints.allowed_networks?.forEach((name, index) => {
    requireNetwork(`body/constraints/allowed_networks/${index}`, name)
  })
  const hours = constraints.allowed_hours_utc
  if (hours && 'start' in hours && hours.start === hours.end)
    throw invalid('body/constraints/allowed_hours_utc: start and end are the same hour.')
}

export const toMicro = (usdcAmount: number): bigint => microFromUsdc(usdcAmount)!

/** Evaluates the constraints without counters; undefined when a constraint does not apply to this kind of payment. */
const evaluators: {
  [C in keyof Constraints]?: (value: NonNullable<Constraints[C]>, facts: PaymentFacts) => Finding | undefined
} = {
  max_per_run_usdc: (max, { amountMicro }) => evaluateMaximum('max_per_run_usdc', amountMicro, toMicro(max)),
  allowed_agents: (allowed, facts) => allowNames('allowed_agents', 'agent', permittingNames(facts), allowed, exactName),
  denied_agents: (denied, facts) => denyNames('denied_agents', 'agent', agentNames(facts), denied, looseName),
  allowed_merchants: (allowed, facts) =>
    evaluateAllowList('allowed_merchants', 'merchant', facts.merchants[0], allowed, {
      matched: findPayee(allowed, facts)?.name,
      unlisted: unlistedNames(allowed, facts),
    }),
  denied_merchants: (denied, facts) =>
    evaluateDenyList('denied_merchants', 'merchant', facts.merchants[0], denied, findPayee(denied, facts)),
  allowed_networks: (allowed, { network }) =>
    network === null ? undefined : allowNames('allowed_networks', 'network', [network], allowed, exactName),
  allowed_hours_utc: (hours, { at }) => evaluateHours(hours, at),
  require_approval_above_usdc: (limit, { amountMicro }) => evaluateApprovalThreshold(amountMicro, toMicro(limit)),
  require_preauth: (required, { preauthorised, kind }) =>
    required && kind !== 'action' ? evaluatePreauth(preauthorised, kind) : undefined,
  require_mandate: (required, { mandateId, kind }) =>
    required && kind !== 'action' ? evaluateMandateUse(mandateId ?? null) : undefined,
  allowed_instruments: (allowed, facts) =>
    facts.instrument === undefined
      ? undefined
      : allowNames('allowed_instruments', 'instrument', instrumentNames(facts), allowed, instrumentName),
  denied_instruments: (denied, facts) =>
    facts.instrument === undefined
      ? undefined
      : denyNames('denied_instruments', 'instrument', instrumentNames(facts), denied, instrumentName),
  max_leverage: (max, { leverage }) => (leverage === undefined ? undefined : evaluateLeverage(leverage, max)),
  max_notional_usdc: (max, { notionalMicro }) =>
    notionalMicro === undefined ? undefined : evaluateMaximum('max_notional_usdc', notionalMicro, toMicro(max)),
}

const instrumentNames = ({ instrument, symbol }: PaymentFacts): string[] =>
  [instrument, symbol].filter((name) => name !== undefined)

/** The findings of all constraints that apply to the payment, in the order listed above. */
export function evaluateConstraints(
  constraints: Constraints,
  facts: PaymentFacts,
): { rule: string; finding: Finding }[] {
  return Object.entries(evaluators).flatMap(([name, evaluate]) => {
    const value = constraints[name as keyof Constraints]
    const finding =
      value === undefined
        ? undefined
        : (evaluate as (value: unknown, facts: PaymentFacts) => Finding | undefined)(value, facts)
    return finding ? [{ rule: name, finding }] : []
  })
}

function evaluateMaximum(name: string, amountMicro: bigint, limitMicro: bigint): Finding {
  const asked = usdcFromMicro(amountMicro)
  const limit = usdcFromMicro(limitMicro)
  if (amountMicro <= limitMicro)
    return { verdict: 'pass', reason: `${asked} USDC is within ${name} ${limit}.`, asked, limit }
  return {
    verdict: 'blocked',
    reason: `${asked} USDC is more than ${name} ${limit}.`,
    asked,
    limit,
    smallest_change: raise(name, limit, asked),
  }
}

function evaluateApprovalThreshold(amountMicro: bigint, limitMicro: bigint): Finding {
  const name = 'require_approval_above_usdc'
  const asked = usdcFromMicro(amountMicro)
  const limit = usdcFromMicro(limitMicro)
  if (amountMicro <= limitMicro)
    return { verdict: 'pass', reason: `${asked} USDC needs no approval: ${name} is ${limit}.`, asked, limit }
  return {
    verdict: 'review_required',
    reason: `${asked} USDC is more than ${name} ${limit}: an approval is required.`,
    asked,
    limit,
    smallest_change: raise(name, limit, asked),
  }
}

function evaluateLeverage(asked: number, limit: number): Finding {
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

type Normalize = typeof exactName

function allowNames(
  name: string,
  noun: string,
  names: readonly string[],
  allowed: readonly string[],
  normalize: Normalize,
): Finding {
  const matched = findName(allowed, names, normalize)
  const unlisted = matched === undefined ? [names[0] ?? ''] : []
  return evaluateAllowList(name, noun, names[0], allowed, { matched, unlisted })
}

function denyNames(
  name: string,
  noun: string,
  names: readonly string[],
  denied: readonly string[],
  normalize: Normalize,
): Finding {
  const matched = findName(denied, names, normalize)
  const entry = matched && denied.find((candidate) => normalize(candidate) === normalize(matched))
  return evaluateDenyList(name, noun, names[0], denied, entry === undefined ? undefined : { name: matched!, entry })
}

function evaluateAllowList(
  name: string,
  noun: string,
  first = '',
  allowed: readonly string[],
  { matched, unlisted }: { matched: string | undefined; unlisted: readonly string[] },
): Finding {
  const common = { asked: first, limit: { entries: allowed.length } }
  if (unlisted.length === 0)
    return { verdict: 'pass', reason: `The ${noun} '${first}' is in ${name}.`, ...common, matched }
  return {
    verdict: 'blocked',
    reason: `The ${noun} '${unlisted[0]}' is not in ${name}.`,
    ...common,
    asked: unlisted[0],
    smallest_change: {
      text: `Add ${unlisted.map((entry) => `'${entry}'`).join(' and ')} to ${name}.`,
      path: `constraints.${name}`,
      ...(unlisted.length === 1 && { add: unlisted[0] }),
    },
  }
}

function evaluateDenyList(
  name: string,
  noun: string,
  first: string | undefined,
  denied: readonly string[],
  match: { name: string; entry: string } | undefined,
): Finding {
  const limit = { entries: denied.length }
  if (match === undefined)
    return { verdict: 'pass', reason: `The ${noun} '${first ?? ''}' is not in ${name}.`, asked: first ?? null, limit }
  return {
    verdict: 'blocked',
    reason: `The ${noun} '${match.name}' is in ${name}.`,
    asked: match.name,
    limit,
    matched: match.entry,
    smallest_change: {
      text: `Remove '${match.entry}' from ${name}.`,
      path: `constraints.${name}`,
      remove: match.entry,
    },
  }
}

function evaluateHours(hours: Hours, at: Date): Finding {
  const asked = at.getUTCHours()
  const allowed = toHourSet(hours)
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

function toHourSet(hours: Hours): Set<number> {
  if (!('start' in hours)) return new Set(hours)
  const length = (hours.end - hours.start + 24) % 24 || 24
  return new Set(Array.from({ length }, (_, index) => (hours.start + index) % 24))
}

function evaluatePreauth(preauthorised: boolean, kind: PaymentFacts['kind']): Finding {
  if (preauthorised) return { verdict: 'pass', reason: 'The payment is pre-authorised.', asked: true, limit: true }
  // A trade has no field for a token.
  if (kind === 'trade') {
    const text =
      'Pay the merchant by a pre-authorisation instead of a trade: POST /api/pre-auth, pay, then POST /api/pre-auth/close.'
    const reason = `The payment must be pre-authorised, and a trade cannot be. ${text}`
    return { verdict: 'blocked', reason, asked: false, limit: true, smallest_change: { text } }
  }
  return {
    verdict: 'blocked',
    reason: 'The payment must be pre-authorised.',
    asked: false,
    limit: true,
    smallest_change: { text: 'POST /api/pre-auth first, and send its token as preauth_token.', path: 'preauth_token' },
  }
}

function evaluateMandateUse(mandateId: string | null): Finding {
  if (mandateId !== null)
    return { verdict: 'pass', reason: 'A mandate covers the payment.', asked: mandateId, limit: true }
  return {
    verdict: 'blocked',
    reason: 'No mandate covers the payment.',
    asked: null,
    limit: true,
    smallest_change: { text: 'Create a mandate for this spender with POST /api/mandates.', path: 'mandate_id' },
  }
}

const raise = (name: string, from: number, to: number): SmallestChange => ({
  text: `Raise ${name} to ${to}.`,
  path: `constraints.${name}`,
  from,
  to,
})
