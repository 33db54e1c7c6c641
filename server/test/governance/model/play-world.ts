import { type Payer, readChallenge, signPayment } from '../../harness.ts'
import { richTenant, type World as Service, type Tenant } from '../world.ts'
import {
  createGovernanceModel,
  type Facts,
  type GovernanceModel,
  type Payment,
  type Verdict,
} from './governance-model.ts'
import { type Action, CRYPTO_BROKER, type Payable, PRICES, type RuleSpec, TASKS, type World } from './random-worlds.ts'

/** Where the service and the model differ: the action, what the model expects, what the service answered. */
export type Disagreement = { at: string; expected: string; actual: string }

const YEAR = 365 * 24 * 3_600_000
const APPROVAL_WINDOW = 24 * 3_600_000
const TRADE_APPROVAL_WINDOW = 15 * 60_000
const PREAUTH_LIFETIME = 600_000
const NETWORK = 'eip155:8453'

type Client = Pick<Service, 'get' | 'post' | 'call'>
type Response = Awaited<ReturnType<Client['post']>>

/** What the service answered, in the words of the model. */
type Answer = {
  outcome: 'allowed' | 'blocked' | 'review' | 'failed' | 'other'
  mandateId: string | null
  response: Response
}

/** What happened to a payable action, for the actions that refer to it. */
type Trace = {
  action: Payable
  facts: Facts
  body: Record<string, unknown>
  at: number
  verdict: Verdict
  answer: Answer
  isDowngraded: boolean
  payment?: Payment
  preauthId?: string
  token?: string
}

const usdcOf = (micro: bigint) => Number(micro) / 1_000_000
const microOf = (usdc: number) => BigInt(Math.round(usdc * 1_000_000))

/** The lane of a task, and the others in the order in which they replace it: the general lane comes before those of another trade. */
export type TaskRoute = { lane: string; others: string[] }

export async function readRoutes(service: Client): Promise<TaskRoute[]> {
  const routes: TaskRoute[] = []
  for (const task of TASKS) {
    const { body } = await service.post('/api/route', { task: `${task} (a1)` })
    const others: string[] = body.alternatives.map(({ agent_id }: { agent_id: string }) => agent_id)
    routes.push({ lane: body.recommended_agent_id, others: [...new Set(['default', ...others])] })
  }
  return routes
}

