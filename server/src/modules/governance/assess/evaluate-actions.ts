import type { Clock } from '../../../platform/clock.ts'
import { microFromUsdc } from '../../../platform/money.ts'
import type { ReadCounters } from '../counters/limit-counters.store.ts'
import { worstOutcome } from '../rules/rule-result.ts'
import type { RulesCache } from '../rules/rules-cache.ts'
import { boundTrace } from './bound-trace.ts'
import { evaluateRules, type Freeze } from './evaluate-rules.ts'
import { agentNames, OWN_MERCHANT, type PaymentFacts } from './payment-facts.ts'

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
      const { results } = await evaluateRules(deps.readCounters, input)
      const objections = results.filter((result) => result.verdict !== 'pass')
      evaluatedActions.push({
        ...action,
        decision: worstOutcome(results),
        policy_results: boundTrace(objections, MAX_OBJECTIONS),
      })
    }
    return evaluatedActions
  }

/** An action is unvalidated input: fields of the wrong type are ignored. */
function actionFacts(action: Action, { keyId, agentId }: { keyId: string; agentId: string }, at: Date): PaymentFacts {
  const text = (name: string) => (typeof action[name] === 'string' ? (action[name] as string) : undefined)
  const number = (name: string) => (typeof action[name] === 'number' ? (action[name] as number) : undefined)
  const money = (name: string) => microFromUsdc(number(name) ?? -1)
  return {
    kind: 'action',
    action: text('type') ?? text('action') ?? 'action',
    agentId: text('agent_id') ?? agentId,
    spender: text('spender') ?? null,
    team: null,
    keyId,
    tags: {},
    amountMicro: money('amount_usdc') ?? money('notional_usdc') ?? 0n,
    merchants: [text('merchant') ?? OWN_MERCHANT],
    network: text('network') ?? null,
    sessionId: text('session_id') ?? null,
    at,
    preauthorised: false,
    instrument: text('instrument_type') ?? text('instrument'),
    leverage: number('leverage'),
    notionalMicro: money('notional_usdc'),
  }
}
