import type { Constraints, Kind, Mode, Rule, Scope, TradeDefault, Window } from './governance-model.ts'

/** A world is a tenant with keys and rules, and the actions that are sent to it. It depends on its seed alone and can be printed as JSON. */
export type World = { seed: number; start: string; keys: KeySpec[]; rules: RuleSpec[]; actions: Action[] }

export type KeySpec = {
  name: string
  madeBy: 'onboarding' | 'operator' | 'owner'
  scopes: string[]
  spender?: string
  team?: string
}

/** Rules name keys and other rules by their names in the world. */
export type RuleSpec =
  | {
      name: string
      make: 'policy'
      mode: Mode
      identity: Scope
      constraints: Constraints
      rules: Rule[]
      selectable?: true
    }
  | {
      name: string
      make: 'budget'
      scope: Scope
      window: Window
      limit: number
      on_breach?: 'review' | 'downgrade'
      applies_to?: Kind[]
      parent?: string
    }
  | {
      name: string
      make: 'mandate'
      agent_id?: string
      holder?: string
      amount?: { min?: number; max: number }
      payees?: string[]
      budget?: number
      recurrence?: { frequency: 'ON_DEMAND' | 'DAILY' | 'WEEKLY' | 'MONTHLY'; max_occurrences?: number }
      execution?: { not_before_ms?: number; not_after_ms?: number }
      starts_in_ms?: number
      expires_in_ms?: number
    }
  | { name: string; make: 'freeze'; agent_id: string }
  /** The tenant's default for trades of a type. */
  | { name: string; make: 'default'; instrument: 'spend' | 'crypto'; constraints: TradeDefault }

export type Fields = { spender?: string; tags?: Record<string, string>; mandate?: string }
export type RunAction = Fields & {
  name: string
  do: 'run' | 'loop'
  key: string
  /** Index into TASKS; the lane is the router's unless `agent_id` names it. */
  task: number
  agent_id?: string
  session_id?: string
  fails?: boolean
  /** Paid by x402 instead of from the wallet. */
  x402?: true
  /** The pre-authorisation whose token the run brings. */
  preauth?: string
}
export type PreauthAction = Fields & {
  name: string
  do: 'preauth'
  key: string
  agent_id: string
  merchant: { id: string; url?: string; pay_to?: string }
  amount: number
}
export type TradeAction = Fields & {
  name: string
  do: 'trade'
  key: string
  agent_id?: string
  instrument: 'spend' | 'crypto'
  merchant: string
  amount: number
  /** The policy that it names for its limits. */
  policy?: string
}
export type Payable = RunAction | PreauthAction | TradeAction
export type Action =
  | Payable
  | { name: string; do: 'wait'; ms: number }
  /** `*` is the latest action that can be closed, approved or overridden, of those before. */
  | { name: string; do: 'close'; preauth: string; outcome: 'settled' | 'failed' | 'voided'; share: number }
  | { name: string; do: 'approve'; of: string; key: string }
  | { name: string; do: 'override'; of: string; key: string }
  | { name: string; do: 'rotate'; key: string }
  | { name: string; do: 'make'; rule: RuleSpec }
  | { name: string; do: 'end'; rule: string }
  | { name: string; do: 'limit'; budget: string; limit: number }