/** One tenant of the service and the model of it. */
export async function openTenant(service: Service, world: World, routes: readonly TaskRoute[], payTo: string) {
  const tenant: Tenant = await richTenant(service, 100)
  const model = createGovernanceModel()
  /** Names of the world to ids of the service. */
  const ids = new Map<string, string>()
  const headers = new Map<string, Record<string, string>>()
  /** The newest id of each key that was rotated. */
  const currentKeys = new Map<string, string>()
  const now = () => service.clock.now().getTime()

  const ownerKeys = await service.get(`/api/admin/tenants/${tenant.tenantId}/keys`, {
    'x-admin-key': service.service.adminKey,
  })
  for (const spec of world.keys) {
    let id: string
    if (spec.madeBy === 'onboarding') {
      id = ownerKeys.body.keys[0].key_id
      headers.set(spec.name, tenant.headers)
    } else {
      const { name, scopes, spender, team } = spec
      const response =
        spec.madeBy === 'operator'
          ? await service.post(
              `/api/admin/tenants/${tenant.tenantId}/keys`,
              { name, scopes },
              { 'x-admin-key': service.service.adminKey },
            )
          : await service.post(
              '/api/keys',
              { name, scopes, ...(spender && { spender }), ...(team && { team }) },
              tenant.headers,
            )
      if (response.status !== 201) throw new Error(`The key ${name} was not made: ${response.text}`)
      id = response.body.key_id
      headers.set(name, { 'x-api-key': response.body.api_key })
    }
    ids.set(spec.name, id)
    model.keys.set(id, {
      id,
      scopes: spec.scopes,
      spender: spec.spender ?? null,
      team: spec.team ?? null,
      madeBy: spec.madeBy === 'owner' ? ids.get('owner')! : null,
    })
  }

  const ruleBody = (spec: RuleSpec): [string, Record<string, unknown>] => {
    switch (spec.make) {
      case 'policy': {
        const { type, id } = spec.identity
        const identity =
          type === 'tenant'
            ? { identity_type: 'tenant' }
            : type === 'agent'
              ? { identity_type: 'agent', agent_id: id }
              : type === 'key'
                ? { identity_type: 'api_key', api_key: headers.get(id!)!['x-api-key'] }
                : { identity_type: type, identity_id: id }
        return [
          '/api/policies',
          {
            name: spec.name,
            mode: spec.mode,
            ...identity,
            ...(spec.selectable && { selectable: true }),
            constraints: spec.constraints,
            ...(spec.rules.length > 0 && { rules: spec.rules }),
          },
        ]
      }
      case 'budget': {
        const { type, id } = spec.scope
        return [
          '/api/budgets',
          {
            budget_id: spec.name,
            scope: { type, ...(id !== undefined && { id: type === 'key' || type === 'mandate' ? ids.get(id) : id }) },
            window: spec.window,
            limit_usdc: spec.limit,
            ...(spec.on_breach && { on_breach: spec.on_breach }),
            ...(spec.applies_to && { applies_to: spec.applies_to }),
            ...(spec.parent && { parent_id: spec.parent }),
          },
        ]
      }
      case 'mandate': {
        const iso = (inMs: number) => new Date(now() + inMs).toISOString()
        const { amount, payees, budget, recurrence, execution } = spec
        return [
          '/api/mandates',
          {
            name: spec.name,
            ...(spec.agent_id && { agent_id: spec.agent_id }),
            ...(spec.holder && { holder_key_id: ids.get(spec.holder) }),
            constraints: [
              ...(amount ? [{ type: 'payment.amount_range', currency: 'USDC', ...amount }] : []),
              ...(payees ? [{ type: 'payment.allowed_payees', allowed: payees }] : []),
              ...(budget !== undefined ? [{ type: 'payment.budget', currency: 'USDC', max: budget }] : []),
              ...(recurrence ? [{ type: 'payment.agent_recurrence', ...recurrence }] : []),
              ...(execution
                ? [
                    {
                      type: 'payment.execution_date',
                      ...(execution.not_before_ms && { not_before: iso(execution.not_before_ms) }),
                      ...(execution.not_after_ms && { not_after: iso(execution.not_after_ms) }),
                    },
                  ]
                : []),
            ],
            ...(spec.starts_in_ms && { starts_at: iso(spec.starts_in_ms) }),
            ...(spec.expires_in_ms && { expires_at: iso(spec.expires_in_ms) }),
          },
        ]
      }
      case 'default':
        return [`/api/rh/policies/${spec.instrument}`, { constraints: spec.constraints }]
      case 'freeze':
        return ['/api/control-tower', { action: 'freeze', agent_id: spec.agent_id, reason: 'world' }]
    }
  }

  /** Makes a rule in both; the service must take every rule that a world has. */
  async function makeRule(spec: RuleSpec): Promise<Disagreement | null> {
    // What a rule refers to may have been ended, or left out of a shortened world.
    if (spec.make === 'budget' && spec.parent !== undefined && !model.budgets.has(spec.parent)) return null
    if (spec.make === 'budget' && spec.scope.type === 'mandate' && !ids.has(spec.scope.id!)) return null
    const [path, body] = ruleBody(spec)
    const method = spec.make === 'default' ? 'PUT' : 'POST'
    const response = await service.call(method, path, body, headers.get('owner')!)
    if (response.status !== 200 && response.status !== 201)
      return { at: spec.name, expected: 'the rule is made', actual: `${response.status} ${response.text}` }
    switch (spec.make) {
      case 'policy': {
        ids.set(spec.name, response.body.id)
        const { type, id } = spec.identity
        const identity = type === 'key' ? { type, id: ids.get(id!)! } : spec.identity
        model.policies.set(response.body.id, {
          id: response.body.id,
          mode: spec.mode,
          identity,
          constraints: spec.constraints,
          rules: spec.rules,
          selectable: spec.selectable ?? false,
        })
        return null
      }
      case 'budget': {
        ids.set(spec.name, spec.name)
        const { type, id } = spec.scope
        const scope = type === 'key' || type === 'mandate' ? { type, id: ids.get(id!)! } : spec.scope
        model.budgets.set(spec.name, {
          id: spec.name,
          scope,
          window: spec.window,
          limitMicro: microOf(spec.limit),
          onBreach: spec.on_breach ?? 'block',
          appliesTo: spec.applies_to ?? ['runs', 'payments', 'spend'],
          parent: spec.parent ?? null,
        })
        return null
      }
      case 'mandate': {
        const id = response.body.mandate_id
        ids.set(spec.name, id)
        model.mandates.set(id, {
          id,
          agentId: spec.agent_id ?? null,
          holderKeyId: spec.holder ? ids.get(spec.holder)! : null,
          startsAt: now() + (spec.starts_in_ms ?? 0),
          expiresAt: now() + (spec.expires_in_ms ?? YEAR),
          revoked: false,
          amountMin: spec.amount?.min === undefined ? null : microOf(spec.amount.min),
          amountMax: spec.amount ? microOf(spec.amount.max) : null,
          payees: spec.payees ?? null,
          budgetMax: spec.budget === undefined ? null : microOf(spec.budget),
          recurrence: spec.recurrence
            ? { frequency: spec.recurrence.frequency, max: spec.recurrence.max_occurrences ?? null }
            : null,
          notBefore: spec.execution?.not_before_ms ? now() + spec.execution.not_before_ms : null,
          notAfter: spec.execution?.not_after_ms ? now() + spec.execution.not_after_ms : null,
        })
        return null
      }
      case 'default':
        model.tradeDefaults.set(spec.instrument, spec.constraints)
        return null
      case 'freeze':
        ids.set(spec.name, spec.agent_id)
        model.frozen.add(spec.agent_id)
        return null
    }
  }

  /** The spender of a token; null when it names only the lane of the run. */
  function tokenSpender(preauth: Payable): string | null {
    const spender = factsOf(preauth)?.spender ?? null
    return spender === preauth.agent_id ? null : spender
  }

  /** The facts of an action, by the table "Who spends". Null when the key is bound to another spender. */
  function factsOf(action: Payable): Facts | null {
    const key = model.keys.get(ids.get(action.key)!)!
    if (key.spender !== null && action.spender !== undefined && action.spender !== key.spender) return null
    const spender =
      action.spender ?? key.spender ?? (action.do === 'run' || action.do === 'loop' ? null : action.agent_id) ?? null
    const names = (...list: (string | null | undefined)[]) =>
      [...new Set(list.filter((name) => name != null))] as string[]
    const common = {
      keyId: key.id,
      spender,
      team: key.team,
      tags: action.tags ?? {},
      network: NETWORK,
      namedPolicy: action.do === 'trade' && action.policy !== undefined ? (ids.get(action.policy) ?? null) : null,
      mandateId: action.mandate === undefined ? null : (ids.get(action.mandate) ?? null),
    }
    switch (action.do) {
      case 'run':
      case 'loop': {
        const lane = action.agent_id ?? (action.do === 'loop' ? 'default' : routes[action.task]!.lane)
        return {
          ...common,
          kind: 'runs',
          lane,
          agentNames: names(lane, spender),
          permittingNames: names(lane, spender),
          merchantNames: ['countersign', payTo],
          namesGiven: false,
          payToKnown: true,
          hostKnown: true,
          session: action.session_id ?? null,
          amountMicro: PRICES[lane]![action.do],
          hasPreauth: action.preauth !== undefined,
          instrument: null,
        }
      }
      case 'preauth': {
        const { id, url, pay_to } = action.merchant
        const ours = id === 'countersign'
        return {
          ...common,
          kind: 'payments',
          lane: null,
          agentNames: names(action.agent_id, spender),
          permittingNames: names(ours && action.agent_id in PRICES ? action.agent_id : null, spender),
          merchantNames: names(id, url && new URL(url).host, ours ? payTo : pay_to),
          namesGiven: true,
          payToKnown: pay_to !== undefined || ours,
          hostKnown: pay_to !== undefined || url !== undefined || id.includes('.') || ours,
          session: undefined,
          amountMicro: microOf(action.amount),
          hasPreauth: false,
          instrument: null,
        }
      }
      case 'trade':
        return {
          ...common,
          kind: action.instrument === 'spend' ? 'spend' : 'trades',
          lane: null,
          agentNames: names(action.agent_id, spender),
          permittingNames: names(spender),
          merchantNames: action.instrument === 'spend' ? [action.merchant] : [CRYPTO_BROKER],
          namesGiven: false,
          payToKnown: true,
          hostKnown: true,
          session: undefined,
          amountMicro: microOf(action.amount),
          hasPreauth: false,
          instrument: {
            type: action.instrument,
            symbol: action.instrument === 'spend' ? action.merchant : 'BTC-USD',
          },
        }
    }
  }

  function bodyOf(action: Payable): [string, Record<string, unknown>] {
    const { spender, tags } = action
    const mandate_id = action.mandate === undefined ? undefined : ids.get(action.mandate)
    const fields = { ...(spender && { spender }), ...(tags && { tags }), ...(mandate_id && { mandate_id }) }
    switch (action.do) {
      case 'run':
      case 'loop': {
        const text = `${TASKS[action.task]} (${action.name})`
        return [
          `/api/${action.do}`,
          {
            ...(action.do === 'run' ? { task: text } : { input: text }),
            ...(action.agent_id && { agent_id: action.agent_id }),
            ...(action.session_id && { session_id: action.session_id }),
            ...(!action.x402 && { payment: { wallet_id: tenant.walletId } }),
            ...fields,
          },
        ]
      }
      case 'preauth':
        return [
          '/api/pre-auth',
          { agent_id: action.agent_id, merchant: action.merchant, amount_usdc: action.amount, ...fields },
        ]
      case 'trade':
        return [
          '/api/rh/run',
          {
            tenant_id: tenant.tenantId,
            instrument_type: action.instrument,
            symbol: action.instrument === 'spend' ? action.merchant : 'BTC-USD',
            side: 'buy',
            ...(action.instrument === 'spend'
              ? { quantity: 1, price_limit: action.amount }
              : { quantity: 1, notional_usdc: action.amount }),
            ...(action.agent_id && { agent_id: action.agent_id }),
            ...(action.policy !== undefined && { policy_id: ids.get(action.policy) }),
            ...fields,
          },
        ]
    }
  }

  async function send(action: Payable, body: Record<string, unknown>, client: Client = service): Promise<Answer> {
    const [path] = bodyOf(action)
    const isX402 = (action.do === 'run' || action.do === 'loop') && action.x402 === true
    const response = await (isX402 ? payByX402 : client.post)(path, body, headers.get(action.key)!)
    const { status } = response
    const outcomes: Record<string, Answer['outcome']> =
      action.do === 'preauth'
        ? { 201: response.body?.decision === 'review_required' ? 'review' : 'allowed', 422: 'blocked' }
        : action.do === 'trade'
          ? { 200: 'allowed', 202: 'review', 422: 'blocked' }
          : { 200: 'allowed', 429: response.body?.outcome === 'review_required' ? 'review' : 'blocked', 500: 'failed' }
    const outcome = outcomes[status] ?? 'other'
    return { outcome, mandateId: outcome === 'allowed' ? await usedMandate(action, response, client) : null, response }
  }

  let payer: Payer | undefined
  /** Signs what the 402 asks for and sends the request again; anything else is the answer. */
  async function payByX402(path: string, body: unknown, keyHeaders: Record<string, string>): Promise<Response> {
    const challenge = await service.post(path, body, keyHeaders)
    if (challenge.status !== 402) return challenge
    payer ??= await service.payer(50)
    const validBefore = BigInt(Math.floor(now() / 1000) + 300)
    const payment = await signPayment(payer, readChallenge(challenge.headers), { validBefore })
    return service.post(path, body, { ...keyHeaders, ...payment })
  }

  /** The mandate that an answer names, which its receipt must name too. */
  async function usedMandate(action: Payable, { body }: Response, client: Client): Promise<string | null> {
    const own = headers.get(action.key)!
    if (action.do === 'preauth') return body.mandate_id ?? null
    if (action.do === 'trade') return (await client.get(`/api/rh/runs/${body.run_id}`, own)).body.mandate_id ?? null
    const receipt = body.receipt ?? (await client.get(body.receipt_url, own)).body
    const named = receipt.governance.mandate_id ?? null
    return body.mandate_id === named ? named : `${body.mandate_id} in the answer, ${named} in the receipt`
  }

  /** The verdict of a run on the lane of its choice, or on a cheaper one where a budget asks for it. */
  function judgeRun(action: Payable, facts: Facts, options: Parameters<GovernanceModel['judge']>[2] = {}) {
    const verdict = model.judge(facts, now(), options)
    const isFixed = action.do !== 'run' || action.agent_id !== undefined || options.takesOver || options.overridden
    if (isFixed || !model.mayDowngrade(verdict)) return { facts, verdict, isDowngraded: false }
    for (const lane of routes[action.task]!.others) {
      const names = [...new Set([lane, ...(facts.spender === null ? [] : [facts.spender])])]
      const amountMicro = PRICES[lane]!.run
      const cheaper = { ...facts, lane, agentNames: names, permittingNames: names, amountMicro }
      if (amountMicro >= facts.amountMicro) continue
      const candidate = model.judge(cheaper, now(), options)
      if (candidate.outcome === 'allowed') return { facts: cheaper, verdict: candidate, isDowngraded: true }
    }
    return { facts, verdict, isDowngraded: false }
  }

  return { tenant, model, ids, headers, currentKeys, now, makeRule, factsOf, tokenSpender, bodyOf, send, judgeRun }
}

