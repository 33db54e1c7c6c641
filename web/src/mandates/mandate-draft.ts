import type { ApiRequest, Mandate } from '@countersign/sdk'
import { isAmount } from '../money-text.ts'
import type { RefusingResult } from '../policies/smallest-change.ts'

export type MandateCreate = ApiRequest<'/api/mandates', 'post'>['body']

/** What the form holds. An amount is a number, or the text that was typed when it is none. */
export type MandateDraft = {
  name: string
  agent: string
  holderKey: string
  minAmount: unknown
  maxAmount: unknown
  budget: unknown
  payees: unknown[]
  frequency: string
  maxOccurrences: unknown
  notBefore: string
  notAfter: string
  startsAt: string
  expiresAt: string
}

export const emptyDraft = (): MandateDraft => ({
  name: '',
  agent: '',
  holderKey: '',
  minAmount: '',
  maxAmount: '',
  budget: '',
  payees: [],
  frequency: '',
  maxOccurrences: '',
  notBefore: '',
  notAfter: '',
  startsAt: '',
  expiresAt: '',
})

type Constraint = { type: string } & Record<string, unknown>
const CURRENCY = 'USDC'

/** An amount that is given as text is in atomic units. */
const amountOf = (value: unknown): unknown =>
  typeof value === 'string' && /^\d+$/.test(value) ? Number(value) / 1_000_000 : (value ?? '')

const lineOf = (payee: unknown): unknown => (typeof payee === 'object' ? JSON.stringify(payee) : payee)

/** A draft with everything of a mandate except its times, for a new one in its place. */
export function draftLike(mandate: Pick<Mandate, 'name' | 'agent_id' | 'holder_key_id' | 'constraints'>): MandateDraft {
  const find = (type: string) => (mandate.constraints as Constraint[]).find((constraint) => constraint.type === type)
  const [range, payees, budget] = ['amount_range', 'allowed_payees', 'budget'].map((type) => find(`payment.${type}`))
  const [recurrence, dates] = ['agent_recurrence', 'execution_date'].map((type) => find(`payment.${type}`))
  return {
    ...emptyDraft(),
    name: mandate.name,
    agent: mandate.agent_id ?? '',
    holderKey: mandate.holder_key_id ?? '',
    minAmount: amountOf(range?.min),
    maxAmount: amountOf(range?.max),
    budget: amountOf(budget?.max),
    payees: ((payees?.allowed ?? []) as unknown[]).map(lineOf),
    frequency: String(recurrence?.frequency ?? ''),
    maxOccurrences: recurrence?.max_occurrences ?? '',
    notBefore: String(dates?.not_before ?? ''),
    notAfter: String(dates?.not_after ?? ''),
  }
}

/** The draft with exactly that changed which refused a payment, and what that is in words. */
export function draftAllowing(draft: MandateDraft, result: RefusingResult): { draft: MandateDraft; words: string } {
  const { asked, smallest_change: change } = result
  const same = { draft, words: change?.text ?? '' }
  switch (result.rule) {
    case 'payment.amount_range': {
      if (!isAmount(asked)) return same
      const isBelow = isAmount(draft.minAmount) && asked < draft.minAmount
      return isBelow
        ? { draft: { ...draft, minAmount: asked }, words: `One payment may be as little as ${asked} USDC.` }
        : { draft: { ...draft, maxAmount: asked }, words: `One payment may be up to ${asked} USDC.` }
    }
    case 'payment.allowed_payees':
      return typeof asked === 'string'
        ? { draft: { ...draft, payees: [...draft.payees, asked] }, words: `'${asked}' may be paid too.` }
        : same
    case 'payment.budget':
      return isAmount(change?.to)
        ? { draft: { ...draft, budget: change.to }, words: `All payments together may be ${change.to} USDC.` }
        : same
    case 'payment.agent_recurrence.max_occurrences':
      return typeof change?.to === 'number'
        ? { draft: { ...draft, maxOccurrences: change.to }, words: `It may be used ${change.to} times.` }
        : same
    default:
      return same
  }
}

export type DraftProblem = { field: keyof MandateDraft; message: string }

const AMOUNT_PROBLEM = 'must be an amount in USDC, such as 0.05, with at most six decimals.'

