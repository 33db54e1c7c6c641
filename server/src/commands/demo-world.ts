import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { PrivateKeyAccount } from 'viem/accounts'

type Json = Record<string, unknown>
// biome-ignore lint/suspicious/noExplicitAny: the answers of many operations
type Answer = any
type Call = (method: 'GET' | 'POST' | 'PATCH' | 'PUT', path: string, body?: Json) => Promise<Answer>
type Text = (plain: string) => string

export type DemoWorldOptions = {
  url: string
  adminKey: string
  /** Changes every free text on its way in, for tests of what a page does with hostile ones. */
  text?: Text
}

/** An organisation with rows of every kind, made through the API of a running service for development. */
export async function createDemoWorld({ url, adminKey, text = (plain) => plain }: DemoWorldOptions) {
  const admin = createCall(url, { 'x-admin-key': adminKey })
  const payer = await fundPayer(admin)
  const organisation = text('Northwind Robotics')
  const tenant = await admin('POST', '/api/admin/tenants', {
    org_name: organisation,
    email: `ops-${Date.now().toString(36)}@northwind.example`,
    plan: 'enterprise',
  })
  const as = (key: string) => createCall(url, { 'x-api-key': key })
  const owner = as(tenant.api_key)
  const keys = await createKeys(owner, text)
  const agents = {
    writer: as(keys.writer),
    support: as(keys.support),
    buyer: as(keys.buyer),
    trader: as(keys.trader),
  }
  const receiver = await openReceiver()
  try {
    const webhooks = await createWebhooks(owner, receiver.url)
    const wallets = await createWallets(url, owner, tenant.api_key, payer, text)
    await createBudgets(owner, text)
    const run = await createRuns(agents, wallets.operations, text)
    const policy = await createPolicies(owner, text)
    const approval = await createDecisions(agents, owner, wallets.operations, text)
    const mandate = await createMandates(owner, text)
    const preauth = await createPreauths(agents.buyer, text)
    const trade = await createTrades(agents.trader, owner, tenant.tenant_id, text)
    const escrow = await createEscrows(owner, wallets, text)
    await createNotices(owner, receiver.url, text)
    await untilDelivered(owner, webhooks.working)
    // Its receiver ends with this program.
    await owner('PATCH', `/api/webhooks/${webhooks.working}`, { is_active: false })
    return {
      organisation,
      tenantId: tenant.tenant_id as string,
      apiKey: tenant.api_key as string,
      readerKey: keys.reader,
      ids: {
        run,
        policy,
        approval,
        mandate,
        preauth,
        trade,
        escrow,
        wallet: wallets.operations,
        webhook: webhooks.failing,
      },
    }
  } finally {
    await receiver.close()
  }
}