/** What a trade filled is spent, at most the amount that it held. */
export function filledMicro({ body }: Response, { amountMicro }: Facts): bigint {
  const filled = microOf(Math.abs(body.receipt.gross))
  return filled < amountMicro ? filled : amountMicro
}

const describeVerdict = (verdict: Verdict) =>
  `${verdict.outcome}${verdict.mandateId ? ` under ${verdict.mandateId}` : ''} ${JSON.stringify([...verdict.refusals, ...(verdict.outcome === 'review' ? verdict.reviews : [])])}`
const describeResponse = ({ status, body, text }: Response) =>
  body && typeof body === 'object' && 'error' in body
    ? `${status} ${JSON.stringify({ error: body.error, code: body.code, outcome: body.outcome, field_required: body.field_required, decided_by: body.decided_by, message: body.message })}`
    : `${status} ${text.slice(0, 300)}`

/** What a refusal says must be one of the reasons that the model has. */
function compareReasons(verdict: Verdict, { response: { body } }: Answer): string | null {
  const reasons = verdict.outcome === 'review' ? verdict.reviews : verdict.refusals
  if (body.checks !== undefined) {
    // A refused trade lists its checks and names no single rule.
    const fields = reasons.map(({ field }) => field)
    return fields.includes(body.field_required) ? null : 'another field is missing, or none'
  }
  const { policy_id, budget_id, mandate_id } = body.decided_by ?? {}
  const id = policy_id ?? budget_id ?? mandate_id
  const candidates = reasons.filter((reason) =>
    id == null ? reason.by === 'freeze' || reason.by === 'mandate' : reason.id === id,
  )
  if (candidates.length === 0) return 'decided_by is none of the reasons of the model'
  if (!candidates.some((reason) => reason.error === body.error)) return `the error is not ${candidates[0]!.error}`
  const missing = body.code === 'field_required' ? body.field_required : undefined
  if (!candidates.some(({ field }) => field === missing)) return 'another field is missing, or none'
  return null
}

