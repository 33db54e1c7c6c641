import { afterAll, beforeAll, expect, test } from 'vitest'
import { openWorld, richTenant, run, type Tenant, type World } from './world.ts'

/**
 * What is left out is not free: for each kind of rule that selects by a field, a request that the rule refuses is sent again without the field.
 * A cell is `field_required`, `same rule` (the rule refuses all the same), `no key` (401), `–` (the door has no such field), or `OPEN`.
 */
const DOORS = ['run', 'loop', 'pre-auth', 'spend', 'crypto'] as const
type Door = (typeof DOORS)[number]
type Cell = 'field_required' | 'same rule' | 'no key' | '–'

let world: World
beforeAll(async () => {
  world = await openWorld()
  await run(world, await richTenant(world))
  await world.service.sequencer.runOnce()
})
afterAll(() => world?.close())

const ADDRESS = `0x${'1a'.repeat(20)}`
const ALL_KINDS = ['runs', 'payments', 'spend', 'trades']

/** The lane that each door takes when the request names none. */
const LANE: Partial<Record<Door, string>> = { run: 'comedian-v1', loop: 'default' }

type Request = Record<string, unknown> & { key?: string }

/** Sends the least that a door accepts, with `parts` on top. */
function send(tenant: Tenant, headers: Record<string, string>, door: Door, parts: Request) {
  const payment = { wallet_id: tenant.walletId }
  const trade = { tenant_id: tenant.tenantId, side: 'buy' }
  const requests: Record<Door, [string, Record<string, unknown>]> = {
    run: ['/api/run', { task: 'Tell me a joke about clocks.', payment }],
    loop: ['/api/loop', { input: 'Tell me a joke about clocks.', payment }],
    'pre-auth': ['/api/pre-auth', { agent_id: 'somebody', merchant: { id: 'shop-9' }, amount_usdc: 0.02 }],
    spend: ['/api/rh/run', { ...trade, instrument_type: 'spend', symbol: 'shop-9', quantity: 1, price_limit: 0.02 }],
    crypto: ['/api/rh/run', { ...trade, instrument_type: 'crypto', symbol: 'BTC-USD', quantity: 0.001 }],
  }
  const [path, least] = requests[door]
  return world.post(path, { ...least, ...parts }, headers)
}

type Rule = [path: string, body: Record<string, unknown>]
type Row = {
  rule: string
  field: string
  make: (door: Door, tenant: Tenant) => Rule | Promise<Rule>
  /** The request that the rule refuses, and the same without the field. Undefined where the door has no such field. */
  present: (door: Door, made: string) => Request | undefined
  absent: (door: Door) => Request
  expected: Record<Door, Cell>
}

const row = (cells: string): Record<Door, Cell> => {
  const short: Record<string, Cell> = { f: 'field_required', s: 'same rule', k: 'no key', '-': '–' }
  return Object.fromEntries(DOORS.map((door, index) => [door, short[cells[index]!]!])) as Record<Door, Cell>
}
const budget = (scope: Record<string, unknown>) =>
  ['/api/budgets', { budget_id: 'b', scope, window: 'total', limit_usdc: 0.001, applies_to: ALL_KINDS }] as [
    string,
    Record<string, unknown>,
  ]
const policy = (body: Record<string, unknown>) => ['/api/policies', { name: 'p', mode: 'enforce', ...body }] as Rule
/** A constraint that refuses every payment at every door: no hour is allowed. */
const NEVER = { allowed_hours_utc: [] }
const mandate = (body: Record<string, unknown> = {}) =>
  [
    '/api/mandates',
    { name: 'm', constraints: [{ type: 'payment.amount_range', currency: 'USDC', max: 0.001 }], ...body },
  ] as Rule

const isTrade = (door: Door) => door === 'spend' || door === 'crypto'
const isRun = (door: Door) => door === 'run' || door === 'loop'

/** A pre-authorisation always has an agent, which is its spender when it names no other. */
const spenderRow = {
  field: 'spender',
  present: (door: Door) => ({ spender: 'bot', ...(!isRun(door) && { agent_id: 'bot' }) }),
  absent: (door: Door) => (door === 'pre-auth' ? { agent_id: 'bot' } : {}),
  expected: row('ffsff'),
}
const teamRow = { field: 'team', present: () => ({ key: 'red' }), absent: () => ({}), expected: row('fffff') }
const tagRow = {
  field: 'tags.project',
  present: () => ({ tags: { project: 'apollo' } }),
  absent: () => ({ tags: { other: 'x' } }),
  expected: row('fffff'),
}
const payToRow = {
  field: 'merchant.pay_to',
  present: (door: Door) => (door === 'pre-auth' ? { merchant: { id: 'shop-9', pay_to: ADDRESS } } : undefined),
  absent: () => ({ merchant: { id: 'shop-9' } }),
  expected: row('--f--'),
}
const sessionRow = {
  field: 'session_id',
  present: (door: Door) => (isRun(door) ? { session_id: 's' } : undefined),
  absent: () => ({}),
  expected: row('ff---'),
}
const agentOf = (door: Door) => LANE[door] ?? 'bot'
const agentRow = {
  field: 'agent_id',
  present: (door: Door) => ({ agent_id: agentOf(door) }),
  absent: (door: Door) => (door === 'pre-auth' ? { agent_id: 'bot' } : {}),
  expected: row('sssff'),
}

