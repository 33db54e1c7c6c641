import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type MailServer, openMailServer } from '../mail-server.ts'
import { openWorld, richTenant, type Tenant, type World } from './world.ts'

/** Links that end before their approval, freezes on a fresh log, and refusals in words. */
const LINK_SECONDS = 120

let world: World
let mail: MailServer
beforeAll(async () => {
  mail = await openMailServer()
  const env = { SMTP_URL: mail.url, SMTP_FROM: 'Countersign <approvals@example.com>' }
  world = await openWorld({ ...env, APPROVAL_LINK_SECONDS: String(LINK_SECONDS) })
})
beforeEach(() => {
  mail.received.length = 0
})
afterAll(async () => {
  await world?.close()
  await mail?.close()
})

async function mailedApproval(
  tenant: Tenant,
  merchant: Record<string, string> = { id: 'maps.example' },
): Promise<{ id: string; link: string }> {
  const channel = { type: 'email', name: 'Finance', recipients: [{ email: 'boss@acme.example' }] }
  expect((await world.post('/api/approval-channels', channel, tenant.headers)).status).toBe(201)
  const policy = { name: 'Finance looks first', constraints: { require_approval_above_usdc: 0.001 } }
  await world.post('/api/policies', policy, tenant.headers)
  const payment = { agent_id: 'fleet-7', amount_usdc: 0.5, merchant }
  const { body } = await world.post('/api/pre-auth', payment, tenant.headers)
  const { messageWorker } = world.service.governance
  await messageWorker.deliverDue()
  await messageWorker.idle()
  const link = /http:\/\/\S+(\/approve\/[\w-]+)/.exec(mail.received[0]!.text)![1]!
  return { id: body.approval_id, link }
}

const decide = (link: string) =>
  fetch(new URL(link, world.url), {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: 'decision=approve',
  })
const statusOf = async (tenant: Tenant, id: string) =>
  (await world.get(`/api/approvals/${id}`, tenant.headers)).body.status

describe('with APPROVAL_LINK_SECONDS a link ends before its approval', () => {
  test('after it the link decides nothing and says so, and the approval still waits', async () => {
    const tenant = await richTenant(world)
    const { id, link } = await mailedApproval(tenant)
    world.clock.advance((LINK_SECONDS - 1) * 1_000)
    expect((await world.get(link)).status).toBe(200)
    world.clock.advance(1_000)
    const page = await world.get(link)
    expect([page.status, page.text]).toEqual([410, expect.stringContaining('This link has expired')])
    expect((await decide(link)).status).toBe(410)
    expect(await statusOf(tenant, id)).toBe('pending')
    const another = await world.post('/api/approvals', { approval_id: id, decision: 'approve' }, tenant.headers)
    expect(another.status, another.text).toBe(200)
  })

  test('until then it decides', async () => {
    const tenant = await richTenant(world)
    const { id, link } = await mailedApproval(tenant)
    world.clock.advance((LINK_SECONDS - 1) * 1_000)
    // The key that added the recipient is the one that asked, and a tenant's only one.
    expect((await decide(link)).status).toBe(200)
    expect(await statusOf(tenant, id)).toBe('approved')
  })
})

test('a freeze that took effect answers 200 while the log has no checkpoint', async () => {
  const tenant = await richTenant(world)
  const frozen = { action: 'freeze', agent_id: 'fleet-7', reason: 'Key seen in public' }
  const answer = await world.post('/api/control-tower', frozen, tenant.headers)
  expect(answer.status, answer.text).toBe(200)
  expect(answer.body).toMatchObject({ frozen_agents: [{ agent_id: 'fleet-7' }], log_checkpoint: null })
  expect((await world.get('/api/control-tower', tenant.headers)).status).toBe(200)
  await world.service.sequencer.runOnce()
  const { body } = await world.get('/api/control-tower', tenant.headers)
  expect(body.log_checkpoint).toEqual(expect.any(String))
})