/** Sends the actions of a world one after the other to the service and to the model. */
export async function playWorld(
  service: Service,
  world: World,
  routes: readonly TaskRoute[],
  payTo: string,
): Promise<{ disagreement: Disagreement | null; outcomes: string[] }> {
  service.clock.set(world.start)
  const outcomes: string[] = []
  const game = await openTenant(service, world, routes, payTo)
  for (const spec of world.rules) {
    const disagreement = await game.makeRule(spec)
    if (disagreement) return { disagreement, outcomes }
  }
  const traces = new Map<string, Trace>()
  const votes: Votes = new Map()
  for (const action of world.actions) {
    const disagreement = await playAction(service, game, traces, votes, action, outcomes)
    if (disagreement) return { disagreement, outcomes }
  }
  return { disagreement: await compareCounts(service, game), outcomes }
}

/** What the approvals of a payment that waits are counted under. */
const waitingId = ({ answer: { response } }: Trace): string => response.body.approval_id ?? response.body.run_id

const latest = (traces: Map<string, Trace>, matches: (trace: Trace) => boolean) =>
  [...traces.values()].findLast(matches)

/** The approvals that something has, by the id of its approval or trade, and how many it needs. */
type Votes = Map<string, { required: number; voters: string[] }>

type Game = Awaited<ReturnType<typeof openTenant>>