/** Tasks that the router sends to a lane of their own when the request names none. */
export const TASKS = [
  'Tell me a joke about clocks.',
  'Write a short blog post about ledgers.',
  'What stands out in 3, 4, 3, 19?',
] as const
export const LANES = ['comedian-v1', 'writer-v1'] as const
/** Atomic units; from the price table of the interface. */
export const PRICES: Record<string, { run: bigint; loop: bigint }> = {
  'comedian-v1': { run: 10_000n, loop: 5_000n },
  'writer-v1': { run: 13_000n, loop: 8_000n },
  'support-v1': { run: 11_000n, loop: 6_000n },
  'analyst-v1': { run: 25_000n, loop: 20_000n },
  'coder-v1': { run: 25_000n, loop: 20_000n },
  'strategist-v1': { run: 25_000n, loop: 20_000n },
  'researcher-v2': { run: 23_000n, loop: 18_000n },
  default: { run: 10_000n, loop: 5_000n },
}
export const ADDRESSES = { maps: `0x${'1a'.repeat(20)}`, shop: `0x${'2b'.repeat(20)}` }
const MERCHANTS = [
  { id: 'maps.example', url: 'https://maps.example/pay', pay_to: ADDRESSES.maps },
  { id: 'shop-9', url: 'https://shop.example/checkout', pay_to: ADDRESSES.shop },
  { id: 'countersign' },
] as const
export const CRYPTO_BROKER = 'coinbase-paper'
const MERCHANT_NAMES = [
  'maps.example',
  'shop-9',
  'shop.example',
  'countersign',
  CRYPTO_BROKER,
  ADDRESSES.maps,
  ADDRESSES.shop,
]
const SPENDERS = ['bot-a', 'bot-b']
const AGENTS = [...LANES, ...SPENDERS]
const TEAMS = ['red', 'blue']
const TAGS = { project: ['apollo', 'zeus'], env: ['prod', 'test'] }
const SESSIONS = ['s1', 's2']

/** Every world begins and ends in this year. */
export const YEAR_OF_WORLDS = 2027

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** A small generator with a seed (mulberry32). */
export function createRandom(seed: number) {
  let state = seed >>> 0
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
  const int = (from: number, to: number) => from + Math.floor(next() * (to - from + 1))
  const pick = <T>(list: readonly T[]): T => list[int(0, list.length - 1)]!
  const chance = (share: number) => next() < share
  const some = <T>(list: readonly T[]): T[] => {
    const chosen = list.filter(() => chance(0.5))
    return chosen.length > 0 ? chosen : [pick(list)]
  }
  const weighted = <T>(entries: readonly (readonly [number, T])[]): T => {
    let left = next() * entries.reduce((total, [weight]) => total + weight, 0)
    for (const [weight, value] of entries) {
      left -= weight
      if (left < 0) return value
    }
    return entries.at(-1)![1]
  }
  return { next, int, pick, chance, some, weighted }
}
export type Random = ReturnType<typeof createRandom>

/** USDC in steps of a tenth of a cent, so that sums meet limits exactly now and then. */
const usdc = (random: Random, from: number, to: number) => random.int(from, to) / 1_000

