import type { Clock } from '../../../platform/clock.ts'
import { microFromUsdc } from '../../../platform/money.ts'
import type { ReadCounters } from '../counters/limit-counters.store.ts'
import { type RuleResult, worstOutcome } from '../rules/rule-result.ts'
import type { RulesCache } from '../rules/rules-cache.ts'
import { boundTrace } from './bound-trace.ts'
import { evaluateRules, type Freeze } from './evaluate-rules.ts'
import { agentNames, merchantNames, OWN_MERCHANT, type PaymentFacts, urlHost } from './payment-facts.ts'

/** How many objections an action lists; a loop may propose many actions. */
const MAX_OBJECTIONS = 20

export type ActionsDeps = {
  clock: Clock
  rulesCache: RulesCache
  readCounters: ReadCounters
  findFreeze(tenantId: string, agentNames: readonly string[]): Promise<Freeze | undefined>
}

export type Action = Record<string, unknown>

/** The lane that proposes the actions and the key it ran for. A guest has neither tenant nor key. */
export type ActionContext = { tenantId: string | null; keyId: string | null; agentId: string }

/** Evaluates actions proposed by an agent against the tenant's rules. Nothing is held, because nothing is executed. */
export const createEvaluateActions =
  (deps: ActionsDeps) =>
  async ({ tenantId, keyId, agentId }: ActionContext, actions: readonly Action[]): Promise<Action[]> => {
    if (tenantId === null || keyId === null || actions.length === 0)
      return actions.map((action) => ({ ...action, decision: 'pass' }))
    const rules = await deps.rulesCache.get(tenantId, keyId)
    const evaluatedActions: Action[] = []
    for (const action of actions) {
      const facts = actionFacts(action, { keyId, agentId }, deps.clock.now())
      const freeze = await deps.findFreeze(tenantId, agentNames(facts))
      const input = {
        rules,
        facts,
        requestedPolicies: { policies: [] },
        namedMandate: null,
        heldScopes: new Set<string>(),
        freeze,
      }
      const { results: ruleResults } = await evaluateRules(deps.readCounters, input)
      const results = [...unreadableFields(action), ...ruleResults]
      const objections = results.filter((result) => result.verdict !== 'pass')
      evaluatedActions.push({
        ...action,
        decision: worstOutcome(results),
        policy_results: boundTrace(objections, MAX_OBJECTIONS),
      })
    }
    return evaluatedActions
  }

/** Fields with an amount of money in USDC; the largest of them counts. */
const AMOUNT_FIELDS = ['amount_usdc', 'notional_usdc', 'price_usdc', 'amount'] as const
const DECIMAL = /^\d{1,12}(\.\d{1,6})?$/

/** An action is unvalidated input: fields of the wrong type are ignored, except those of `unreadableFields`. */
function actionFacts(action: Action, { keyId, agentId }: { keyId: string; agentId: string }, at: Date): PaymentFacts {
  const text = (name: string) => (typeof action[name] === 'string' ? (action[name] as string) : undefined)
  const number = (name: string) => (typeof action[name] === 'number' ? (action[name] as number) : undefined)
  return {
    kind: 'action',
    action: text('type') ?? text('action') ?? 'action',
    agentId: text('agent_id') ?? agentId,
    // Nothing is executed, so every name that the action gives counts.
    lane: text('agent_id') ?? agentId,
    spender: text('spender') ?? null,
    team: null,
    keyId,
    tags: {},
    amountMicro: readAmount(action),
    merchants: readMerchants(action.merchant) ?? [OWN_MERCHANT],
    network: text('network') ?? null,
    sessionId: text('session_id') ?? null,
    at,
    preauthorised: false,
    instrument: text('instrument_type') ?? text('instrument'),
    leverage: number('leverage'),
    notionalMicro: readMoney(action.notional_usdc),
  }
}

const isPresent = (value: unknown) => value !== undefined && value !== null

/** An amount or a merchant that cannot be read must not pass, because no rule has judged it. */
function unreadableFields(action: Action): RuleResult[] {
  const amounts = AMOUNT_FIELDS.filter(
    (field) => isPresent(action[field]) && readMoney(action[field]) === undefined,
  ).map((field) => [field, 'an amount of USDC has at most six decimals and is not negative'] as const)
  const isReadable = !isPresent(action.merchant) || readMerchants(action.merchant) !== undefined
  const merchants = isReadable
    ? []
    : [['merchant', 'a merchant is a name, or an object with id, url or pay_to as text'] as const]
  return [...amounts, ...merchants].map(([field, rule]) => ({
    policy_id: null,
    rule: field,
    mode: 'enforce',
    verdict: 'review_required',
    outcome: 'review_required',
    reason: `The field '${field}' of this action cannot be understood: ${rule}.`,
  }))
}

function readAmount(action: Action): bigint {
  const usdc = readMoney(action.amount_usdc)
  // Records of this service have the same amount in atomic units as `amount`.
  const isAtomic = usdc !== undefined && action.amount === usdc.toString()
  const amounts = AMOUNT_FIELDS.filter((field) => field !== 'amount' || !isAtomic).map((field) =>
    readMoney(action[field]),
  )
  return amounts.reduce<bigint>((largest, amount) => (amount !== undefined && amount > largest ? amount : largest), 0n)
}

/** A number, or the same as text. */
function readMoney(value: unknown): bigint | undefined {
  if (typeof value === 'number') return microFromUsdc(value)
  if (typeof value !== 'string' || !DECIMAL.test(value.trim())) return undefined
  const [whole, fraction = ''] = value.trim().split('.')
  return BigInt(`${whole}${fraction.padEnd(6, '0')}`)
}

/** Every name of a merchant given by its name or as an object; undefined when it cannot be read. */
function readMerchants(value: unknown): string[] | undefined {
  if (typeof value === 'string') return value.trim() === '' ? undefined : [value]
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
  const { id, url, pay_to } = value as Record<string, unknown>
  const isName = (name: unknown): name is string | undefined =>
    name === undefined || (typeof name === 'string' && name.trim() !== '')
  if (!isName(id) || !isName(url) || !isName(pay_to)) return undefined
  if (url !== undefined && !URL.canParse(url)) return undefined
  const name = id ?? (url === undefined ? pay_to : urlHost(url))
  return name === undefined ? undefined : merchantNames({ id: name, url, pay_to })
}
