/**
 * A second, independent statement of governance, written from docs/governance.md. It imports nothing: it must be able to disagree with the service.
 * It keeps every payment and adds them up anew at each question, where the service keeps counters.
 */

export type Mode = 'enforce' | 'warn' | 'shadow'
export type Kind = 'runs' | 'payments' | 'spend' | 'trades'
export type Window = 'run' | 'day' | 'week' | 'month' | 'total' | 'rolling_24h' | 'rolling_7d' | 'rolling_30d'
export type Scope = {
  type: 'tenant' | 'agent' | 'spender' | 'team' | 'tag' | 'merchant' | 'key' | 'session' | 'mandate'
  id?: string
}

export type Constraints = Partial<{
  max_per_run_usdc: number
  max_per_day_usdc: number
  max_per_month_usdc: number
  max_runs_per_minute: number
  allowed_agents: string[]
  denied_agents: string[]
  allowed_merchants: string[]
  denied_merchants: string[]
  allowed_networks: string[]
  allowed_hours_utc: { start: number; end: number } | number[]
  require_approval_above_usdc: number
  approvals_required: number
  require_preauth: boolean
  require_mandate: boolean
  allowed_instruments: string[]
  denied_instruments: string[]
  max_notional_usdc: number
}>

export type Rule = {
  field: string
  op: 'eq' | 'ne' | 'gt' | 'gte' | 'lt' | 'lte' | 'in' | 'not_in'
  value: string | number | (string | number)[]
  effect: 'allow' | 'deny' | 'review'
}

export type Policy = {
  id: string
  mode: Mode
  identity: Scope
  constraints: Constraints
  rules: Rule[]
  /** A trade may name it with any key; otherwise naming takes the scope `control`. */
  selectable: boolean
}

/** A tenant's default for trades of one type: it gives their limits instead of the policies that speak of trades. */
export type TradeDefault = { require_approval_above_usdc?: number; max_notional_usdc?: number }

export type Budget = {
  id: string
  scope: Scope
  window: Window
  limitMicro: bigint
  onBreach: 'block' | 'review' | 'downgrade'
  appliesTo: Kind[]
  parent: string | null
}

export type Mandate = {
  id: string
  agentId: string | null
  holderKeyId: string | null
  startsAt: number
  expiresAt: number
  revoked: boolean
  amountMin: bigint | null
  amountMax: bigint | null
  payees: string[] | null
  budgetMax: bigint | null
  recurrence: { frequency: 'ON_DEMAND' | 'DAILY' | 'WEEKLY' | 'MONTHLY'; max: number | null } | null
  notBefore: number | null
  notAfter: number | null
}

export type Key = {
  id: string
  scopes: string[]
  spender: string | null
  team: string | null
  /** The key that made it; null for the onboarded key and those of the operator. */
  madeBy: string | null
}

/** The facts of one payment, whichever door it came through. */
export type Facts = {
  kind: Kind
  keyId: string
  lane: string | null
  agentNames: string[]
  /** The names that let the payment pass: the spender, and the lane where one runs. */
  permittingNames: string[]
  spender: string | null
  team: string | null
  tags: Record<string, string>
  merchantNames: string[]
  /** True when the request itself says who is paid, so that its names could be those of several payees. */
  namesGiven: boolean
  /** False when the payee's address is not in the request, so a rule about addresses cannot be judged. */
  payToKnown: boolean
  /** False when neither an address nor a host of the payee is known, so a rule about hosts cannot be judged. */
  hostKnown: boolean
  /** Undefined at doors that have no session. */
  session: string | null | undefined
  network: string
  amountMicro: bigint
  mandateId: string | null
  hasPreauth: boolean
  /** The policy that a trade names for its limits. */
  namedPolicy: string | null
  /** The type and the symbol of a trade. */
  instrument: { type: string; symbol: string } | null
}

export type Refusal = {
  by: 'policy' | 'budget' | 'mandate' | 'freeze' | 'default'
  id: string
  rule: string
  error: 'policy_blocked' | 'budget_exceeded'
  /** The field that was left out, where that is the reason. */
  field?: string
}