/** Judges and sends one payment, compares, and counts it in the model. */
async function pay(
  service: Service,
  game: Game,
  action: Payable,
  requestFacts: Facts,
  body: Record<string, unknown>,
  options: Parameters<GovernanceModel['judge']>[2] = {},
): Promise<{ trace: Trace; disagreement: Disagreement | null }> {
  const { model, now } = game
  const { facts, verdict, isDowngraded } = game.judgeRun(action, requestFacts, options)
  const fails = 'fails' in action && action.fails === true && !options.approved
  service.lane.failing = fails
  const answer = await game.send(action, body)
  service.lane.failing = false
  const trace: Trace = { action, facts, body, at: now(), verdict, answer, isDowngraded }
  const expected = verdict.outcome === 'allowed' && fails ? 'failed' : verdict.outcome
  const differ = (why = '') => ({
    trace,
    disagreement: {
      at: action.name,
      expected: `${expected === 'failed' ? 'failed; ' : ''}${describeVerdict(verdict)}`,
      actual: `${why && `${why}: `}${describeResponse(answer.response)}`,
    },
  })
  // An approval is for the lane that was asked for, so a run that would use another one is refused and stays unpaid.
  if (isDowngraded && options.approved)
    return answer.response.status === 409 ? { trace, disagreement: null } : differ('409 for another lane')
  if (answer.outcome !== expected) return differ()
  if (isDowngraded && answer.outcome === 'allowed' && answer.response.body.agent_id !== facts.lane)
    return differ('another lane ran')
  if (
    answer.outcome === 'blocked' ||
    (answer.outcome === 'review' && action.do !== 'preauth' && action.do !== 'trade')
  ) {
    const difference = compareReasons(verdict, answer)
    if (difference) return differ(difference)
  }
  // A run that fails closes the pre-authorisation whose token it brought.
  if (answer.outcome === 'failed' && options.takesOver) options.takesOver.state = 'released'
  if (answer.outcome === 'allowed') {
    if (answer.mandateId !== verdict.mandateId) return differ('another mandate was used')
    if (options.takesOver) {
      model.takeOver(options.takesOver, facts, verdict, now())
    } else {
      const state = action.do === 'preauth' ? 'reserved' : 'spent'
      trace.payment = model.count(facts, verdict, now(), state)
      if (action.do === 'trade') trace.payment.amountMicro = filledMicro(answer.response, facts)
    }
  }
  if (action.do === 'preauth') {
    trace.preauthId = answer.response.body.preauth_id
    trace.token = answer.response.body.token ?? undefined
  }
  return { trace, disagreement: null }
}