const urlRow = {
  field: 'merchant.url',
  present: (door: Door) =>
    door === 'pre-auth' ? { merchant: { id: 'shop-9', url: 'https://shop.example/pay' } } : undefined,
  absent: () => ({ merchant: { id: 'shop-9' } }),
  expected: row('--f--'),
}
const mandateRow = { field: 'mandate_id', present: () => ({}), absent: () => ({}), expected: row('sssss') }
/** Without a key the wallet cannot pay, and the other doors are closed. */
const keyRow = {
  field: 'X-API-Key',
  present: () => ({}),
  absent: () => ({ key: 'none' }),
  expected: row('kkkkk'),
}

const ROWS: Row[] = [
  { rule: 'budget for a spender', ...spenderRow, make: () => budget({ type: 'spender', id: 'bot' }) },
  {
    rule: 'policy for a spender',
    ...spenderRow,
    make: () => policy({ identity_type: 'spender', identity_id: 'bot', constraints: NEVER }),
  },
  {
    rule: 'rule on spender',
    ...spenderRow,
    make: () => policy({ rules: [{ field: 'spender', op: 'eq', value: 'bot', effect: 'deny' }] }),
  },
  {
    rule: 'rule on spender, other than',
    ...spenderRow,
    make: () => policy({ rules: [{ field: 'spender', op: 'ne', value: 'friend', effect: 'deny' }] }),
  },
  { rule: 'budget for a team', ...teamRow, make: () => budget({ type: 'team', id: 'red' }) },
  {
    rule: 'policy for a team',
    ...teamRow,
    make: () => policy({ identity_type: 'team', identity_id: 'red', constraints: NEVER }),
  },
  {
    rule: 'rule on team',
    ...teamRow,
    make: () => policy({ rules: [{ field: 'team', op: 'eq', value: 'red', effect: 'deny' }] }),
  },
  { rule: 'budget for a tag', ...tagRow, make: () => budget({ type: 'tag', id: 'project=apollo' }) },
  {
    rule: 'policy for a tag',
    ...tagRow,
    make: () => policy({ identity_type: 'tag', identity_id: 'project=apollo', constraints: NEVER }),
  },
  {
    rule: 'rule on a tag',
    ...tagRow,
    make: () => policy({ rules: [{ field: 'tags.project', op: 'in', value: ['apollo'], effect: 'deny' }] }),
  },
  { rule: 'budget for an address', ...payToRow, make: () => budget({ type: 'merchant', id: ADDRESS }) },
  {
    rule: 'policy for an address',
    ...payToRow,
    make: () => policy({ identity_type: 'merchant', identity_id: ADDRESS, constraints: NEVER }),
  },
  {
    rule: 'denied_merchants, address',
    ...payToRow,
    make: () => policy({ constraints: { denied_merchants: [ADDRESS] } }),
  },
  {
    rule: 'rule on merchant, address',
    ...payToRow,
    make: () => policy({ rules: [{ field: 'merchant', op: 'eq', value: ADDRESS, effect: 'deny' }] }),
  },
  { rule: 'budget for a session', ...sessionRow, make: () => budget({ type: 'session', id: 's' }) },
  {
    rule: 'rule on session_id',
    ...sessionRow,
    make: () => policy({ rules: [{ field: 'session_id', op: 'eq', value: 's', effect: 'deny' }] }),
  },
  { rule: 'budget for an agent', ...agentRow, make: (door) => budget({ type: 'agent', id: agentOf(door) }) },
  {
    rule: 'policy for an agent',
    ...agentRow,
    make: (door) => policy({ identity_type: 'agent', agent_id: agentOf(door), constraints: NEVER }),
  },
  {
    rule: 'denied_agents',
    ...agentRow,
    make: (door) => policy({ constraints: { denied_agents: [agentOf(door)] } }),
  },
  {
    rule: 'rule on agent_id',
    ...agentRow,
    make: (door) => policy({ rules: [{ field: 'agent_id', op: 'eq', value: agentOf(door), effect: 'deny' }] }),
  },
  {
    rule: 'freeze',
    ...agentRow,
    make: (door) => ['/api/control-tower', { action: 'freeze', agent_id: agentOf(door), reason: 'test' }],
  },
  { rule: 'mandate for an agent', ...agentRow, make: (door) => mandate({ agent_id: agentOf(door) }) },
  { rule: 'budget for a host', ...urlRow, make: () => budget({ type: 'merchant', id: 'shop.example' }) },
  {
    rule: 'policy for a host',
    ...urlRow,
    make: () => policy({ identity_type: 'merchant', identity_id: 'shop.example', constraints: NEVER }),
  },
  {
    rule: 'denied_merchants, host',
    ...urlRow,
    make: () => policy({ constraints: { denied_merchants: ['shop.example'] } }),
  },
  {
    rule: 'budget for a mandate',
    ...mandateRow,
    make: async (_, tenant) => {
      const [path, body] = mandate({ constraints: [] })
      const { mandate_id } = (await world.post(path, body, tenant.headers)).body
      return budget({ type: 'mandate', id: mandate_id })
    },
  },
  {
    rule: 'mandate for another payee',
    ...mandateRow,
    make: () => mandate({ constraints: [{ type: 'payment.allowed_payees', allowed: ['elsewhere'] }] }),
  },
  { rule: 'require_mandate', ...mandateRow, make: () => policy({ constraints: { require_mandate: true } }) },
  {
    rule: 'budget for a key',
    ...keyRow,
    make: async (_, tenant) => {
      const { body } = await world.get('/api/keys', tenant.headers)
      return budget({ type: 'key', id: body.keys.find(({ name }: { name: string }) => name !== 'red').key_id })
    },
  },
  {
    rule: 'policy for a key',
    ...keyRow,
    make: (_, tenant) => policy({ identity_type: 'api_key', api_key: tenant.apiKey, constraints: NEVER }),
  },
  {
    rule: 'mandate of the tenant',
    field: 'mandate_id',
    make: () => mandate(),
    present: (door, made) => (isRun(door) ? {} : { mandate_id: made }),
    absent: () => ({}),
    expected: row('sssss'),
  },
  {
    rule: 'denied_instruments',
    field: 'policy_id',
    make: () => policy({ constraints: { denied_instruments: ['spend', 'crypto'] } }),
    present: (door, made) => (isTrade(door) ? { policy_id: made } : undefined),
    absent: () => ({}),
    expected: row('---ss'),
  },
]