export type Verdict = {
  outcome: 'allowed' | 'blocked' | 'review'
  refusals: Refusal[]
  reviews: Refusal[]
  mandateId: string | null
  budgets: string[]
  /** Limits of policies in which the payment counts, as `<policy>/<constraint>`. */
  limits: string[]
  /** Rules that the payment passed by an approval or override. */
  granted: string[]
  /** How many identities have to approve what is reviewed. */
  approvalsRequired: number
}

/** One payment that was let through. */
export type Payment = {
  kind: Kind
  at: number
  amountMicro: bigint
  state: 'reserved' | 'spent' | 'released'
  budgets: Set<string>
  limits: Set<string>
  mandateId: string | null
  /** Rules that an approval or override let a pre-authorisation pass; it passes them again in the run with its token. */
  granted: Set<string>
  /** The money is that of the reservation, counted there. */
  takenOver?: boolean
}

export type JudgeOptions = {
  /** So many identities have approved this payment. */
  approved?: number
  /** The trade waits already: whether a person has to see it by its amount was decided when it was asked for. */
  waiting?: boolean
  /** A policy's denials are overridden for this payment. */
  overridden?: boolean
  /** The run takes over the reservation of this payment, with what was granted to it. */
  takesOver?: Payment
}

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
const ROLLING: Partial<Record<Window, { length: number; slice: number }>> = {
  rolling_24h: { length: DAY, slice: 5 * MINUTE },
  rolling_7d: { length: 7 * DAY, slice: HOUR },
  rolling_30d: { length: 30 * DAY, slice: 6 * HOUR },
}

const COUNTED = ['max_per_day_usdc', 'max_per_month_usdc', 'max_runs_per_minute'] as const

const micro = (usdc: number) => BigInt(Math.round(usdc * 1_000_000))
const isAddress = (name: string) => /^0x[0-9a-fA-F]{40}$/.test(name)
const isHost = (name: string) => name.includes('.')
const kindOf = (name: string) => (isAddress(name) ? 'address' : isHost(name) ? 'host' : 'id')
/**
 * Whether a list that allows lets the payee pass. Every name that the request gives must be in it, of each kind that the list has, and at
 * least one. Of names that the service knows to be one payee, and of our own, one is enough.
 */
function allowsPayee(list: string[], { merchantNames, namesGiven }: Facts): boolean {
  if (!namesGiven || merchantNames[0] === 'countersign') return merchantNames.some((name) => list.includes(name))
  const spoken = merchantNames.filter((name) => list.some((entry) => kindOf(entry) === kindOf(name)))
  return spoken.length > 0 && spoken.every((name) => list.includes(name))
}
/** Fields of the payee that a rule with these names needs and the request leaves out. Who is on no allow-list is refused anyway. */
const missingPayee = (names: string[], facts: Facts, allows: boolean): string[] => [
  ...(!facts.payToKnown && names.some(isAddress) ? ['merchant.pay_to'] : []),
  ...(!facts.hostKnown && !allows && names.some(isHost) ? ['merchant.url'] : []),
]
const dayOf = (at: number) => new Date(at).toISOString().slice(0, 10)
const monthOf = (at: number) => new Date(at).toISOString().slice(0, 7)
/** Weeks begin on Monday; 1970-01-05 was one. */
const weekOf = (at: number) => Math.floor((at - 4 * DAY) / (7 * DAY))
const samePeriod = (window: Window, a: number, b: number) =>
  window === 'total' ||
  (window === 'day' && dayOf(a) === dayOf(b)) ||
  (window === 'week' && weekOf(a) === weekOf(b)) ||
  (window === 'month' && monthOf(a) === monthOf(b))