async function playAction(
  service: Service,
  game: Game,
  traces: Map<string, Trace>,
  votes: Votes,
  action: Action,
  outcomes: string[],
): Promise<Disagreement | null> {
  const { model, ids, headers, currentKeys, now } = game
  const differ = (expected: string, response: Response): Disagreement => ({
    at: action.name,
    expected,
    actual: describeResponse(response),
  })
  switch (action.do) {
    case 'wait':
      service.clock.advance(action.ms)
      return null

    case 'make':
      return game.makeRule(action.rule)

    case 'run':
    case 'loop':
    case 'preauth':
    case 'trade': {
      if (action.mandate !== undefined && !ids.has(action.mandate)) return null
      const ownFacts = game.factsOf(action)
      const [, body] = game.bodyOf(action)
      if (!ownFacts) {
        const { response } = await game.send(action, body)
        outcomes.push(`${action.do}:403`)
        return response.status === 403 ? null : differ('403: the key is bound to another spender', response)
      }
      let facts = ownFacts
      const source = action.do === 'run' || action.do === 'loop' ? action.preauth : undefined
      const preauth = source === undefined ? undefined : traces.get(source)
      if (source !== undefined && !preauth?.token) return null
      if (preauth) {
        const reservation = preauth.payment!
        const tokenSpender = game.tokenSpender(preauth.action)
        // Whoever pays with the token pays as its spender.
        if (tokenSpender !== null)
          facts = {
            ...ownFacts,
            spender: tokenSpender,
            agentNames: [...new Set([...ownFacts.agentNames, tokenSpender])],
            permittingNames: [...new Set([...ownFacts.permittingNames, tokenSpender])],
          }
        const usable =
          reservation.state === 'reserved' &&
          now() < preauth.at + PREAUTH_LIFETIME &&
          facts.amountMicro <= reservation.amountMicro
        const tokenBody = { ...body, preauth_token: preauth.token }
        if (!usable) {
          const { response } = await game.send(action, tokenBody)
          outcomes.push(`${action.do}:token-refused`)
          return response.status >= 400 && response.status < 500
            ? null
            : differ('refused: the token is used, expired or for less', response)
        }
        if (tokenSpender !== null && ownFacts.spender !== null && ownFacts.spender !== tokenSpender) {
          const { response } = await game.send(action, tokenBody)
          outcomes.push(`${action.do}:token-403`)
          return response.status === 403 ? null : differ("403: the token is another spender's", response)
        }
        const { trace, disagreement } = await pay(service, game, action, facts, tokenBody, { takesOver: reservation })
        outcomes.push(`${action.do}-token:${trace.answer.outcome}`)
        return disagreement
      }
      const named = facts.namedPolicy === null ? undefined : model.policies.get(facts.namedPolicy)
      if (action.do === 'trade' && action.policy !== undefined) {
        if (!named) return null
        const naming = model.naming(named, facts)
        if (naming !== 'may') {
          const { response } = await game.send(action, body)
          outcomes.push(`trade-named:${naming}`)
          return response.status === naming ? null : differ(`${naming}: this policy cannot be named`, response)
        }
      }
      const { trace, disagreement } = await pay(service, game, action, facts, body)
      if (trace.isDowngraded) outcomes.push(`downgraded:${trace.answer.outcome}`)
      if (named) outcomes.push(`trade-named:${trace.answer.outcome}`)
      if ('x402' in action) outcomes.push(`x402:${trace.answer.outcome}`)
      outcomes.push(
        `${action.do}:${trace.answer.outcome}${trace.answer.response.body?.code === 'field_required' ? ':field_required' : ''}`,
      )
      traces.set(action.name, trace)
      if (trace.answer.outcome === 'review') {
        const id = waitingId(trace)
        if (!votes.has(id)) votes.set(id, { required: trace.verdict.approvalsRequired, voters: [] })
      }
      return disagreement
    }

    case 'close': {
      const preauth =
        action.preauth === '*'
          ? latest(traces, ({ payment, preauthId }) => preauthId !== undefined && payment?.state === 'reserved')
          : traces.get(action.preauth)
      if (!preauth?.payment || !preauth.preauthId) return null
      const { payment } = preauth
      const charged = action.outcome === 'settled' ? (payment.amountMicro * BigInt(action.share * 2)) / 2n : 0n
      const wasOpen = payment.state === 'reserved'
      const response = await service.post(
        '/api/pre-auth/close',
        {
          preauth_id: preauth.preauthId,
          outcome: action.outcome,
          ...(action.outcome === 'settled' && { actual_amount: charged.toString() }),
        },
        headers.get(preauth.action.key)!,
      )
      outcomes.push(`close:${response.status}`)
      if (!wasOpen) return response.status === 409 ? null : differ('409: it is closed', response)
      if (response.status !== 200) return differ('200: it closes', response)
      payment.state = action.outcome === 'settled' ? 'spent' : 'released'
      if (action.outcome === 'settled') payment.amountMicro = charged
      return null
    }

    case 'approve': {
      const trace = latest(
        traces,
        ({ answer, action: { name } }) => answer.outcome === 'review' && (action.of === '*' || name === action.of),
      )
      if (!trace) return null
      const isTrade = trace.action.do === 'trade'
      const approvalId = trace.answer.response.body.approval_id
      if (now() >= trace.at + (isTrade ? TRADE_APPROVAL_WINDOW : APPROVAL_WINDOW)) return null
      const decider = ids.get(action.key)!
      const may = model.mayDecide(decider, trace.facts.keyId, 'control')
      const response = isTrade
        ? await service.post('/api/rh/approve', { run_id: trace.answer.response.body.run_id }, headers.get(action.key)!)
        : await service.post(
            '/api/approvals',
            { approval_id: approvalId, decision: 'approve' },
            headers.get(action.key)!,
          )
      outcomes.push(`approve:${response.status}`)
      if (may === 'no') return response.status === 403 ? null : differ('403: this key may not approve', response)
      const given = votes.get(waitingId(trace))!
      if (given.voters.some((voter) => model.sameIdentity(voter, decider)))
        return response.status === 409 ? null : differ('409: this identity has approved it', response)
      const count = given.voters.length + 1
      if (isTrade) {
        const verdict = model.judge(trace.facts, now(), { approved: count, waiting: true })
        if (verdict.outcome === 'blocked')
          return response.status === 409 ? null : differ(`409: ${describeVerdict(verdict)}`, response)
        given.required = Math.max(given.required, verdict.approvalsRequired)
        given.voters.push(decider)
        if (response.status !== 200) return differ('200: approved', response)
        const expected = count < given.required ? 'pending_approval' : 'approved'
        outcomes.push(`approve-trade:${expected}`)
        if (response.body.status !== expected) return differ(expected, response)
        if (expected === 'pending_approval') return null
        traces.delete(trace.action.name)
        // No worker executes it here, so what it holds stays reserved.
        model.count(trace.facts, verdict, now(), 'reserved')
        return null
      }
      if (trace.action.do === 'preauth') {
        const verdict = model.judge(trace.facts, now(), { approved: given.required })
        const read = await service.get(`/api/pre-auth/${trace.preauthId}`, headers.get(trace.action.key)!)
        if (verdict.outcome === 'allowed' && count < given.required) {
          given.voters.push(decider)
          outcomes.push('approve-preauth:pending')
          return response.status === 200 && !read.body.token
            ? null
            : differ('200: another approval is needed', response)
        }
        traces.delete(trace.action.name)
        if (verdict.outcome !== 'allowed')
          return read.body.token ? differ(`no token: ${describeVerdict(verdict)}`, read) : null
        if (response.status !== 200) return differ('200: approved', response)
        if (!read.body.token) return differ('a token after the approval', read)
        const payment = model.count(trace.facts, verdict, now(), 'reserved')
        traces.set(trace.action.name, {
          ...trace,
          at: now(),
          verdict,
          answer: { ...trace.answer, outcome: 'allowed' },
          payment,
          token: read.body.token,
        })
        return null
      }
      if (response.status !== 200) return differ('200: approved', response)
      given.voters.push(decider)
      const status = count < given.required ? 'pending' : 'approved'
      if (response.body.approval.status !== status) return differ(status, response)
      outcomes.push(`approve-run:${status}`)
      if (status === 'pending') return null
      traces.delete(trace.action.name)
      const body = { ...trace.body, approval_id: approvalId }
      const { disagreement, trace: again } = await pay(service, game, trace.action, trace.facts, body, {
        approved: count,
      })
      outcomes.push(`approved:${again.answer.outcome}`)
      return disagreement
    }

    case 'override': {
      const trace = latest(
        traces,
        ({ answer, action: { name } }) => answer.outcome === 'blocked' && (action.of === '*' || name === action.of),
      )
      if (!trace || trace.action.do === 'trade') return null
      if (trace.verdict.refusals.some(({ by, field }) => by !== 'policy' || field !== undefined)) return null
      const may = model.mayDecide(ids.get(action.key)!, trace.facts.keyId, 'mandate')
      const { facts } = trace
      const response = await service.post(
        '/api/authorize',
        {
          agent_id: trace.action.do === 'preauth' ? trace.action.agent_id : facts.lane,
          amount_usdc: usdcOf(facts.amountMicro),
          merchant: trace.action.do === 'preauth' ? trace.action.merchant.id : 'countersign',
          reason: 'world',
          denied_decision_id: trace.answer.response.body.decision_id,
        },
        headers.get(action.key)!,
      )
      outcomes.push(`override:${response.status}`)
      if (may === 'no') return response.status === 403 ? null : differ('403: this key may not override', response)
      if (response.status !== 200) return differ('200: an override is issued', response)
      traces.delete(trace.action.name)
      const body = { ...trace.body, override_token: response.body.token }
      const { disagreement, trace: again } = await pay(service, game, trace.action, facts, body, { overridden: true })
      outcomes.push(`overridden:${again.answer.outcome}`)
      if (again.payment && trace.action.do === 'preauth') traces.set(trace.action.name, again)
      return disagreement
    }

    case 'rotate': {
      // The key before the last rotation is still valid, and then a second one is refused.
      if (currentKeys.has(action.key)) return null
      const keyId = ids.get(action.key)!
      const response = await service.post(`/api/keys/${keyId}/rotate`, {}, headers.get('owner')!)
      if (response.status !== 200 && response.status !== 201) return differ('the key is rotated', response)
      // Rules and identity follow the key, so its first id stays its name.
      currentKeys.set(action.key, response.body.key_id)
      headers.set(action.key, { 'x-api-key': response.body.api_key })
      return null
    }

    case 'end': {
      const id = ids.get(action.rule)
      if (id === undefined) return null
      const owner = headers.get('owner')!
      if (model.policies.delete(id)) {
        const response = await service.call('DELETE', `/api/policies/${id}`, undefined, owner)
        return response.status < 300 ? null : differ('the policy is deleted', response)
      }
      if (model.mandates.has(id)) {
        const mandate = model.mandates.get(id)!
        const response = await service.post(`/api/mandates/${id}/revoke`, {}, owner)
        if (response.status >= 300 && !mandate.revoked) return differ('the mandate is revoked', response)
        mandate.revoked = true
        return null
      }
      if (model.budgets.has(id)) {
        const hasChildren = [...model.budgets.values()].some(({ parent }) => parent === id)
        const response = await service.call('DELETE', `/api/budgets/${id}`, undefined, owner)
        if (hasChildren) return response.status >= 400 ? null : differ('refused: it has children', response)
        model.budgets.delete(id)
        return response.status < 300 ? null : differ('the budget is deleted', response)
      }
      if (model.frozen.delete(id)) {
        const response = await service.post('/api/control-tower', { action: 'unfreeze', agent_id: id }, owner)
        return response.status === 200 ? null : differ('200: unfrozen', response)
      }
      return null
    }

    case 'limit': {
      const budget = model.budgets.get(action.budget)
      if (!budget) return null
      const { spent, reserved } =
        budget.window === 'run' ? { spent: 0n, reserved: 0n } : model.budgetUsage(budget, now())
      const response = await service.post(
        '/api/budgets',
        { budget_id: action.budget, limit_usdc: action.limit },
        headers.get('owner')!,
      )
      if (spent + reserved > microOf(action.limit))
        return response.status === 400 ? null : differ('400: the limit is below what is spent and reserved', response)
      budget.limitMicro = microOf(action.limit)
      return response.status === 200 ? null : differ('200: the limit is changed', response)
    }
  }
}

