import { createHash } from 'node:crypto'
import type { Random } from './random.ts'
import { email, UPSTREAM_BODY, unique, type World } from './world.ts'

/** What a successful request of an operation consists of, before it is mutated. */
export type Draft = {
  params?: Record<string, string>
  query?: Record<string, string>
  /** In addition to the operation's credential; an empty credential header removes it. */
  headers?: Record<string, string>
  body?: unknown
}

export type Recipe = (world: World, random: Random) => Draft | Promise<Draft>

const POLL_MS = 200
const POLLS = 150

/** Repeats a read until it yields a value: deliveries, log places and trades come after the request that caused them. */
async function until<T>(name: string, read: () => Promise<T | undefined>): Promise<T> {
  for (let poll = 0; poll < POLLS; poll += 1) {
    const value = await read()
    if (value !== undefined) return value
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
  throw new Error(`${name} did not happen within ${(POLLS * POLL_MS) / 1000} s`)
}

const post = (world: World, path: string, body: unknown = {}) => world.make('POST', path, body, world.caller.headers)
const get = (world: World, path: string) => world.make('GET', path, undefined, world.caller.headers)

const walletRun = (world: World) => ({
  task: 'Revenue was 3, 4 and 5. What stands out?',
  agent_id: 'analyst-v1',
  session_id: 'session-1',
  payment: { wallet_id: world.caller.walletId },
})

/** A parser reads it, in a thread, which takes longer than the next request. */
const LONG_WORK = {
  task: `Find the defects.\n${'function f(a) { for (let i = 0; i <= a.length; i++) g(a[i]) }\n'.repeat(500)}`,
  agent_id: 'coder-v1',
}

/** A run that was cancelled in time; to cancel it again gets the same answer. */
const cancelledRun = (world: World) =>
  until('a run is cancelled before it is done', async () => {
    const headers = { ...world.caller.headers, prefer: 'respond-async' }
    const { run_id } = await world.make('POST', '/api/run', { ...walletRun(world), ...LONG_WORK }, headers)
    const cancelled = await post(world, `/api/runs/${run_id}/cancel`).catch(() => undefined)
    return cancelled === undefined ? undefined : (run_id as string)
  })

const onWallet = (world: World): Draft => ({ params: { id: world.caller.walletId } })

const escrowOf = (world: World) =>
  post(world, `/api/wallets/${world.caller.walletId}/escrow`, { amount: '1000', to_wallet_id: world.victim.walletId })

const withEscrow =
  (body: (world: World) => unknown, toOther = true): Recipe =>
  async (world) => {
    const escrow = toOther
      ? await escrowOf(world)
      : await post(world, `/api/wallets/${world.caller.walletId}/escrow`, { amount: '1000' })
    return { params: { id: escrow.escrow_id }, body: body(world) }
  }

const webhookOf = (world: World) =>
  post(world, '/api/webhooks', { url: `${world.surroundings.url}/hook`, events: ['*'] })

/** A delivery that has ended. */
async function deliveryOf(world: World): Promise<{ id: string; delivery_id: string }> {
  const { id } = await webhookOf(world)
  await post(world, `/api/webhooks/${id}/test`)
  const delivery_id = await until('a delivery', async () => {
    const { deliveries } = await get(world, `/api/webhooks/${id}/deliveries`)
    const ended = deliveries.find(({ state }: { state: string }) => state !== 'pending')
    return ended?.id ?? ended?.delivery_id
  })
  return { id, delivery_id }
}

const withWebhook =
  (body?: unknown): Recipe =>
  async (world) => ({ params: { id: (await webhookOf(world)).id }, ...(body !== undefined && { body }) })

/** A tenant may have only so many channels, and the fuzzer makes more. */
async function makeRoomForChannel(world: World) {
  const { channels } = await get(world, '/api/approval-channels')
  if (channels.length > 10)
    await world.make('DELETE', `/api/approval-channels/${channels.at(-1).id}`, undefined, world.caller.headers)
}

const withChannel =
  (body?: unknown): Recipe =>
  async (world) => {
    await makeRoomForChannel(world)
    const channel = { type: 'webhook', name: 'Approvers', url: `${world.surroundings.url}/hook` }
    const { id } = await post(world, '/api/approval-channels', channel)
    return { params: { id }, ...(body !== undefined && { body }) }
  }

const policyBody = () => ({
  name: 'A policy of one agent',
  identity_type: 'agent',
  agent_id: unique('agent'),
  mode: 'shadow',
  rules: [{ field: 'amount_usdc', op: 'gt', value: 5, effect: 'deny', reason: 'too much' }],
  constraints: { max_per_run_usdc: 1, denied_merchants: ['casino'] },
})

const withPolicy =
  (body?: unknown): Recipe =>
  async (world) => ({
    params: { id: (await post(world, '/api/policies', policyBody())).id },
    ...(body !== undefined && { body }),
  })

const mandateOf = (world: World) =>
  post(world, '/api/mandates', {
    name: 'Groceries',
    agent_id: 'buyer',
    constraints: [{ type: 'payment.budget', currency: 'USDC', max: '600000' }],
  })

const withMandate =
  (body?: unknown): Recipe =>
  async (world) => ({ params: { id: (await mandateOf(world)).mandate_id }, ...(body !== undefined && { body }) })

const preauthBody = () => ({
  agent_id: 'buyer',
  merchant: { id: 'shop', url: 'https://shop.example' },
  amount_usdc: 0.02,
  purpose: 'Paper',
  ttl_seconds: 300,
})

/** An approval that waits: a policy asks for one above a price, for one agent's payments only. */
async function approvalOf(world: World): Promise<{ approval_id: string }> {
  const agent = unique('reviewed')
  await post(world, '/api/policies', {
    identity_type: 'agent',
    agent_id: agent,
    constraints: { require_approval_above_usdc: 0.001 },
  })
  const { body, text } = await world.call(
    'POST',
    '/api/pre-auth',
    { ...preauthBody(), agent_id: agent },
    world.caller.headers,
  )
  if (!body?.approval_id) throw new Error(`no approval was asked for: ${text.slice(0, 300)}`)
  return body
}

const authorizeBody = (agent_id: string) => ({
  agent_id,
  amount_usdc: 0.5,
  merchant: 'shop',
  reason: 'Agreed by phone',
  expires_in_seconds: 600,
})

const tradeBody = (world: World, quantity: number) => ({
  tenant_id: world.caller.tenantId,
  symbol: 'BTC-USD',
  agent_id: 'trader',
  instrument_type: 'crypto',
  side: 'buy',
  quantity,
  client_order_id: unique('order'),
})

/** A perpetual always asks a person, so its run waits. */
const waitingTradeBody = (world: World) => ({
  tenant_id: world.caller.tenantId,
  symbol: 'BTC-PERP',
  agent_id: 'trader',
  instrument_type: 'perp',
  side: 'long',
  quantity: 0.01,
  leverage: 2,
  client_order_id: unique('order'),
})

const receiptOf = async (world: World) => {
  const run = await post(world, '/api/run', walletRun(world))
  await until('a receipt in the log', async () =>
    (await world.call('GET', `/api/receipts/${run.receipt.receipt_id}/proof`)).status === 200 ? true : undefined,
  )
  return run
}

const attestationOf = async (world: World) => (await world.call('GET', '/api/basis/v1/attestation/TSLAx')).body

const tenantOf = (world: World) =>
  world.make('POST', '/api/admin/tenants', { org_name: 'Another', email: email() }, world.admin)

const keyOf = async (world: World) => {
  const { tenant_id } = await tenantOf(world)
  return world.make('POST', `/api/admin/tenants/${tenant_id}/keys`, { scopes: ['read', 'run'] }, world.admin)
}

/** A tenant of its own, so that its keys and settings may change. */
const ownerOf = async (world: World) => {
  const { api_key, key_id } = await tenantOf(world)
  return { headers: { 'x-api-key': api_key as string }, key_id }
}

const withdrawalOf = async (world: World) => {
  const to = world.payer.address
  return world.make('POST', `/api/admin/wallets/${world.caller.walletId}/withdraw`, { to, amount: '1000' }, world.admin)
}

const laneBody = () => ({
  agent_id: unique('lane'),
  display_name: 'Painter',
  category: 'art',
  base_price_usdc: 0.01,
})

const memoryOf = (world: World) => post(world, '/api/memory', { content: 'A note', session_id: unique('session') })

const sessionOf = async (world: World) => {
  const { headers, body } = await world.call('POST', '/api/session', { api_key: world.caller.apiKey })
  return { cookie: headers.get('set-cookie')!.split(';')[0]!, 'x-csrf-token': body.csrf_token as string }
}

const nothing: Recipe = () => ({})
const list: Recipe = () => ({ query: { limit: '3' } })
const symbol: Recipe = () => ({ params: { symbol: 'TSLAx' } })

/** One recipe for each operation of openapi.json; the fuzzer stops when one is missing. */
export const recipes: Record<string, Recipe> = {
  getHealth: nothing,
  getEnvCheck: nothing,
  getCapabilities: nothing,
  getPricing: nothing,
  getX402Discovery: nothing,
  getAgentCard: nothing,
  listDiscoveryResources: nothing,
  getLlmsText: nothing,
  getLlmsFullText: nothing,
  getRobotsText: nothing,
  getSecurityText: nothing,
  listProviders: list,
  listAgents: nothing,
  listLanes: nothing,
  manageLanes: nothing,
  createLane: () => ({ body: laneBody() }),
  getLane: () => ({ params: { agent_id: 'coder-v1' } }),
  updateLane: async (world) => {
    const lane = laneBody()
    await world.make('POST', '/api/lane', lane, world.admin)
    return { params: { agent_id: lane.agent_id }, body: { display_name: 'A painter', base_price_usdc: 0.02 } }
  },
  describeOnboarding: nothing,
  onboard: () => ({ body: { org_name: 'A new tenant', email: email(), use_case: 'Trying it out' } }),
  getMe: nothing,
  getMyPlan: nothing,
  openSession: (world) => ({ body: { api_key: world.caller.apiKey } }),
  getSession: async (world) => ({ headers: { ...(await sessionOf(world)), 'x-api-key': '' } }),
  endSession: async (world) => ({ headers: { ...(await sessionOf(world)), 'x-api-key': '' } }),
  createTenant: () => ({ body: { org_name: 'Another', email: email(), plan: 'team' } }),
  listTenants: list,
  getTenant: (world) => ({ params: { id: world.caller.tenantId } }),
  updateTenant: async (world) => ({
    params: { id: (await tenantOf(world)).tenant_id },
    body: { plan: 'team', billing_customer_id: unique('cus').replace('-', '_') },
  }),
  createKey: async (world) => ({
    params: { id: (await tenantOf(world)).tenant_id },
    body: { name: 'Second', scopes: ['read', 'control'] },
  }),
  listKeys: (world) => ({ params: { id: world.caller.tenantId }, query: { limit: '3' } }),
  revokeKey: async (world) => ({ params: { key_id: (await keyOf(world)).key_id } }),
  rotateKey: async (world) => ({ params: { key_id: (await keyOf(world)).key_id }, body: { overlap_seconds: 60 } }),
  createOwnKey: async (world) => ({
    headers: (await ownerOf(world)).headers,
    body: { name: 'Agent', scopes: ['read', 'run'], spender: 'fleet-7', team: 'maps' },
  }),
  listOwnKeys: list,
  getOwnKey: async (world) => {
    const { headers, key_id } = await ownerOf(world)
    return { headers, params: { key_id } }
  },
  rotateOwnKey: async (world) => {
    const { headers, key_id } = await ownerOf(world)
    return { headers, params: { key_id }, body: { overlap_seconds: 60 } }
  },
  revokeOwnKey: async (world) => {
    const { headers, key_id } = await ownerOf(world)
    return { headers, params: { key_id } }
  },
  getSettings: nothing,
  changeSettings: async (world) => ({
    headers: (await ownerOf(world)).headers,
    body: { self_approval: 'never' },
  }),
  getBillingPlan: (world) => ({ headers: { 'x-tenant-id': world.caller.tenantId } }),
  openBillingPortal: async (world) => {
    await world.make(
      'PATCH',
      `/api/admin/tenants/${world.caller.tenantId}`,
      { billing_customer_id: unique('cus').replace('-', '_') },
      world.admin,
    )
    return {}
  },
  run: async (world, random) => {
    const preference: Record<string, string> = random.chance(0.25) ? { prefer: 'respond-async' } : {}
    if (random.chance(0.5)) return { body: walletRun(world), headers: preference }
    const body = { task: 'Tell me a joke about clocks.', agent_id: 'comedian-v1' }
    return { body, headers: { ...(await world.paymentFor('/api/run', body, world.caller.headers)), ...preference } }
  },
  loop: (world) => ({
    body: {
      input: 'Say hello and greet everybody.',
      proposed_actions: [{ type: 'greet' }, { type: 'payment', merchant: 'shop', amount_usdc: 0.01 }],
      payment: { wallet_id: world.caller.walletId },
    },
  }),
  listLoops: list,
  listRuns: list,
  getRun: async (world) => ({ params: { id: (await post(world, '/api/run', walletRun(world))).run_id } }),
  streamRun: async (world) => ({ params: { id: (await post(world, '/api/run', walletRun(world))).run_id } }),
  cancelRun: async (world) => ({ params: { id: await cancelledRun(world) } }),
  settle: async (world) => {
    const body = { task: 'Tell me a joke about locks.', agent_id: 'comedian-v1' }
    const run = await world.pay('/api/run', body, world.caller.headers)
    return { body: { settlement_id: run.settlement.settlement_id } }
  },
  getSettlement: async (world) => {
    const body = { task: 'Tell me a joke about docks.', agent_id: 'comedian-v1' }
    const run = await world.pay('/api/run', body, world.caller.headers)
    return { params: { id: run.settlement.settlement_id } }
  },
  listSettlements: list,
  getLedger: list,
  listWallets: list,
  createWallet: () => ({ body: { name: 'Another wallet' } }),
  getWallet: onWallet,
  listEscrows: (world) => ({ ...onWallet(world), query: { limit: '3', state: 'held' } }),
  holdEscrow: (world) => ({
    ...onWallet(world),
    body: { amount: '1000', to_wallet_id: world.victim.walletId, memo: 'A report', expires_in_seconds: 3600 },
  }),
  listTenantEscrows: async (world) => {
    await escrowOf(world)
    return { query: { limit: '3', state: 'held', side: 'sent' } }
  },
  getEscrow: async (world) => ({ params: { id: (await escrowOf(world)).escrow_id } }),
  releaseEscrow: withEscrow(() => ({ reason: 'Delivered' })),
  refundEscrow: withEscrow(() => ({ reason: 'Not needed' }), false),
  disputeEscrow: withEscrow(() => ({ reason: 'Not delivered' })),
  resolveEscrow: async (world) => {
    const { escrow_id } = await escrowOf(world)
    await post(world, `/api/escrow/${escrow_id}/dispute`, { reason: 'Not delivered' })
    return { params: { id: escrow_id }, body: { outcome: 'refund', reason: 'Nothing came' } }
  },
  withdraw: (world) => ({ ...onWallet(world), body: { to: world.payer.address, amount: '1000' } }),
  listPayouts: list,
  getPayout: async (world) => ({ params: { id: (await withdrawalOf(world)).payout_id } }),
  confirmPayout: async (world) => {
    const { payout_id } = await withdrawalOf(world)
    const { payee } = world.surroundings
    await world.make('POST', '/api/dev/faucet', { address: payee.address, amount_usdc: 1 })
    const transfer = await world.make(
      'POST',
      '/facilitator/settle',
      await world.facilitatorBody(payee, world.payer.address, 1000n),
    )
    return { params: { id: payout_id }, body: { transaction: transfer.transaction } }
  },
  cancelPayout: async (world) => ({ params: { id: (await withdrawalOf(world)).payout_id }, body: {} }),
  topUpWallet: async (world) => {
    const body = { amount_usdc: 0.5 }
    const path = `/api/wallets/${world.caller.walletId}/topup`
    return { ...onWallet(world), body, headers: await world.paymentFor(path, body, world.caller.headers) }
  },
  getLogCheckpoint: nothing,
  getLogTile: async (world) => {
    await receiptOf(world)
    return { params: { tile: '0/000.p/1' } }
  },
  getLogConsistency: async (world) => {
    await receiptOf(world)
    return { query: { from: '1' } }
  },
  cosignLog: async (world) => {
    await receiptOf(world)
    const { text } = await world.call('GET', '/api/log/checkpoint')
    return { body: { checkpoint: world.cosign(text) } }
  },
  listReceipts: list,
  getReceipt: async (world) => ({ params: { id: (await receiptOf(world)).receipt.receipt_id } }),
  getReceiptProof: async (world) => ({ params: { id: (await receiptOf(world)).receipt.receipt_id } }),
  verifyReceipt: async (world) => ({ body: { receipt: (await receiptOf(world)).receipt } }),
  getJwks: nothing,
  getDidDocument: nothing,
  route: () => ({
    body: {
      task: 'Write a function that sorts numbers.',
      constraints: { priority: 'balanced', max_cost_usdc: 1 },
      policy: { policy_ids: [], mode: 'warn' },
    },
  }),
  routingIntel: () => ({ body: { task: 'Write a function that sorts numbers.' } }),
  routeIntent: () => ({ body: { intent: 'swap' } }),
  listAuditEvents: list,
  listWebhooks: list,
  createWebhook: (world) => ({ body: { url: `${world.surroundings.url}/hook`, events: ['run.completed'] } }),
  getWebhook: withWebhook(),
  updateWebhook: withWebhook({ is_active: false, events: ['*'] }),
  deleteWebhook: withWebhook(),
  rotateWebhookSecret: withWebhook({ overlap_seconds: 60 }),
  testWebhook: withWebhook({}),
  listWebhookDeliveries: async (world) => ({
    params: { id: (await webhookOf(world)).id },
    query: { limit: '3' },
  }),
  replayWebhookDelivery: async (world) => ({ params: await deliveryOf(world), body: {} }),
  getWebhookDelivery: async (world) => ({ params: await deliveryOf(world) }),
  listWaitingDeliveries: list,
  listWebhookEventTypes: nothing,
  listAlerts: list,
  createAlert: () => ({ body: { severity: 'info', type: 'note', message: 'A note', data: { a: [1, 2] } } }),
  readAlert: async (world) => {
    const alert = await post(world, '/api/predictive/alerts', { severity: 'info', type: 'note', message: 'A note' })
    return { body: { id: alert.id } }
  },
  getSpend: () => ({ query: { group_by: 'day,merchant', limit: '5', format: 'json' } }),
  getAnalytics: () => ({ query: { window: '24h' } }),
  getControlTower: nothing,
  streamChanges: nothing,
  listBudgetOutlooks: () => ({ query: { at_risk: 'true' } }),
  listSelfApproved: list,
  listSeenAgents: nothing,
  steerAgent: () => ({ body: { action: 'freeze', agent_id: unique('agent'), reason: 'Odd' } }),
  listPolicies: list,
  createPolicy: () => ({ body: policyBody() }),
  simulatePolicy: () => ({ body: { policy: { constraints: { max_per_run_usdc: 0.001 } } } }),
  getPolicy: withPolicy(),
  updatePolicy: withPolicy({ name: 'Renamed', mode: 'warn', constraints: { max_per_run_usdc: 2 } }),
  deletePolicy: withPolicy(),
  listPolicyVersions: withPolicy(),
  getBudgets: nothing,
  putBudget: () => ({
    body: {
      budget_id: unique('budget'),
      scope: { type: 'agent', id: unique('agent') },
      window: 'day',
      limit_usdc: 5,
      soft_limit_usdc: 4,
      on_breach: 'block',
      alert_thresholds: [50, 90],
    },
  }),
  deleteBudget: async (world) => {
    const budget_id = unique('budget')
    await post(world, '/api/budgets', { budget_id, window: 'day', limit_usdc: 500 })
    return { params: { budget_id } }
  },
  listMandates: list,
  createMandate: () => ({
    body: {
      name: 'Groceries',
      agent_id: 'buyer',
      constraints: [
        { type: 'payment.amount_range', currency: 'USDC', min: 1, max: 6 },
        { type: 'payment.budget', currency: 'USDC', max: 10 },
        { type: 'payment.allowed_payees', allowed: [{ id: 'shop' }] },
      ],
    },
  }),
  getMandate: withMandate(),
  getMandateRemaining: withMandate(),
  revokeMandate: withMandate({ reason: 'Done' }),
  createPreauth: () => ({ body: preauthBody() }),
  listPreauths: list,
  closePreauth: async (world) => {
    const { preauth_id } = await post(world, '/api/pre-auth', preauthBody())
    return { body: { preauth_id, outcome: 'settled', actual_amount_usdc: 0.02 } }
  },
  getPreauth: async (world) => ({ params: { id: (await post(world, '/api/pre-auth', preauthBody())).preauth_id } }),
  authorize: async (world) => {
    const agent_id = unique('denied')
    await post(world, '/api/policies', { identity_type: 'agent', agent_id, constraints: { max_per_run_usdc: 0.001 } })
    await world.call('POST', '/api/pre-auth', { ...preauthBody(), agent_id, amount_usdc: 0.5 }, world.caller.headers)
    return { body: authorizeBody(agent_id) }
  },
  listApprovals: list,
  listApprovalChannels: list,
  createApprovalChannel: async (world) => {
    await makeRoomForChannel(world)
    return { body: { type: 'slack', name: 'Approvers', url: `${world.surroundings.url}/hook` } }
  },
  getApprovalChannel: withChannel(),
  updateApprovalChannel: withChannel({ name: 'Others', is_active: true }),
  deleteApprovalChannel: withChannel(),
  testApprovalChannel: withChannel({}),
  listApprovalMessages: async (world, random) => {
    const { params } = (await withChannel()(world, random)) as { params: { id: string } }
    await post(world, `/api/approval-channels/${params.id}/test`)
    return { params, query: { limit: '3', state: 'pending' } }
  },
  resolveApproval: async (world) => ({
    body: { approval_id: (await approvalOf(world)).approval_id, decision: 'approve', reason: 'Fine' },
  }),
  getApproval: async (world) => ({ params: { id: (await approvalOf(world)).approval_id } }),
  listDecisions: list,
  getDecision: async (world) => {
    await approvalOf(world)
    const { decisions } = await get(world, '/api/decisions?limit=1')
    return { params: { id: decisions[0].id ?? decisions[0].decision_id } }
  },
  listMemories: () => ({ query: { session_id: 'session-1', limit: '3' } }),
  createMemory: () => ({ body: { content: 'A note', session_id: 'session-1', metadata: { source: 'a meeting' } } }),
  deleteSessionMemory: () => ({ query: { session_id: unique('session') } }),
  searchMemories: () => ({ body: { query: 'note', limit: 5 } }),
  getMemory: async (world) => {
    const memory = await memoryOf(world)
    return { params: { id: memory.id ?? memory.memory_id } }
  },
  deleteMemory: async (world) => {
    const memory = await memoryOf(world)
    return { params: { id: memory.id ?? memory.memory_id } }
  },
  getBenchmark: nothing,
  getBasisContract: nothing,
  listBasisSymbols: nothing,
  getBasisQuote: symbol,
  getBasisBoard: nothing,
  getBasisAttestation: symbol,
  listBasisAttestations: () => ({ query: { symbol: 'TSLAx', limit: '3' } }),
  getIssuedBasisAttestation: async (world) => ({ params: { id: (await attestationOf(world)).id } }),
  getBasisAttestationProof: async (world) => ({ params: { id: (await attestationOf(world)).id } }),
  getBasisHistory: () => ({ params: { symbol: 'TSLAx' }, query: { interval: '1h' } }),
  getBasisEvidence: async (world) => {
    const sha256 = `sha256:${createHash('sha256').update(UPSTREAM_BODY).digest('hex')}`
    await until('a stored answer of a price source', async () =>
      (await world.call('GET', `/api/basis/v1/evidence/${sha256}`)).status === 200 ? true : undefined,
    )
    return { params: { sha256 } }
  },
  streamBasis: () => ({ query: { symbols: 'TSLAx' } }),
  rhRun: (world, random) => ({ body: random.chance(0.5) ? tradeBody(world, 0.001) : waitingTradeBody(world) }),
  rhApprove: async (world) => {
    const { run_id } = await post(world, '/api/rh/run', waitingTradeBody(world))
    return { body: { run_id, approved_by: 'a person' } }
  },
  listRhReceipts: list,
  getRhReceipt: async (world) => {
    await post(world, '/api/rh/run', tradeBody(world, 0.001))
    const id = await until('a receipt of a trade', async () => {
      const receipts = await get(world, '/api/rh/receipts?limit=1')
      return receipts[0]?.id ?? receipts[0]?.receipt_id
    })
    return { params: { id } }
  },
  getRhRun: async (world) => ({ params: { id: (await post(world, '/api/rh/run', waitingTradeBody(world))).run_id } }),
  getRhRunQuote: async (world) => ({
    params: { id: (await post(world, '/api/rh/run', waitingTradeBody(world))).run_id },
  }),
  cancelRhRun: async (world) => ({
    params: { id: (await post(world, '/api/rh/run', waitingTradeBody(world))).run_id },
    body: { reason: 'Changed my mind' },
  }),
  listRhRuns: list,
  listRhPolicies: nothing,
  getRhPolicy: () => ({ params: { instrument_type: 'spend' } }),
  putRhPolicy: () => ({
    params: { instrument_type: 'earn' },
    body: { constraints: { max_notional_usdc: 5_000, max_concentration: 0.5, collar_bps: 20 } },
  }),
  getRhPositions: nothing,
  getRhKillSwitch: nothing,
  setRhKillSwitch: () => ({ body: { engaged: false, reason: 'All is well' } }),
  listCbReceipts: list,
  rhAuth: nothing,
  rhAuthCallback: async (world) => {
    const begun = await world.call('GET', '/api/rh/auth')
    const state = new URL(begun.headers.get('location')!).searchParams.get('state')!
    const cookie = begun.headers.getSetCookie().map((text) => text.split(';')[0]!)
    return {
      query: { code: unique('code'), state },
      ...(cookie.length > 0 && { headers: { cookie: cookie.join('; ') } }),
    }
  },
  rhAuthRevoke: () => ({ body: { rh_account_id: 'rh_none' } }),
  post_settlement_deprecated: nothing,
  get_onboarding_deprecated: nothing,
  post_onboarding_deprecated: nothing,
  devFaucet: (world) => ({ body: { address: world.payer.address, amount_usdc: 1 } }),
  devRpc: () => ({ body: { jsonrpc: '2.0', id: 1, method: 'eth_blockNumber', params: [] } }),
  facilitator_verify: async (world) => ({
    body: await world.facilitatorBody(world.payer, world.surroundings.payee.address, 1000n),
  }),
  facilitator_settle: async (world) => ({
    body: await world.facilitatorBody(world.payer, world.surroundings.payee.address, 1000n),
  }),
  facilitator_supported: nothing,
}