function createCall(url: string, credential: Record<string, string>): Call {
  return async (method, path, body) => {
    const response = await fetch(`${url}${path}`, {
      method,
      headers: { ...credential, ...(body && { 'content-type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(60_000),
    })
    const answer = await response.json().catch(() => ({}))
    // What a rule refuses or puts before a person is part of the story.
    if (response.status >= 400 && ![422, 429].includes(response.status))
      throw new Error(`${method} ${path} answered ${response.status}: ${JSON.stringify(answer).slice(0, 400)}`)
    return answer
  }
}

async function createKeys(owner: Call, text: Text) {
  const create = async (name: string, scopes: string[], more: Json = {}) =>
    (await owner('POST', '/api/keys', { name: text(name), scopes, ...more })).api_key as string
  const agent = (name: string, spender: string, team: string) =>
    create(name, ['read', 'run'], { spender: text(spender), team: text(team) })
  return {
    writer: await agent('Report writer', 'report-writer', 'research'),
    support: await agent('Support bot', 'support-bot', 'support'),
    buyer: await agent('Buyer', 'buyer', 'operations'),
    trader: await agent('Trader', 'trader', 'treasury'),
    reader: await create('Auditor', ['read']),
  }
}

/** Takes what the service sends while this program runs. */
async function openReceiver() {
  const server = createServer((request, response) => {
    request.resume()
    response.writeHead(200, { 'content-type': 'application/json' }).end('{"ok":true}')
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () =>
      new Promise<void>((closed) => {
        server.close(() => closed())
        server.closeAllConnections()
      }),
  }
}

async function createWebhooks(owner: Call, receiverUrl: string) {
  const working = await owner('POST', '/api/webhooks', { url: `${receiverUrl}/events`, events: ['*'] })
  // Nothing listens on this port: its deliveries fail and are tried again.
  const failing = await owner('POST', '/api/webhooks', { url: 'http://127.0.0.1:9/billing', events: ['run.completed'] })
  return { working: working.id as string, failing: failing.id as string }
}

/** A key that is made here and used once. A service without test money is not for development, and nothing is written to it. */
async function fundPayer(admin: Call): Promise<PrivateKeyAccount> {
  const { generatePrivateKey, privateKeyToAccount } = await import('viem/accounts')
  const payer = privateKeyToAccount(generatePrivateKey())
  await admin('POST', '/api/dev/faucet', { address: payer.address, amount_usdc: 40 })
  return payer
}

/** Two wallets; the first is filled by x402 with test money, as a browser wallet does it. */
async function createWallets(url: string, owner: Call, apiKey: string, payer: PrivateKeyAccount, text: Text) {
  const open = async (name: string) => (await owner('POST', '/api/wallets', { name: text(name) })).wallet_id as string
  const operations = await open('Operations')
  const savings = await open('Savings')
  const [{ ExactEvmScheme }, { wrapFetchWithPaymentFromConfig }] = await Promise.all([
    import('@x402/evm'),
    import('@x402/fetch'),
  ])
  const payingFetch = wrapFetchWithPaymentFromConfig(fetch, {
    schemes: [{ network: 'eip155:8453', client: new ExactEvmScheme(payer) }],
    // The client's own limit is a dollar a payment.
    spendControls: { maxAmountPerPayment: false },
  })
  const response = await payingFetch(`${url}/api/wallets/${operations}/topup`, {
    method: 'POST',
    headers: { 'x-api-key': apiKey, 'content-type': 'application/json' },
    body: JSON.stringify({ amount_usdc: 25 }),
  })
  if (!response.ok) throw new Error(`The top-up answered ${response.status}: ${await response.text()}`)
  return { operations, savings }
}

async function createBudgets(owner: Call, text: Text) {
  const budget = (body: Json) => owner('POST', '/api/budgets', body)
  await budget({ budget_id: 'company-month', window: 'month', limit_usdc: 50, alert_thresholds: [0.5, 0.8] })
  await budget({
    budget_id: 'writer-day',
    scope: { type: 'agent', id: text('report-writer') },
    window: 'day',
    limit_usdc: 0.2,
    parent_id: 'company-month',
  })
  await budget({
    budget_id: 'support-day',
    scope: { type: 'agent', id: text('support-bot') },
    window: 'day',
    limit_usdc: 1,
    parent_id: 'company-month',
    on_breach: 'review',
  })
}

const tasks: [lane: string, task: string][] = [
  ['analyst-v1', 'Quarterly revenue was 120, 135, 128 and 190 thousand. What stands out?'],
  ['comedian-v1', 'Tell me a joke about a robot that waits for an approval.'],
  ['writer-v1', 'Write a short note that our warehouse moves to Rotterdam in May.'],
  ['coder-v1', 'Write a function that returns the median of a list of numbers.'],
  ['analyst-v1', 'Orders were 12, 15, 11, 60 and 14 this week. Which day needs a look?'],
  ['writer-v1', 'Write two sentences that thank a customer for waiting.'],
]

type Agents = { writer: Call; support: Call; buyer: Call; trader: Call }

async function createRuns({ writer, support, buyer }: Agents, wallet: string, text: Text): Promise<string> {
  const runs: string[] = []
  for (const [index, [lane, task]] of [...tasks, ...tasks, ...tasks].entries()) {
    const agent = [writer, support, buyer][index % 3]!
    const run = await agent('POST', '/api/run', {
      task: text(task),
      agent_id: lane,
      tags: { project: text(index % 2 ? 'apollo' : 'hermes') },
      payment: { wallet_id: wallet },
    })
    if (run.receipt) runs.push(run.run_id)
  }
  return runs.at(-1)!
}

/** One that blocks, one that asks a person, and one that only says what it would do. */
async function createPolicies(owner: Call, text: Text): Promise<string> {
  const policy = await owner('POST', '/api/policies', {
    name: text('Small money for support'),
    identity_type: 'agent',
    agent_id: text('support-bot'),
    constraints: { max_per_run_usdc: 0.005, denied_merchants: ['casino.example'] },
  })
  await owner('PATCH', `/api/policies/${policy.id}`, {
    constraints: { max_per_run_usdc: 0.012, denied_merchants: ['casino.example', 'lottery.example'] },
  })
  await owner('POST', '/api/policies', {
    name: text('A person looks at the writer’s larger runs'),
    identity_type: 'agent',
    agent_id: text('report-writer'),
    constraints: { require_approval_above_usdc: 0.015 },
  })
  await owner('POST', '/api/policies', {
    name: text('Try out: nothing above one cent'),
    mode: 'shadow',
    rules: [{ field: 'amount_usdc', op: 'gt', value: 0.01, effect: 'deny', reason: text('More than one cent') }],
  })
  return policy.id
}

/** Runs that are refused, and runs that a person has approved, rejected or not yet seen. */
async function createDecisions({ writer, support }: Agents, owner: Call, wallet: string, text: Text): Promise<string> {
  const run = (agent: Call, task: string, lane: string) =>
    agent('POST', '/api/run', { task: text(task), agent_id: lane, payment: { wallet_id: wallet } })
  await run(support, 'Write a function that sorts the open tickets by age.', 'coder-v1')
  await run(support, 'Write a function that finds doubled tickets.', 'coder-v1')
  const ask = async (task: string) => (await run(writer, task, 'coder-v1')).approval_id as string | undefined
  const decide = (id: string | undefined, decision: string, reason: string) =>
    owner('POST', '/api/approvals', { approval_id: id!, decision, reason: text(reason) })
  await decide(await ask('Write a script that renames the reports by date.'), 'approve', 'Needed for the board')
  await decide(await ask('Write a script that mails all customers.'), 'reject', 'Not without legal')
  await ask('Write a function that reads the sales table.')
  return (await ask('Write a function that draws the revenue of each quarter.'))!
}

async function createMandates(owner: Call, text: Text): Promise<string> {
  const mandate = await owner('POST', '/api/mandates', {
    name: text('Maps and weather'),
    agent_id: text('buyer'),
    constraints: [
      { type: 'payment.amount_range', currency: 'USDC', max: 1 },
      { type: 'payment.budget', currency: 'USDC', max: 5 },
      { type: 'payment.allowed_payees', allowed: [{ id: 'maps.example' }, { id: 'weather.example' }] },
    ],
  })
  const ended = await owner('POST', '/api/mandates', {
    name: text('Office supplies'),
    agent_id: text('office-bot'),
    constraints: [{ type: 'payment.budget', currency: 'USDC', max: 20 }],
  })
  await owner('POST', `/api/mandates/${ended.mandate_id}/revoke`, { reason: text('The project is over') })
  return mandate.mandate_id
}

async function createPreauths(buyer: Call, text: Text): Promise<string> {
  const ask = (merchant: string, amount: number, purpose: string) =>
    buyer('POST', '/api/pre-auth', {
      agent_id: text('buyer'),
      merchant: { id: merchant },
      amount_usdc: amount,
      purpose: text(purpose),
    })
  const paid = await ask('maps.example', 0.25, 'Map tiles of Rotterdam')
  await buyer('POST', '/api/pre-auth/close', {
    preauth_id: paid.preauth_id,
    outcome: 'settled',
    actual_amount_usdc: 0.2,
  })
  const dropped = await ask('weather.example', 0.1, 'Forecast for May')
  await buyer('POST', '/api/pre-auth/close', { preauth_id: dropped.preauth_id, outcome: 'voided' })
  await ask('casino.example', 0.5, 'Not on the list of the mandate')
  const open = await ask('maps.example', 0.4, 'Traffic of the harbour')
  return open.preauth_id
}

/** A trade that was executed, one that a person rejected, and one that waits. */
async function createTrades(trader: Call, owner: Call, tenantId: string, text: Text): Promise<string> {
  const trade = (body: Json) =>
    trader('POST', '/api/rh/run', { tenant_id: tenantId, agent_id: text('trader'), ...body })
  await trade({
    symbol: 'BTC-USD',
    instrument_type: 'crypto',
    side: 'buy',
    quantity: 0.002,
    purpose: text('Rebalance'),
  })
  const perpetual = { symbol: 'BTC-PERP', instrument_type: 'perp', side: 'long', leverage: 2 }
  const rejected = await trade({ ...perpetual, quantity: 0.02, purpose: text('Too large a hedge') })
  await owner('POST', `/api/rh/runs/${rejected.run_id}/cancel`, { reason: text('Above what treasury wants') })
  const waiting = await trade({ ...perpetual, quantity: 0.01, purpose: text('Hedge of the month') })
  return waiting.run_id
}

async function createEscrows(
  owner: Call,
  { operations, savings }: { operations: string; savings: string },
  text: Text,
): Promise<string> {
  const hold = (amount: string, memo: string) =>
    owner('POST', `/api/wallets/${operations}/escrow`, { amount, memo: text(memo), to_wallet_id: savings })
  const released = await hold('1500000', 'Translation of the manual')
  await owner('POST', `/api/escrow/${released.escrow_id}/release`, { reason: text('Delivered') })
  const disputed = await hold('800000', 'Photographs of the warehouse')
  await owner('POST', `/api/escrow/${disputed.escrow_id}/dispute`, { reason: text('Three are missing') })
  return (await hold('2000000', 'Market study')).escrow_id
}

async function createNotices(owner: Call, receiverUrl: string, text: Text) {
  await owner('POST', '/api/approval-channels', { type: 'slack', name: text('Finance'), url: `${receiverUrl}/slack` })
  await owner('POST', '/api/predictive/alerts', {
    severity: 'warning',
    type: 'note',
    message: text('The writer used most of its day before noon'),
  })
  await owner('POST', '/api/control-tower', {
    action: 'freeze',
    agent_id: text('office-bot'),
    reason: text('Its mandate has ended'),
  })
}

/** Waits a while for the deliveries on their way; what comes later fails and is tried again like any other. */
async function untilDelivered(owner: Call, webhook: string) {
  for (let attempt = 0; attempt < 120; attempt += 1) {
    const { deliveries } = await owner('GET', `/api/webhooks/${webhook}/deliveries?limit=100`)
    if (deliveries.length > 0 && deliveries.every(({ state }: { state: string }) => state !== 'pending')) return
    await new Promise((resolve) => setTimeout(resolve, 250))
  }
}