/** Spent and reserved of each budget, what remains of each mandate, and all that was spent. */
export async function compareCounts(service: Client, { model, now, headers }: Game): Promise<Disagreement | null> {
  const owner = headers.get('owner')!
  const differ = (at: string, expected: unknown, actual: unknown): Disagreement | null =>
    JSON.stringify(expected) === JSON.stringify(actual)
      ? null
      : { at, expected: JSON.stringify(expected), actual: JSON.stringify(actual) }

  if (model.budgets.size > 0) {
    const { body } = await service.get('/api/budgets', owner)
    for (const budget of model.budgets.values()) {
      if (budget.window === 'run') continue
      const { spent, reserved } = model.budgetUsage(budget, now())
      const shown = body.budgets.find(({ budget_id }: { budget_id: string }) => budget_id === budget.id)
      const disagreement = differ(
        `budget ${budget.id}`,
        { spent: usdcOf(spent), reserved: usdcOf(reserved) },
        { spent: shown?.spent_usdc, reserved: shown?.reserved_usdc },
      )
      if (disagreement) return disagreement
    }
  }
  for (const mandate of model.mandates.values()) {
    if (mandate.budgetMax === null) continue
    const { spent, reserved } = model.mandateUsage(mandate.id)
    const { body } = await service.get(`/api/mandates/${mandate.id}/remaining`, owner)
    const disagreement = differ(
      `mandate ${mandate.id}`,
      {
        spent: spent.toString(),
        reserved: reserved.toString(),
        remaining: (mandate.budgetMax - spent - reserved).toString(),
      },
      { spent: body.spent, reserved: body.reserved, remaining: body.remaining },
    )
    if (disagreement) return disagreement
  }
  const { amount, notional } = model.spent()
  const year = new Date(now()).getUTCFullYear()
  const meter = await service.get(`/api/spend?from=${year}-01-01&to=${year + 1}-01-01`, owner)
  return differ(
    'spend',
    { amount: amount.toString(), notional: notional.toString() },
    { amount: meter.body.totals?.amount, notional: meter.body.totals?.notional },
  )
}

/** Leaves out actions, rules and keys as long as the world still disagrees, so that the report is short. */
export async function shortenWorld(play: (world: World) => Promise<Disagreement | null>, world: World, attempts = 60) {
  let shortest = world
  for (const part of ['actions', 'rules', 'actions'] as const)
    for (let index = shortest[part].length - 1; index >= 0 && attempts > 0; index -= 1) {
      const candidate = { ...shortest, [part]: shortest[part].filter((_, other) => other !== index) } as World
      attempts -= 1
      const stillDiffers = await play(candidate).catch(() => null)
      if (stillDiffers) shortest = candidate
    }
  const disagreement = await play(shortest)
  return { world: shortest, disagreement }
}
