import type { Clock } from '../../platform/clock.ts'
import type { Db } from '../../platform/db.ts'
import { microFromUsdc } from '../../platform/money.ts'
import { evaluateRules } from './evaluate-rules.ts'
import { OWN_MERCHANT, type PaymentFacts } from './payment-facts.ts'
import { worstOutcome } from './rule-result.ts'
import type { RulesCache } from './rules-cache.ts'

export type ActionsDeps = {
  db: Db
  clock: Clock
  books: RulesCache
  frozen(tenantId: string, agentId: string): Promise<{ reason: string } | undefined>
}

export type Action = Record<string, unknown>

/** Who proposes: the lane that worked, for the key that asked. A guest has neither tenant nor key. */
export type ActionContext = { tenantId: string | null; keyId: string | null; agentId: string }

/** What the tenant's rules would say about actions that an agent proposes. Nothing is held: nothing is done yet. */
export const createEvaluateActions =
  (d: ActionsDeps) =>
  async ({ tenantId, keyId, agentId }: ActionContext, actions: readonly Action[]): Promise<Action[]> => {
    if (tenantId === null || keyId === null || actions.length === 0)
      return actions.map((action) => ({ ...action, decision: 'pass' }))
    const book = await d.books.of(tenantId, keyId)
    const judged: Action[] = []
    for (const action of actions) {
      const facts = factsOf(action, agentId, d.clock.now())
      const frozen = await d.frozen(tenantId, facts.agentId)
      const asked = {
        book,
        keyId,
        facts,
        wishes: { policies: [] },
        mandate: null,
        heldScopes: new Set<string>(),
        frozen,
      }
      const { results } = await evaluateRules(d.db, asked)
      const objections = results.filter((result) => result.verdict !== 'pass')
      judged.push({ ...action, decision: worstOutcome(results), policy_results: objections })
    }
    return judged
  }

/** An action is free text from outside: what is not of the right kind is as if it were not there. */
function factsOf(action: Action, agentId: string, at: Date): PaymentFacts {
  const text = (name: string) => (typeof action[name] === 'string' ? (action[name] as string) : undefined)
  const number = (name: string) => (typeof action[name] === 'number' ? (action[name] as number) : undefined)
  const money = (name: string) => microFromUsdc(number(name) ?? -1)
  return {
    kind: 'action',
    action: text('type') ?? text('action') ?? 'action',
    agentId: text('agent_id') ?? agentId,
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