export function createGovernanceModel() {
  const policies = new Map<string, Policy>()
  const budgets = new Map<string, Budget>()
  const mandates = new Map<string, Mandate>()
  const keys = new Map<string, Key>()
  const frozen = new Set<string>()
  const tradeDefaults = new Map<string, TradeDefault>()
  const payments: Payment[] = []

  /** A key, the key that made it, and so on. */
  const makers = (id: string): string[] => {
    const maker = keys.get(id)?.madeBy ?? null
    return maker === null ? [id] : [id, ...makers(maker)]
  }

  type Selection = 'yes' | 'no' | { missing: string }

  /** Whether a rule for this scope is about the payment, or which field must be known to say so. */
  function selects(scope: Scope, facts: Facts): Selection {
    const id = scope.id ?? ''
    const equals = (value: string | null | undefined, field: string): Selection =>
      value === undefined || value === null ? { missing: field } : value === id ? 'yes' : 'no'
    switch (scope.type) {
      case 'tenant':
        return 'yes'
      case 'agent':
        if (facts.agentNames.length === 0) return { missing: 'agent_id' }
        return facts.agentNames.includes(id) ? 'yes' : 'no'
      case 'spender':
        return equals(facts.spender, 'spender')
      case 'team':
        return equals(facts.team, 'team')
      case 'tag': {
        const [name, ...rest] = id.split('=')
        const value = facts.tags[name!]
        return value === undefined ? { missing: `tags.${name}` } : value === rest.join('=') ? 'yes' : 'no'
      }
      case 'merchant':
        if (facts.merchantNames.includes(id)) return 'yes'
        for (const missing of missingPayee([id], facts, false)) return { missing }
        return 'no'
      case 'key':
        return makers(facts.keyId).includes(id) ? 'yes' : 'no'
      case 'session':
        return facts.session === undefined ? 'no' : equals(facts.session, 'session_id')
      case 'mandate':
        return 'no'
    }
  }

  /** Names that a condition is about: several for agents and merchants, one for the other fields. */
  function namesOf(field: string, facts: Facts): string[] | { missing: string } {
    const one = (value: string | null | undefined, missing: string) => (value == null ? { missing } : [value])
    if (field === 'agent_id') return facts.agentNames.length > 0 ? facts.agentNames : { missing: 'agent_id' }
    if (field === 'spender') return one(facts.spender, 'spender')
    if (field === 'team') return one(facts.team, 'team')
    if (field.startsWith('tags.')) return one(facts.tags[field.slice(5)], field)
    if (field === 'session_id') return facts.session === undefined ? [] : one(facts.session, 'session_id')
    if (field === 'merchant') return facts.merchantNames
    if (field === 'key_id') return [facts.keyId]
    if (field === 'network') return [facts.network]
    if (field === 'lane') return facts.lane === null ? [] : [facts.lane]
    if (field === 'instrument') return facts.instrument === null ? [] : [facts.instrument.type]
    throw new Error(`The model does not know the field ${field}.`)
  }

  function holds(rule: Rule, facts: Facts, now: number): boolean | { missing: string } {
    const values = Array.isArray(rule.value) ? rule.value : [rule.value]
    if (rule.field === 'amount_usdc' || rule.field === 'hour_utc') {
      const limit = rule.field === 'hour_utc' ? BigInt(Number(values[0])) : micro(Number(values[0]))
      const actual = rule.field === 'hour_utc' ? BigInt(new Date(now).getUTCHours()) : facts.amountMicro
      switch (rule.op) {
        case 'gt':
          return actual > limit
        case 'gte':
          return actual >= limit
        case 'lt':
          return actual < limit
        case 'lte':
          return actual <= limit
        case 'eq':
          return actual === limit
        default:
          throw new Error(`The model does not compare amounts by ${rule.op}.`)
      }
    }
    if (rule.field === 'merchant')
      for (const missing of missingPayee(values.map(String), facts, rule.effect === 'allow')) return { missing }
    const positive = rule.op === 'eq' || rule.op === 'in'
    const all = namesOf(rule.field, facts)
    if (!Array.isArray(all)) return all
    // What lets only the named agents pass is about the names that permit.
    const names = rule.field === 'agent_id' && (rule.effect === 'allow') === positive ? facts.permittingNames : all
    if (rule.field === 'merchant' && (rule.effect === 'allow') === positive)
      return allowsPayee(values.map(String), facts) === positive
    if (rule.op === 'eq' || rule.op === 'in') return names.some((name) => values.includes(name))
    // A rule about a field that the door does not have never applies.
    return names.length > 0 && names.every((name) => !values.includes(name))
  }

  /** What a budget has counted at this time: spent and reserved. */
  function budgetUsage(budget: Budget, now: number, except?: Payment) {
    const usage = { spent: 0n, reserved: 0n }
    const rolling = ROLLING[budget.window]
    for (const payment of payments) {
      if (payment === except || payment.state === 'released' || !payment.budgets.has(budget.id)) continue
      if (rolling) {
        const sliceEnd = (Math.floor(payment.at / rolling.slice) + 1) * rolling.slice
        if (payment.state === 'spent' && sliceEnd <= now - rolling.length) continue
      } else if (!samePeriod(budget.window, payment.at, now)) continue
      usage[payment.state === 'spent' ? 'spent' : 'reserved'] += payment.amountMicro
    }
    return usage
  }

  const limitPayments = (limit: string, within: (payment: Payment) => boolean) =>
    payments.filter((payment) => payment.state !== 'released' && payment.limits.has(limit) && within(payment))
  const sum = (list: Payment[]) => list.reduce((total, payment) => total + payment.amountMicro, 0n)

  function mandateUsage(id: string) {
    const used = payments.filter((payment) => payment.mandateId === id && payment.state !== 'released')
    return {
      spent: sum(used.filter(({ state }) => state === 'spent')),
      reserved: sum(used.filter(({ state }) => state === 'reserved')),
      occurrences: used.length,
      used,
    }
  }

  /** Why a mandate does not fit, or null when it does. */
  function misfit(mandate: Mandate, facts: Facts, now: number, counted = true): string | null {
    if (mandate.revoked || now < mandate.startsAt || now >= mandate.expiresAt) return 'not active'
    if (mandate.agentId !== null && !facts.permittingNames.includes(mandate.agentId)) return 'agent_id'
    if (mandate.holderKeyId !== null && mandate.holderKeyId !== facts.keyId) return 'holder_key_id'
    if (mandate.amountMax !== null && facts.amountMicro > mandate.amountMax) return 'payment.amount_range'
    if (mandate.amountMin !== null && facts.amountMicro < mandate.amountMin) return 'payment.amount_range'
    if (mandate.payees !== null && !allowsPayee(mandate.payees, facts)) return 'payment.allowed_payees'
    if (mandate.notBefore !== null && now < mandate.notBefore) return 'payment.execution_date'
    if (mandate.notAfter !== null && now > mandate.notAfter) return 'payment.execution_date'
    if (!counted) return null
    const { spent, reserved, occurrences, used } = mandateUsage(mandate.id)
    if (mandate.budgetMax !== null && spent + reserved + facts.amountMicro > mandate.budgetMax) return 'payment.budget'
    if (mandate.recurrence !== null) {
      const { frequency, max } = mandate.recurrence
      if (max !== null && occurrences + 1 > max) return 'payment.agent_recurrence'
      const window = { ON_DEMAND: null, DAILY: 'day', WEEKLY: 'week', MONTHLY: 'month' } as const
      const period = window[frequency]
      if (period !== null && used.some((payment) => samePeriod(period, payment.at, now)))
        return 'payment.agent_recurrence'
    }
    return null
  }

  /** A missing limit comes after every limit. */
  const ascending = (a: bigint | null, b: bigint | null) =>
    a === b ? 0 : a === null ? 1 : b === null ? -1 : a < b ? -1 : 1
  const fixedOrder = (a: Mandate, b: Mandate) =>
    ascending(a.amountMax, b.amountMax) ||
    ascending(a.budgetMax, b.budgetMax) ||
    a.expiresAt - b.expiresAt ||
    (a.id < b.id ? -1 : 1)

  function chooseMandate(facts: Facts, now: number): { mandateId: string | null; refusals: Refusal[] } {
    const named = facts.mandateId === null ? undefined : mandates.get(facts.mandateId)
    const candidates =
      facts.mandateId !== null
        ? [named!]
        : [...mandates.values()].filter(
            (mandate) =>
              !mandate.revoked &&
              mandate.startsAt <= now &&
              now < mandate.expiresAt &&
              (mandate.agentId === null || facts.permittingNames.includes(mandate.agentId)),
          )
    const refusals: Refusal[] = []
    if (facts.agentNames.length === 0 && facts.mandateId === null)
      for (const mandate of mandates.values())
        if (!mandate.revoked && mandate.startsAt <= now && now < mandate.expiresAt && mandate.agentId !== null)
          refusals.push({ by: 'mandate', id: mandate.id, rule: 'agent_id', error: 'policy_blocked', field: 'agent_id' })
    if (refusals.length > 0) return { mandateId: null, refusals }
    for (const mandate of candidates.sort(fixedOrder)) {
      const rule = misfit(mandate, facts, now)
      if (rule === null) return { mandateId: mandate.id, refusals: [] }
      refusals.push({ by: 'mandate', id: mandate.id, rule, error: 'policy_blocked' })
    }
    return { mandateId: null, refusals }
  }

  /** A run that takes over a reservation keeps its mandate, which must fit the run too; it is counted already. */
  function reservedMandate(own: Payment, facts: Facts, now: number): { mandateId: string | null; refusals: Refusal[] } {
    if (own.mandateId === null) return chooseMandate(facts, now)
    const rule = misfit(mandates.get(own.mandateId)!, facts, now, false)
    return {
      mandateId: own.mandateId,
      refusals: rule === null ? [] : [{ by: 'mandate', id: own.mandateId, rule, error: 'policy_blocked' }],
    }
  }

  /** Limits of a trade come from the tenant's default for the type, else from the enforced policies that speak of trades. */
  const speaksOfTrades = ({ mode, constraints }: Policy) =>
    mode === 'enforce' &&
    (['allowed_instruments', 'denied_instruments', 'max_notional_usdc'] as const).some(
      (constraint) => constraints[constraint] !== undefined,
    )
  /** Limits of trades replace the default ones, so a policy for an agent gives them to that spender alone. */
  const isOfSpender = ({ identity }: Policy, { permittingNames }: Facts) =>
    identity.type !== 'agent' || permittingNames.includes(identity.id!)
  const givesLimits = (policy: Policy, facts: Facts) =>
    facts.instrument === null ||
    (facts.namedPolicy !== null
      ? policy.id === facts.namedPolicy
      : speaksOfTrades(policy) && isOfSpender(policy, facts) && !tradeDefaults.has(facts.instrument.type))
  const limitsOf = (policy: Policy, facts: Facts) =>
    !givesLimits(policy, facts)
      ? []
      : COUNTED.filter((rule) => policy.constraints[rule] !== undefined).map((rule) => `${policy.id}/${rule}`)

  function judgePolicy(policy: Policy, facts: Facts, now: number, mandateId: string | null, options: JudgeOptions) {
    const own = options.takesOver
    const denials: Omit<Refusal, 'by' | 'id' | 'error'>[] = []
    const reviews: Omit<Refusal, 'by' | 'id' | 'error'>[] = []
    const deny = (rule: string, when: boolean) => void (when && denials.push({ rule }))
    const missing = (rule: string, field: string) => void denials.push({ rule, field })
    const { constraints, rules } = policy
    const { amountMicro, agentNames, merchantNames } = facts
    const { instrument } = facts
    const limits = givesLimits(policy, facts)
    /** The limits of one trade are judged when it is asked for. */
    const ofOne = limits && !options.waiting
    /** A run that took over a reservation counts only where the reservation does not. */
    const counts = (rule: (typeof COUNTED)[number]) =>
      limits && constraints[rule] !== undefined && !own?.limits.has(`${policy.id}/${rule}`)
    if (constraints.max_per_run_usdc !== undefined && ofOne)
      deny('max_per_run_usdc', amountMicro > micro(constraints.max_per_run_usdc))
    for (const [rule, periodOf] of [
      ['max_per_day_usdc', dayOf],
      ['max_per_month_usdc', monthOf],
    ] as const) {
      if (!counts(rule)) continue
      const spent = sum(limitPayments(`${policy.id}/${rule}`, ({ at }) => periodOf(at) === periodOf(now)))
      deny(rule, spent + amountMicro > micro(constraints[rule]!))
    }
    if (counts('max_runs_per_minute')) {
      const minute = Math.floor(now / MINUTE)
      const limit = `${policy.id}/max_runs_per_minute`
      const count = limitPayments(limit, ({ at }) => Math.floor(at / MINUTE) === minute).length
      deny('max_runs_per_minute', count + 1 > constraints.max_runs_per_minute!)
    }
    for (const rule of ['allowed_agents', 'denied_agents'] as const) {
      const list = constraints[rule]
      if (list === undefined) continue
      if (agentNames.length === 0) missing(rule, 'agent_id')
      else if (rule === 'denied_agents')
        deny(
          rule,
          agentNames.some((name) => list.includes(name)),
        )
      else deny(rule, !facts.permittingNames.some((name) => list.includes(name)))
    }
    for (const rule of ['allowed_merchants', 'denied_merchants'] as const) {
      const list = constraints[rule]
      if (list === undefined) continue
      const left = missingPayee(list, facts, rule === 'allowed_merchants')
      for (const field of left) missing(rule, field)
      if (left.length === 0)
        deny(
          rule,
          rule === 'denied_merchants' ? merchantNames.some((name) => list.includes(name)) : !allowsPayee(list, facts),
        )
    }
    if (constraints.allowed_networks !== undefined && instrument === null)
      deny('allowed_networks', !constraints.allowed_networks.includes(facts.network))
    if (constraints.allowed_hours_utc !== undefined) {
      const hours = constraints.allowed_hours_utc
      const hour = new Date(now).getUTCHours()
      const within = Array.isArray(hours)
        ? hours.includes(hour)
        : hours.start <= hours.end
          ? hours.start <= hour && hour < hours.end
          : hour >= hours.start || hour < hours.end
      deny('allowed_hours_utc', !within)
    }
    if (constraints.require_preauth === true)
      deny('require_preauth', (facts.kind === 'runs' || facts.kind === 'spend') && !facts.hasPreauth)
    if (constraints.require_mandate === true) deny('require_mandate', mandateId === null)
    if (instrument !== null) {
      const { allowed_instruments, denied_instruments, max_notional_usdc } = constraints
      const listed = (list: string[]) => list.includes(instrument.type) || list.includes(instrument.symbol)
      if (allowed_instruments !== undefined) deny('allowed_instruments', !listed(allowed_instruments))
      if (denied_instruments !== undefined) deny('denied_instruments', listed(denied_instruments))
      if (max_notional_usdc !== undefined && ofOne) deny('max_notional_usdc', amountMicro > micro(max_notional_usdc))
    }
    if (constraints.require_approval_above_usdc !== undefined && limits)
      if (amountMicro > micro(constraints.require_approval_above_usdc))
        reviews.push({ rule: 'require_approval_above_usdc' })

    const results = rules.map((rule, index) => ({ rule, name: `rules[${index}]`, held: holds(rule, facts, now) }))
    for (const { name, held } of results) if (typeof held === 'object') missing(name, held.missing)
    for (const { rule, name, held } of results)
      if (held === true) {
        if (rule.effect === 'deny') denials.push({ rule: name })
        if (rule.effect === 'review') reviews.push({ rule: name })
      }
    const allowRules = results.filter(({ rule }) => rule.effect === 'allow')
    if (allowRules.length > 0) deny('rules', !allowRules.some(({ held }) => held === true))
    return { denials, reviews }
  }

  /** The budgets that count the payment: those it belongs to, and all their parents. */
  function countingBudgets(facts: Facts, mandateId: string | null) {
    const counting = new Set<string>()
    const refusals: Refusal[] = []
    for (const budget of budgets.values()) {
      if (!budget.appliesTo.includes(facts.kind)) continue
      const selection =
        budget.scope.type === 'mandate'
          ? mandateId !== null && budget.scope.id === mandateId
            ? 'yes'
            : 'no'
          : selects(budget.scope, facts)
      if (typeof selection === 'object')
        refusals.push({ by: 'budget', id: budget.id, rule: 'scope', error: 'policy_blocked', field: selection.missing })
      if (selection !== 'yes') continue
      for (let next: Budget | undefined = budget; next; next = next.parent ? budgets.get(next.parent) : undefined)
        counting.add(next.id)
    }
    return { counting, refusals }
  }

  function judge(facts: Facts, now: number, options: JudgeOptions = {}): Verdict {
    const own = options.takesOver
    const refusals: Refusal[] = []
    const reviews: Refusal[] = []
    const granted: string[] = []
    /** Whether an approval or override covers this rule, now or when the reservation was made. */
    const grant = (
      kind: 'approved' | 'overridden',
      id: string,
      rule: string,
      isGiven = options.overridden === true,
    ) => {
      const name = `${kind} ${id}/${rule}`
      const given = isGiven || own?.granted.has(name) === true
      if (given) granted.push(name)
      return given
    }

    if (frozen.size > 0 && facts.agentNames.length === 0)
      refusals.push({ by: 'freeze', id: '', rule: 'frozen', error: 'policy_blocked', field: 'agent_id' })
    for (const name of facts.agentNames)
      if (frozen.has(name)) refusals.push({ by: 'freeze', id: name, rule: 'frozen', error: 'policy_blocked' })

    const chosen = own ? reservedMandate(own, facts, now) : chooseMandate(facts, now)
    refusals.push(...chosen.refusals)

    /** Everything that a person has to see; how many people, is known when all of it is. */
    const seen: (Refusal & { people: number })[] = []
    const limits = new Set<string>()
    const named = facts.namedPolicy === null ? undefined : policies.get(facts.namedPolicy)
    const enforcedPeople = Math.max(
      1,
      ...[...policies.values()]
        .filter((policy) => speaksOfTrades(policy) && isOfSpender(policy, facts))
        .filter((policy) => selects(policy.identity, facts) === 'yes')
        .map(({ constraints }) => constraints.approvals_required ?? 1),
    )
    const tradePeople = named ? (named.constraints.approvals_required ?? 1) : enforcedPeople
    for (const policy of policies.values()) {
      const selection = selects(policy.identity, facts)
      const base = { by: 'policy', id: policy.id, error: 'policy_blocked' } as const
      if (typeof selection === 'object') {
        if (policy.mode === 'enforce') refusals.push({ ...base, rule: 'identity', field: selection.missing })
        continue
      }
      if (selection === 'no') continue
      for (const limit of limitsOf(policy, facts)) limits.add(limit)
      if (policy.mode !== 'enforce') continue
      const judged = judgePolicy(policy, facts, now, chosen.mandateId, options)
      for (const denial of judged.denials)
        if (denial.field !== undefined || !grant('overridden', policy.id, denial.rule))
          refusals.push({ ...base, ...denial })
        // What passes a limit by an override is not counted in it, so that the limit holds for all others.
        else limits.delete(`${policy.id}/${denial.rule}`)
      for (const review of judged.reviews) {
        const byAmount = facts.instrument !== null && review.rule === 'require_approval_above_usdc'
        if (byAmount && options.waiting) continue
        const people = byAmount ? tradePeople : (policy.constraints.approvals_required ?? 1)
        if (!grant('approved', policy.id, review.rule, false)) seen.push({ ...base, ...review, people })
      }
    }

    const tradeDefault = options.waiting ? undefined : tradeDefaults.get(facts.instrument?.type ?? '')
    // What a named policy does not limit is limited by the default.
    const { max_notional_usdc, max_per_run_usdc, require_approval_above_usdc } = named?.constraints ?? {}
    const ownNotional = max_notional_usdc !== undefined || max_per_run_usdc !== undefined
    const limit = ownNotional ? undefined : tradeDefault?.max_notional_usdc
    if (limit !== undefined && facts.amountMicro > micro(limit))
      refusals.push({ by: 'default', id: '', rule: 'max_notional_usdc', error: 'budget_exceeded' })
    const threshold = require_approval_above_usdc === undefined ? tradeDefault?.require_approval_above_usdc : undefined
    if (threshold !== undefined && facts.amountMicro > micro(threshold))
      seen.push({
        by: 'default',
        id: '',
        rule: 'require_approval_above_usdc',
        error: 'policy_blocked',
        people: named ? tradePeople : 1,
      })

    const { counting, refusals: missing } = countingBudgets(facts, chosen.mandateId)
    refusals.push(...missing)
    for (const id of counting) {
      const budget = budgets.get(id)!
      if (own?.budgets.has(id)) continue
      const { spent, reserved } = budget.window === 'run' ? { spent: 0n, reserved: 0n } : budgetUsage(budget, now)
      if (spent + reserved + facts.amountMicro <= budget.limitMicro) continue
      const breach = { by: 'budget', id, rule: 'limit_usdc', error: 'budget_exceeded' } as const
      if (budget.onBreach === 'review') {
        if (!grant('approved', id, breach.rule, false)) seen.push({ ...breach, people: 1 })
        // An approved payment passes the budget without being counted in it, so that the limit holds for all others.
        counting.delete(id)
      } else refusals.push(breach)
    }

    const approvalsRequired = Math.max(1, ...seen.map(({ people }) => people))
    for (const { people: _, ...review } of seen)
      if ((options.approved ?? 0) < approvalsRequired || !grant('approved', review.id, review.rule, true))
        reviews.push(review)

    const outcome = refusals.length > 0 ? 'blocked' : reviews.length > 0 ? 'review' : 'allowed'
    return {
      outcome,
      refusals,
      reviews,
      mandateId: chosen.mandateId,
      budgets: [...counting],
      limits: [...limits],
      granted,
      approvalsRequired,
    }
  }

  /** Whether a trade may name this policy: the status of the answer when it may not. */
  function naming(policy: Policy, facts: Facts): 'may' | 403 | 400 {
    if (!policy.selectable && !keys.get(facts.keyId)!.scopes.includes('control')) return 403
    const isFor = isOfSpender(policy, facts) && selects(policy.identity, facts) === 'yes'
    return isFor && policy.mode === 'enforce' ? 'may' : 400
  }

  /** Whether only budgets refuse that let the run use a cheaper lane. */
  const mayDowngrade = ({ refusals, reviews }: Verdict) =>
    refusals.length > 0 &&
    reviews.length === 0 &&
    refusals.every(
      ({ by, id, field }) => by === 'budget' && field === undefined && budgets.get(id)!.onBreach === 'downgrade',
    )

  return {
    naming,
    mayDowngrade,
    policies,
    budgets,
    mandates,
    keys,
    frozen,
    tradeDefaults,
    payments,
    judge,
    budgetUsage,
    mandateUsage,

    /** Money that was spent, and the notional of trades that are not money. */
    spent: () => {
      const own = payments.filter(({ state, takenOver }) => state === 'spent' && !takenOver)
      return {
        amount: sum(own.filter(({ kind }) => kind !== 'trades')),
        notional: sum(own.filter(({ kind }) => kind === 'trades')),
      }
    },

    /** Where a payment counts that was made under this mandate. */
    countsIn: (facts: Facts, mandateId: string | null) => ({
      mandateId,
      granted: [],
      budgets: [...countingBudgets(facts, mandateId).counting],
      limits: [...policies.values()]
        .filter(({ identity }) => selects(identity, facts) === 'yes')
        .flatMap((policy) => limitsOf(policy, facts)),
    }),

    /** Counts a payment that was let through. */
    count(
      facts: Facts,
      verdict: Pick<Verdict, 'budgets' | 'limits' | 'mandateId' | 'granted'>,
      now: number,
      state: Payment['state'],
    ): Payment {
      const payment: Payment = {
        kind: facts.kind,
        at: now,
        amountMicro: facts.amountMicro,
        state,
        budgets: new Set(verdict.budgets),
        limits: new Set(verdict.limits),
        mandateId: verdict.mandateId,
        granted: new Set(verdict.granted),
      }
      payments.push(payment)
      return payment
    },

    /** A run that took over a reservation spends it, and counts where the reservation did not. */
    takeOver(payment: Payment, facts: Facts, verdict: Verdict, now: number): void {
      const budgetsLeft = verdict.budgets.filter((id) => !payment.budgets.has(id))
      const limitsLeft = verdict.limits.filter((limit) => !payment.limits.has(limit))
      payment.state = 'spent'
      payment.amountMicro = facts.amountMicro
      payments.push({
        kind: facts.kind,
        at: now,
        amountMicro: facts.amountMicro,
        state: 'spent',
        budgets: new Set(budgetsLeft),
        limits: new Set(limitsLeft),
        mandateId: payment.mandateId === null ? verdict.mandateId : null,
        granted: new Set(),
        takenOver: true,
      })
    },

    /** Two keys are one identity when one made the other, directly or through others, or both are bound to one spender. */
    sameIdentity(a: string, b: string): boolean {
      const spenderOf = (id: string) => keys.get(id)?.spender ?? null
      return makers(a).includes(b) || makers(b).includes(a) || (spenderOf(a) !== null && spenderOf(a) === spenderOf(b))
    },

    /** Whether this key may decide about what another one asked for, and whether that decides for itself. */
    mayDecide(decider: string, requester: string, scope: 'control' | 'mandate'): 'yes' | 'self' | 'no' {
      if (!keys.get(decider)!.scopes.includes(scope)) return 'no'
      if (!this.sameIdentity(decider, requester)) return 'yes'
      const controllers = [...keys.values()].filter((key) => key.scopes.includes('control'))
      return controllers.length === 1 && controllers[0]!.id === decider ? 'self' : 'no'
    },
  }
}

export type GovernanceModel = ReturnType<typeof createGovernanceModel>