export function findMandateProblems(draft: MandateDraft): DraftProblem[] {
  const problems: DraftProblem[] = []
  const add = (field: keyof MandateDraft, message: string) => problems.push({ field, message })
  if (draft.name.trim() === '') add('name', 'is missing.')
  for (const field of ['minAmount', 'maxAmount', 'budget'] as const)
    if (draft[field] !== '' && !isAmount(draft[field])) add(field, AMOUNT_PROBLEM)
  if (draft.minAmount !== '' && draft.maxAmount === '') add('maxAmount', 'is needed with a least amount.')
  if (isAmount(draft.minAmount) && isAmount(draft.maxAmount) && draft.minAmount > draft.maxAmount)
    add('minAmount', 'is above the most.')
  if (draft.maxOccurrences !== '' && !(Number.isInteger(draft.maxOccurrences) && Number(draft.maxOccurrences) >= 1))
    add('maxOccurrences', 'must be a whole number of 1 at least.')
  return problems
}

/** A payee is a text, or an object that is written as JSON. */
const readPayee = (line: unknown): unknown => {
  if (typeof line !== 'string' || !line.startsWith('{')) return line
  try {
    return JSON.parse(line) as unknown
  } catch {
    return line
  }
}

/** A local time of a form as an instant. */
const toInstant = (local: string) => new Date(local).toISOString()

/** The request of the form: a constraint for each thing that is limited. */
export function toMandateCreate(draft: MandateDraft): MandateCreate {
  const constraints: Constraint[] = []
  if (draft.maxAmount !== '')
    constraints.push({
      type: 'payment.amount_range',
      currency: CURRENCY,
      ...(draft.minAmount !== '' && { min: draft.minAmount }),
      max: draft.maxAmount,
    })
  if (draft.budget !== '') constraints.push({ type: 'payment.budget', currency: CURRENCY, max: draft.budget })
  if (draft.payees.length > 0)
    constraints.push({ type: 'payment.allowed_payees', allowed: draft.payees.map(readPayee) })
  if (draft.frequency !== '' || draft.maxOccurrences !== '')
    constraints.push({
      type: 'payment.agent_recurrence',
      frequency: draft.frequency || 'ON_DEMAND',
      ...(draft.maxOccurrences !== '' && { max_occurrences: draft.maxOccurrences }),
    })
  if (draft.notBefore !== '' || draft.notAfter !== '')
    constraints.push({
      type: 'payment.execution_date',
      ...(draft.notBefore !== '' && { not_before: draft.notBefore }),
      ...(draft.notAfter !== '' && { not_after: draft.notAfter }),
    })
  return {
    name: draft.name.trim(),
    ...(draft.agent.trim() && { agent_id: draft.agent.trim() }),
    ...(draft.holderKey && { holder_key_id: draft.holderKey }),
    constraints,
    ...(draft.startsAt && { starts_at: toInstant(draft.startsAt) }),
    ...(draft.expiresAt && { expires_at: toInstant(draft.expiresAt) }),
  } as MandateCreate
}

/** A constraint of a mandate in words. */
export function describeConstraint(constraint: Record<string, unknown>): string {
  const usdc = (value: unknown) => `${String(amountOf(value))} USDC`
  switch (constraint.type) {
    case 'payment.amount_range':
      return constraint.min === undefined
        ? `one payment is ${usdc(constraint.max)} at most`
        : `one payment is from ${usdc(constraint.min)} to ${usdc(constraint.max)}`
    case 'payment.budget':
      return `all payments together are ${usdc(constraint.max)} at most`
    case 'payment.allowed_payees':
      return `only to ${(constraint.allowed as unknown[]).map(lineOf).join(', ')}`
    case 'payment.agent_recurrence':
      return `${String(constraint.frequency).toLowerCase().replace('_', ' ')}${constraint.max_occurrences === undefined ? '' : `, ${constraint.max_occurrences} times at most`}`
    case 'payment.execution_date':
      return [
        constraint.not_before && `not before ${String(constraint.not_before)}`,
        constraint.not_after && `not after ${String(constraint.not_after)}`,
      ]
        .filter(Boolean)
        .join(', ')
    default:
      return JSON.stringify(constraint)
  }
}