export function randomWorld(seed: number): World {
  const random = createRandom(seed)
  const { int, pick, chance, weighted } = random

  const keys: KeySpec[] = [
    { name: 'owner', madeBy: 'onboarding', scopes: ['read', 'run', 'control', 'mandate', 'keys'] },
  ]
  /** Every fourth world is about decisions: most of it waits, and several people decide. */
  const deciding = seed % 4 === 0
  if (deciding || chance(0.6)) keys.push({ name: 'agent', madeBy: 'operator', scopes: ['read', 'run'] })
  if (chance(0.5))
    keys.push({
      name: 'bound',
      madeBy: 'owner',
      scopes: chance(0.7) ? ['read', 'run'] : ['read', 'run', 'control', 'mandate'],
      ...(chance(0.8) && { spender: pick(SPENDERS) }),
      ...(chance(0.6) && { team: pick(TEAMS) }),
    })
  if (chance(0.25))
    keys.push({
      name: 'bound2',
      madeBy: 'owner',
      scopes: ['read', 'run', 'control'],
      spender: pick(SPENDERS),
      team: pick(TEAMS),
    })
  if (deciding || chance(0.6))
    keys.push({ name: 'approver', madeBy: 'operator', scopes: ['read', 'control', 'mandate'] })
  if (deciding) keys.push({ name: 'approver2', madeBy: 'operator', scopes: ['read', 'control'] })
  const spendingKeys = keys.filter(({ scopes }) => scopes.includes('run')).map(({ name }) => name)
  const keyNames = keys.map(({ name }) => name)

  const rules: RuleSpec[] = []
  const ruleName = (letter: string, list: { name: string }[] = rules) => `${letter}${list.length + 1}`
  const tagId = () => {
    const name = pick(Object.keys(TAGS) as (keyof typeof TAGS)[])
    return `${name}=${pick(TAGS[name])}`
  }

  /** Half of the worlds have mostly limits that fill up, so that windows and parents matter more than lists. */
  const counting = chance(0.5)
  const identity = (): Scope => {
    const type = weighted([
      [counting ? 90 : 40, 'tenant'],
      [15, 'agent'],
      [10, 'spender'],
      [keys.some(({ team }) => team) ? 6 : 1, 'team'],
      [8, 'tag'],
      [10, 'merchant'],
      [8, 'key'],
    ] as const)
    if (type === 'tenant') return { type }
    if (type === 'agent') return { type, id: pick(AGENTS) }
    if (type === 'spender') return { type, id: pick(SPENDERS) }
    if (type === 'team') return { type, id: pick(TEAMS) }
    if (type === 'tag') return { type, id: tagId() }
    if (type === 'merchant') return { type, id: pick(MERCHANT_NAMES) }
    return { type: 'key', id: pick(keyNames) }
  }

  const constraint = (): Constraints =>
    weighted<() => Constraints>([
      [counting ? 2 : 12, () => ({ max_per_run_usdc: usdc(random, 4, 30) })],
      [12, () => ({ max_per_day_usdc: usdc(random, 10, 70) })],
      [6, () => ({ max_per_month_usdc: usdc(random, 10, 90) })],
      [8, () => ({ max_runs_per_minute: int(1, 4) })],
      [counting ? 1 : 6, () => ({ allowed_agents: random.some(AGENTS) })],
      [counting ? 1 : 6, () => ({ denied_agents: [pick(AGENTS)] })],
      [counting ? 1 : 6, () => ({ allowed_merchants: ['countersign', ...random.some(MERCHANT_NAMES)] })],
      [counting ? 1 : 6, () => ({ denied_merchants: [pick(MERCHANT_NAMES)] })],
      [2, () => ({ allowed_networks: ['eip155:8453'] })],
      [4, () => ({ allowed_hours_utc: { start: int(0, 11), end: int(12, 24) } })],
      [2, () => ({ allowed_hours_utc: { start: int(12, 23), end: int(0, 11) } })],
      [
        14,
        () => ({
          require_approval_above_usdc: usdc(random, 6, 20),
          ...(chance(0.25) && { approvals_required: 2 }),
        }),
      ],
      [counting ? 1 : 3, () => ({ require_preauth: true })],
      [5, () => ({ denied_instruments: [pick(['spend', 'crypto', 'BTC-USD', 'perp'])] })],
      [3, () => ({ allowed_instruments: random.some(['spend', 'crypto', 'BTC-USD']) })],
      [
        6,
        () => ({
          max_notional_usdc: usdc(random, 8, 40),
          ...(chance(0.5) && { max_per_day_usdc: usdc(random, 15, 70) }),
        }),
      ],
      [counting ? 1 : 4, () => ({ require_mandate: true })],
    ])()

  const rule = (): Rule => {
    const effect = weighted([
      [5, 'deny'],
      [2, 'review'],
      [2, 'allow'],
    ] as const)
    const list = (field: string, values: readonly string[]): Rule => {
      const op = pick(['eq', 'ne', 'in', 'not_in'] as const)
      return { field, op, value: op === 'in' || op === 'not_in' ? random.some(values) : pick(values), effect }
    }
    return weighted<() => Rule>([
      [4, () => list('agent_id', AGENTS)],
      [3, () => list('spender', SPENDERS)],
      [keys.some(({ team }) => team) ? 2 : 0.3, () => list('team', TEAMS)],
      [3, () => list('tags.project', TAGS.project)],
      [4, () => list('merchant', MERCHANT_NAMES)],
      [2, () => ({ field: 'session_id', op: 'in', value: random.some(SESSIONS), effect })],
      [
        5,
        () => ({
          field: 'amount_usdc',
          op: pick(['gt', 'gte', 'lt', 'lte'] as const),
          value: usdc(random, 5, 25),
          effect,
        }),
      ],
      [2, () => ({ field: 'hour_utc', op: pick(['gte', 'lt'] as const), value: int(0, 23), effect })],
    ])()
  }

  const makeRule = (nameOf: (letter: string) => string): RuleSpec =>
    weighted<() => RuleSpec>([
      [
        35,
        () => ({
          name: nameOf('p'),
          make: 'policy',
          mode: weighted([
            [8, 'enforce'],
            [1, 'warn'],
            [1, 'shadow'],
          ] as const),
          identity: identity(),
          ...(chance(0.25) && { selectable: true as const }),
          ...(chance(counting ? 0.9 : 0.65)
            ? { constraints: { ...constraint(), ...(chance(0.3) && constraint()) }, rules: [] }
            : {
                constraints: chance(0.15) ? { approvals_required: 2 } : {},
                rules: Array.from({ length: int(1, 2) }, rule),
              }),
        }),
      ],
      [
        35,
        () => {
          const budgets = rules.filter((other) => other.make === 'budget')
          const mandates = rules.filter((other) => other.make === 'mandate')
          const scope: Scope =
            mandates.length > 0 && chance(0.2)
              ? { type: 'mandate', id: pick(mandates).name }
              : chance(0.12)
                ? { type: 'session', id: pick(SESSIONS) }
                : identity()
          return {
            name: nameOf('b'),
            make: 'budget',
            scope,
            window: weighted<Window>([
              [2, 'run'],
              [3, 'day'],
              [2, 'week'],
              [2, 'month'],
              [3, 'total'],
              [3, 'rolling_24h'],
              [2, 'rolling_7d'],
              [2, 'rolling_30d'],
            ]),
            limit: usdc(random, counting ? 20 : 10, 80),
            ...(chance(0.15) ? { on_breach: 'review' as const } : chance(0.25) && { on_breach: 'downgrade' as const }),
            ...(chance(0.3) && { applies_to: random.some(['runs', 'payments', 'spend', 'trades'] as const) }),
            ...(budgets.length > 0 && chance(0.35) && { parent: pick(budgets).name }),
          }
        },
      ],
      [
        24,
        () => ({
          name: nameOf('m'),
          make: 'mandate',
          ...(chance(0.6) && { agent_id: pick(AGENTS) }),
          ...(chance(counting ? 0.03 : 0.1) && { holder: pick(spendingKeys) }),
          ...(chance(0.6) && { amount: { max: usdc(random, 6, 40), ...(chance(0.15) && { min: 0.006 }) } }),
          ...(chance(counting ? 0.1 : 0.35) && {
            payees: ['countersign', ...random.some(MERCHANT_NAMES)].slice(chance(0.5) ? 0 : 1),
          }),
          ...(chance(0.6) && { budget: usdc(random, 10, 80) }),
          ...(chance(0.2) && {
            recurrence: {
              frequency: pick(['ON_DEMAND', 'DAILY', 'WEEKLY', 'MONTHLY'] as const),
              ...(chance(0.6) && { max_occurrences: int(1, 4) }),
            },
          }),
          ...(chance(0.1) && { execution: chance(0.5) ? { not_before_ms: 3 * HOUR } : { not_after_ms: 5 * DAY } }),
          ...(chance(0.1) && { starts_in_ms: HOUR }),
          ...(chance(0.25) && { expires_in_ms: pick([2 * HOUR, 3 * DAY, 20 * DAY]) }),
        }),
      ],
      [6, () => ({ name: nameOf('f'), make: 'freeze', agent_id: pick(AGENTS) })],
    ])()
  if (deciding) {
    rules.push({
      name: ruleName('p'),
      make: 'policy',
      mode: 'enforce',
      identity: { type: 'tenant' },
      constraints: {
        require_approval_above_usdc: 0.004,
        approvals_required: pick([1, 2, 2, 3]),
        ...(chance(0.6) && { max_notional_usdc: 0.05 }),
      },
      rules: [],
    })
    if (chance(0.5))
      rules.push({
        name: ruleName('d'),
        make: 'default',
        instrument: pick(['spend', 'crypto'] as const),
        constraints: {
          ...(chance(0.6) && { require_approval_above_usdc: usdc(random, 4, 25) }),
          max_notional_usdc: usdc(random, 15, 40),
        },
      })
  }
  /** In some worlds a budget sends runs to a cheaper lane. */
  const downgrading = !deciding && seed % 8 === 5
  if (downgrading)
    rules.push({
      name: ruleName('b'),
      make: 'budget',
      scope: { type: 'tenant' },
      window: pick(['run', 'day', 'total', 'rolling_24h'] as const),
      limit: usdc(random, 10, 24),
      on_breach: 'downgrade',
    })
  const ruleCount = deciding ? rules.length + int(0, 2) : int(2, 6)
  while (rules.length < ruleCount) rules.push(makeRule((letter) => ruleName(letter)))

  const makers = actionMakers(random, keys, rules)
  const actions: Action[] = []
  let waited = 0
  if (downgrading) {
    const { agent_id: _, ...run } = makers.run('a1')
    actions.push({ ...run, do: 'run', task: 2 })
  }
  // Decisions and closes that find nothing to decide or close send nothing, so there are a few more.
  const actionCount = deciding ? 16 : int(7, 14)
  while (actions.length < actionCount) {
    const name = `a${actions.length + 1}`
    const preauths = actions.filter((action) => action.do === 'preauth')
    const payables = actions.filter(({ do: door }) => ['run', 'loop', 'preauth', 'trade'].includes(door))
    const controllers = keys.filter(({ scopes }) => scopes.includes('control')).map((key) => key.name)
    const decider = () =>
      deciding && chance(0.9)
        ? pick(controllers)
        : keyNames.includes('approver') && chance(0.6)
          ? 'approver'
          : pick(keyNames)
    const next = weighted<() => Action | null>([
      [34, () => makers.run(name)],
      [24, () => makers.preauth(name)],
      [16, () => makers.trade(name)],
      [
        9,
        () =>
          preauths.length === 0
            ? null
            : {
                name,
                do: 'close',
                preauth: chance(0.7) ? '*' : pick(preauths).name,
                outcome: pick(['settled', 'settled', 'failed', 'voided'] as const),
                share: pick([0, 0.5, 1, 1]),
              },
      ],
      [
        24,
        () => {
          const own = preauths.filter(
            ({ merchant, agent_id }) => merchant.id === 'countersign' && agent_id.endsWith('-v1'),
          )
          if (own.length === 0) return null
          const preauth = pick(own)
          // Such a run uses the mandate of the pre-authorisation.
          const { mandate: _, ...run } = makers.run(name)
          return { ...run, agent_id: preauth.agent_id, key: preauth.key, preauth: preauth.name }
        },
      ],
      [deciding ? 120 : 20, () => (payables.length === 0 ? null : { name, do: 'approve', of: '*', key: decider() })],
      [12, () => (payables.length === 0 ? null : { name, do: 'override', of: '*', key: decider() })],
      [
        16,
        () => {
          const moves = [20_000, 4 * MINUTE, 40 * MINUTE, 5 * HOUR, 23 * HOUR, 24 * HOUR, 26 * HOUR]
          const longMoves = [6 * DAY, 7 * DAY, 9 * DAY, 24 * DAY]
          // Odd milliseconds keep every time off the edges of slices, minutes and days.
          const ms = pick(waited < 150 * DAY ? [...moves, ...longMoves] : moves) + int(1, 9_999) * 2 + 1
          waited += ms
          return { name, do: 'wait', ms }
        },
      ],
      [3, () => ({ name, do: 'make', rule: makeRule((letter) => `${letter}${rules.length + actions.length + 1}`) })],
      [3, () => ({ name, do: 'end', rule: pick(rules).name })],
      [
        3,
        () => {
          const budgets = rules.filter((other) => other.make === 'budget')
          if (budgets.length === 0) return null
          return { name, do: 'limit', budget: pick(budgets).name, limit: usdc(random, 5, 90) }
        },
      ],
      // A key can be rotated by itself and by the key that made it.
      [2, () => ({ name, do: 'rotate', key: pick(keys.filter(({ madeBy }) => madeBy !== 'operator')).name })],
    ])()
    if (next) actions.push(next)
  }
  // A Wednesday in the middle of a month, the last hours of one, and a Sunday: waits then cross days, weeks and months.
  const start = `${YEAR_OF_WORLDS}-${pick(['03-10T09:13:07.251Z', '01-31T21:41:19.333Z', '05-16T22:50:43.127Z'])}`
  return { seed, start, keys, rules, actions }
}

