/** What a rule can compare, and how. `rule-fields.test.ts` holds this list to the one that the API describes. */
export const ruleFields: Record<
  string,
  { type: 'text' | 'money' | 'number'; about: string; values?: readonly string[] }
> = {
  agent_id: { type: 'text', about: 'lane or spender' },
  lane: { type: 'text', about: 'lane of a run' },
  spender: { type: 'text', about: 'who spends' },
  team: { type: 'text', about: 'team of the key' },
  key_id: { type: 'text', about: 'id of the API key' },
  merchant: { type: 'text', about: 'id, host or address' },
  network: { type: 'text', about: 'such as eip155:8453', values: ['eip155:8453', 'eip155:84532'] },
  action: { type: 'text', about: 'run, loop, pre-auth or trade', values: ['run', 'loop', 'pre-auth', 'trade'] },
  session_id: { type: 'text', about: 'session of a run' },
  instrument: {
    type: 'text',
    about: 'type of instrument',
    values: ['equity', 'perp', 'crypto', 'rwa', 'earn', 'spend'],
  },
  amount_usdc: { type: 'money', about: 'amount of the payment' },
  price_usdc: { type: 'money', about: 'the same as amount_usdc' },
  notional_usdc: { type: 'money', about: 'notional of a trade' },
  hour_utc: { type: 'number', about: 'hour of the day, 0 to 23' },
  leverage: { type: 'number', about: 'leverage of a trade' },
}

export const ruleOperators: Record<string, string> = {
  eq: 'is',
  ne: 'is not',
  gt: 'is above',
  gte: 'is at least',
  lt: 'is below',
  lte: 'is at most',
  in: 'is one of',
  not_in: 'is none of',
}

const aliases: Record<string, string> = {
  '=': 'eq',
  '==': 'eq',
  '!=': 'ne',
  neq: 'ne',
  '>': 'gt',
  '>=': 'gte',
  '<': 'lt',
  '<=': 'lte',
  nin: 'not_in',
}

export const operatorOf = (op: unknown): string => aliases[String(op)] ?? String(op)

export const isListOperator = (op: unknown) => ['in', 'not_in'].includes(operatorOf(op))

export const fieldType = (field: unknown): 'text' | 'money' | 'number' => ruleFields[String(field)]?.type ?? 'text'

type Rule = Record<string, unknown>

/** A rule in words, as the service says it. */
export function describeRule(rule: Rule): string {
  const words = ruleOperators[operatorOf(rule.op)] ?? String(rule.op)
  const value = Array.isArray(rule.value) ? rule.value.join(', ') : String(rule.value ?? '')
  return `${String(rule.effect)} when ${String(rule.field)} ${words} ${value}`
}

/** What the service would refuse about a rule that fits its schema. */
export function describeRuleProblem(rule: Rule): { field: string; message: string } | undefined {
  const field = String(rule.field)
  if (!(field in ruleFields) && !/^tags\.[^.\s]+$/.test(field))
    return { field: 'field', message: `must be one of ${Object.keys(ruleFields).join(', ')}, tags.<name>.` }
  const op = operatorOf(rule.op)
  if (!(op in ruleOperators))
    return { field: 'op', message: `must be one of ${Object.keys(ruleOperators).join(', ')}.` }
  if (isListOperator(op) !== Array.isArray(rule.value))
    return { field: 'value', message: isListOperator(op) ? 'must be a list.' : 'must be a single value.' }
  const type = fieldType(field)
  if (type === 'text' && ['gt', 'gte', 'lt', 'lte'].includes(op))
    return { field: 'op', message: `cannot compare ${field}, which is text.` }
  for (const value of [rule.value].flat()) {
    if (type === 'text' ? typeof value !== 'string' : typeof value !== 'number')
      return { field: 'value', message: type === 'text' ? 'must be text.' : 'must be a number.' }
    if (value === '') return { field: 'value', message: 'must not be empty.' }
    const possible = field === 'network' ? undefined : ruleFields[field]?.values
    if (possible && !possible.includes(String(value)))
      return { field: 'value', message: `must be one of ${possible.join(', ')}.` }
  }
  return undefined
}