type Answer = Awaited<ReturnType<typeof send>>
const refused = ({ status }: Answer, door: Door) => status === (isRun(door) ? 429 : 422)
/** What refused: the rule that decided, or the results of a trade that did not pass. */
const reasonOf = ({ body }: Answer) =>
  JSON.stringify(
    body.decided_by ??
      (body.policy_results ?? [])
        .filter(({ outcome }: { outcome: string }) => outcome === 'blocked')
        .map(({ policy_id, budget_id, mandate_id, rule }: Record<string, unknown>) => [
          policy_id,
          budget_id,
          mandate_id,
          rule,
        ]),
  )

function cellOf(withField: Answer, without: Answer, door: Door, { field }: Row): string {
  if (without.status === 401) return 'no key'
  if (!refused(without, door)) return `OPEN (${without.status})`
  if (without.body.code !== 'field_required')
    return reasonOf(without) === reasonOf(withField) ? 'same rule' : `another rule: ${reasonOf(without)}`
  return without.body.field_required === field ? 'field_required' : `field_required: ${without.body.field_required}`
}

async function openTenant(rule: Row, door: Door) {
  const tenant = await richTenant(world)
  const team = await world.post(
    '/api/keys',
    { name: 'red', scopes: ['read', 'run', 'control'], team: 'red' },
    tenant.headers,
  )
  const [path, body] = await rule.make(door, tenant)
  const { status, text, body: made } = await world.post(path, body, tenant.headers)
  if (status >= 300) throw new Error(`${rule.rule} was not made: ${text}`)
  const headers: Record<string, Record<string, string>> = { red: { 'x-api-key': team.body.api_key }, none: {} }
  return {
    tenant,
    ruleId: made.id ?? made.mandate_id,
    headersOf: (key?: string) => (key ? headers[key]! : tenant.headers),
  }
}

test('no door opens when a field is left out that a rule selects by', { timeout: 180_000 }, async () => {
  const table: string[][] = [['rule', 'field left out', ...DOORS]]
  const faults: string[] = []
  for (const current of ROWS) {
    const cells: string[] = []
    let opened: Awaited<ReturnType<typeof openTenant>> | undefined
    for (const door of DOORS) {
      if (!current.present(door, '')) {
        cells.push('–')
        continue
      }
      // Only a rule for an agent is another one at each door, because lanes are agents.
      if (!opened || current.field === 'agent_id') opened = await openTenant(current, door)
      const { tenant, ruleId, headersOf } = opened
      const { key, ...present } = current.present(door, ruleId)!
      const { key: absentKey, ...absent } = current.absent(door)
      const withField = await send(tenant, headersOf(key), door, present)
      const without = await send(tenant, headersOf(absentKey), door, absent)
      const cell =
        refused(withField, door) && withField.body.code !== 'field_required'
          ? cellOf(withField, without, door, current)
          : `present: ${withField.status}`
      cells.push(cell)
      if (cell !== current.expected[door])
        faults.push(
          `${current.rule} at ${door}: ${cell}; ${withField.text.slice(0, 300)} ${without.text.slice(0, 300)}`,
        )
    }
    table.push([current.rule, current.field, ...cells])
  }
  const widths = table[0]!.map((_, column) => Math.max(...table.map((line) => line[column]!.length)))
  console.log(table.map((line) => line.map((cell, column) => cell.padEnd(widths[column]!)).join(' | ')).join('\n'))
  expect(faults).toEqual([])
})