/** Requests through each door, with every optional field present or left out. */
export function actionMakers(random: Random, keys: KeySpec[], rules: RuleSpec[]) {
  const { int, pick, chance } = random
  const spendingKeys = keys.filter(({ scopes }) => scopes.includes('run')).map(({ name }) => name)
  /** The key, and the fields of who spends; a bound key names another spender now and then, which is refused. */
  const spending = (): Fields & { key: string } => {
    const key = pick(spendingKeys)
    const bound = keys.find(({ name }) => name === key)!.spender
    return {
      key,
      ...(chance(0.7) && { spender: bound !== undefined && chance(0.85) ? bound : pick(SPENDERS) }),
      ...(chance(0.8) && {
        tags: {
          ...(chance(0.9) && { project: pick(TAGS.project) }),
          ...(chance(0.8) && { env: pick(TAGS.env) }),
        },
      }),
    }
  }
  const mandateField = () => {
    const mandates = rules.filter((other) => other.make === 'mandate')
    return mandates.length > 0 && chance(0.2) ? { mandate: pick(mandates).name } : {}
  }
  /** A day's limit of a named policy counts all trades of the type, also those it was not named for; the model does not know that sum. */
  const policyField = () => {
    const policies = rules.filter(
      (other) => other.make === 'policy' && other.constraints.max_per_day_usdc === undefined,
    )
    return policies.length > 0 && chance(0.25) ? { policy: pick(policies).name } : {}
  }
  const merchant = (): PreauthAction['merchant'] => {
    const full: PreauthAction['merchant'] = { ...pick(MERCHANTS) }
    if (full.url !== undefined && chance(0.35)) delete full.url
    if (full.pay_to !== undefined && chance(0.25)) delete full.pay_to
    // Some give names of two payees.
    if (full.url !== undefined && chance(0.1)) full.url = pick(['https://shop.example/', 'https://maps.example/'])
    if (full.pay_to !== undefined && chance(0.1)) full.pay_to = pick([ADDRESSES.maps, ADDRESSES.shop])
    return full
  }
  return {
    run: (name: string): RunAction => ({
      name,
      do: chance(0.7) ? 'run' : 'loop',
      task: int(0, TASKS.length - 1),
      ...(chance(0.75) && { agent_id: pick(LANES) }),
      ...(chance(0.6) && { session_id: pick(SESSIONS) }),
      ...spending(),
      ...mandateField(),
      ...(chance(0.06) && { fails: true }),
    }),
    preauth: (name: string): PreauthAction => {
      // Some are for our own lanes, so that a run can bring the token.
      const ownLane = chance(0.3)
      return {
        name,
        do: 'preauth',
        agent_id: pick(ownLane ? LANES : AGENTS),
        merchant: ownLane ? { id: 'countersign' } : merchant(),
        amount: usdc(random, ownLane ? 13 : 5, 30),
        ...spending(),
        ...mandateField(),
      }
    },
    trade: (name: string): TradeAction => ({
      name,
      do: 'trade',
      instrument: chance(0.7) ? 'spend' : 'crypto',
      merchant: pick(['maps.example', 'shop-9']),
      amount: usdc(random, 5, 30),
      ...(chance(0.5) && { agent_id: pick(AGENTS) }),
      ...spending(),
      ...mandateField(),
      ...policyField(),
    }),
  }
}

/** The same world with half of its runs paid by x402, in a year of its own, because the time of a chain does not go back. */
export function paidByX402(world: World, year: number): World {
  const random = createRandom(world.seed * 11 + 3)
  const actions = world.actions.map((action) =>
    (action.do === 'run' || action.do === 'loop') && random.chance(0.5) ? { ...action, x402: true as const } : action,
  )
  return { ...world, start: world.start.replace(String(YEAR_OF_WORLDS), String(year)), actions }
}