describe('a refused value is explained in words', () => {
  const LONG = 'x'.repeat(5_000)
  test.each([
    [
      'a key for a spender with the prefix of keys',
      'POST',
      '/api/keys',
      { name: 'a', scopes: ['read'], spender: 'key:key_1' },
      /spender must be a name that does not begin with 'key:' or a space/,
    ],
    [
      'a key for a team of blanks',
      'POST',
      '/api/keys',
      { name: 'a', scopes: ['read'], team: '  ' },
      /team must be text that is not blank/,
    ],
    [
      'a report from no day',
      'GET',
      '/api/spend?from=yesterday',
      undefined,
      /from must be a day \(2026-11-16\) or a time with its zone \(2026-11-16T08:00:00Z\)/,
    ],
    ['a report by no name', 'GET', '/api/spend?group_by=Day!', undefined, /group_by must be names of dimensions/],
    [
      'a tag with a long name',
      'POST',
      '/api/run',
      { task: 'a joke', tags: { [LONG]: 'a' } },
      /tags has a name that is not allowed: a name has 1 to 64 letters, digits, '_', '\.' or '-'/,
    ],
    [
      'an unknown field with a long name',
      'POST',
      '/api/run',
      { task: 'a joke', [LONG]: 'a' },
      /has the unknown property 'x{80}…'/,
    ],
    [
      'an address that is none',
      'POST',
      '/api/pre-auth',
      { agent_id: 'a', amount: '1', merchant: { id: 'm', pay_to: 'nowhere' } },
      /pay_to/,
    ],
    [
      'an amount that is none',
      'POST',
      '/api/pre-auth',
      { agent_id: 'a', amount: '1.5', merchant: { id: 'm' } },
      /amount must be a whole number of atomic units/,
    ],
    ['a budget with a bad id', 'POST', '/api/budgets', { budget_id: 'a b', limit_usdc: 1 }, /budget_id must be/],
    [
      'an order with a bad id',
      'POST',
      '/api/rh/run',
      { tenant_id: 't', symbol: 'AAPL', side: 'buy', quantity: 1, client_order_id: 'a b' },
      /client_order_id must be/,
    ],
    ['a cursor that is none', 'GET', '/api/runs?after=1', undefined, /after must be/],
  ])('%s', async (_, method, path, body, message) => {
    const tenant = await richTenant(world)
    const refused = await world.call(method, path, body, tenant.headers)
    expect([refused.status, refused.body.error], refused.text).toEqual([400, 'invalid_request'])
    expect(refused.body.message).toMatch(message)
    // No regular expression, and nothing that is much longer than what it says.
    expect(refused.text).not.toMatch(/pattern|\^|\\\\d|\[A-Za-z|\(\?/)
    expect(refused.text.length).toBeLessThan(1_000)
  })
})

describe('answers warn about what nobody would notice', () => {
  const mandate = async (tenant: Tenant, body: Record<string, unknown> = {}) => {
    const amount = { type: 'payment.amount_range', currency: 'USDC', max: 1 }
    const made = await world.post('/api/mandates', { name: 'm', constraints: [amount], ...body }, tenant.headers)
    expect(made.status, made.text).toBe(201)
    return made.body
  }
  const revoke = async (tenant: Tenant, { id }: { id: string }) =>
    (await world.post(`/api/mandates/${id}/revoke`, {}, tenant.headers)).body

  test('revoking the last mandate that bound an agent says that none limits it any more', async () => {
    const tenant = await richTenant(world)
    const [first, last] = [await mandate(tenant, { agent_id: 's' }), await mandate(tenant, { agent_id: 's' })]
    const other = await mandate(tenant, { agent_id: 'other' })
    expect(await revoke(tenant, first)).not.toHaveProperty('warning')
    expect((await revoke(tenant, last)).warning).toContain("no mandate limits the agent 's'")
    const forAll = await mandate(tenant)
    expect(await revoke(tenant, other)).not.toHaveProperty('warning')
    expect((await revoke(tenant, forAll)).warning).toContain('every agent without a mandate of its own')
  })

  test('where a policy requires a mandate, or the mandate was not in force, nothing becomes unlimited and nothing is said', async () => {
    const tenant = await richTenant(world)
    const later = new Date(world.clock.now().getTime() + 3_600_000).toISOString()
    expect(await revoke(tenant, await mandate(tenant, { agent_id: 's', starts_at: later }))).not.toHaveProperty(
      'warning',
    )
    await world.post('/api/policies', { name: 'p', constraints: { require_mandate: true } }, tenant.headers)
    expect(await revoke(tenant, await mandate(tenant, { agent_id: 's' }))).not.toHaveProperty('warning')
  })

  test('a mandate without constraints is called one that limits nothing', async () => {
    const tenant = await richTenant(world)
    expect((await mandate(tenant, { constraints: [] })).warning).toContain('limits nothing')
    expect(await mandate(tenant)).not.toHaveProperty('warning')
  })

  test('a refusal by a mandate names it, and a full count says which payment this would be', async () => {
    const tenant = await richTenant(world)
    await mandate(tenant, {
      name: 'Twice a day',
      agent_id: 's',
      constraints: [{ type: 'payment.agent_recurrence', frequency: 'ON_DEMAND', max_occurrences: 1 }],
    })
    const pay = () =>
      world.post('/api/pre-auth', { agent_id: 's', merchant: { id: 'm' }, amount_usdc: 1 }, tenant.headers)
    expect((await pay()).status).toBe(201)
    const { body } = await pay()
    expect(body.message).toBe(
      "The mandate 'Twice a day' refuses this. This would be payment 2, and payment.agent_recurrence.max_occurrences allows 1.",
    )
  })

  test('an unknown operator is answered with the names and the signs', async () => {
    const tenant = await richTenant(world)
    const rule = { field: 'amount_usdc', op: '=>', value: 1, effect: 'deny' }
    const { body } = await world.post('/api/policies', { name: 'p', rules: [rule] }, tenant.headers)
    expect(body.message).toContain('gte (>=)')
    expect(body.message).toContain('eq (= or ==)')
  })

  test('a message about an approval shows the address that is paid and the host, where the request names them', async () => {
    const tenant = await richTenant(world)
    const pay_to = `0x${'6'.repeat(40)}`
    await mailedApproval(tenant, { id: 'Maps', url: 'https://maps.example/pay?secret=1', pay_to })
    const { text } = mail.received[0]!
    expect(text).toMatch(new RegExp(`^Pays to: +${pay_to}$`, 'm'))
    expect(text).toMatch(/^Website: +maps\.example$/m)
    expect(text).not.toContain('secret')
    mail.received.length = 0
    await mailedApproval(await richTenant(world))
    expect(mail.received[0]!.text).not.toMatch(/Pays to|Website/)
  })
})
