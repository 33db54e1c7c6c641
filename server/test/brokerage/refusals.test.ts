import fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { PolicyConstraints } from '../../src/modules/brokerage/trade-policies.ts'
import { filledQuantity, OPEN, openWorld, type World } from './world.ts'

let world: World
beforeAll(async () => {
  world = await openWorld()
})
afterAll(async () => world.close())
beforeEach(() => {
  world.clock.set(OPEN)
  world.market.setPrice('AAPL', '200.00')
  world.market.halt('AAPL', false)
})

const withPolicy = (constraints: PolicyConstraints) => {
  const id = `pol_${world.policies.size}`
  world.policies.set(id, { id, name: 'Test policy', status: 'active', mode: 'enforce', contentHash: null, constraints })
  return id
}
const failedChecks = (body: { checks: { id: string; result: string }[] }) =>
  body.checks.filter((check) => check.result === 'fail').map((check) => check.id)

describe('invalid input is a 400 with a message, and no order is sent', () => {
  test.each([
    ['leverage on an equity', { symbol: 'AAPL', leverage: 2 }, /leverage is for perps only/],
    [
      'leverage on a crypto',
      { symbol: 'BTC-USD', instrument_type: 'crypto', leverage: 1 },
      /leverage is for perps only/,
    ],
    ['a negative quantity', { symbol: 'AAPL', quantity: -1 }, /greater than zero/],
    ['a quantity of zero', { symbol: 'AAPL', quantity: 0 }, /greater than zero/],
    ['a quantity above one billion', { symbol: 'AAPL', quantity: 1e12 }, /one billion/],
    [
      'a quantity worth more than a trillion USDC',
      { symbol: 'BTC-USD', instrument_type: 'crypto', quantity: 1e9 },
      /more than a trillion USDC/,
    ],
    [
      'a quantity times price above a trillion USDC',
      { symbol: 'acme-store', instrument_type: 'spend', quantity: 1e9, price_limit: 1e8 },
      /more than a trillion USDC/,
    ],
    [
      'a limit price that makes the order worth more than a trillion USDC',
      { symbol: 'BTC-USD', instrument_type: 'crypto', side: 'sell', quantity: 1e8, price_limit: 1e8 },
      /more than a trillion USDC/,
    ],
    [
      'a quantity times price that rounds to zero',
      { symbol: 'acme-store', instrument_type: 'spend', quantity: 1e-8, price_limit: 1e-8 },
      /rounds to zero/,
    ],
    ['a quantity with nine decimals', { symbol: 'AAPL', quantity: 1e-9 }, /eight decimals/],
    [
      'an earn quantity with nine decimals',
      { symbol: 'USDC-EARN', instrument_type: 'earn', quantity: 0.000000001 },
      /more than eight decimals/,
    ],
    ['a quantity as text', { symbol: 'AAPL', quantity: '1' }, /quantity must be number/],
    ['an unknown symbol', { symbol: 'NOSUCH' }, /NOSUCH is not traded/],
    ['a symbol of another type', { symbol: 'AAPL', instrument_type: 'crypto' }, /AAPL is not traded/],
    ['an unknown tokenised equity', { symbol: 'NOPEx', instrument_type: 'rwa' }, /NOPEx is not traded/],
    [
      'a leverage below one',
      { symbol: 'BTC-PERP', instrument_type: 'perp', side: 'long', leverage: 0.5 },
      /between 1 and 125/,
    ],
    [
      'a leverage above the instrument’s maximum',
      { symbol: 'BTC-PERP', instrument_type: 'perp', side: 'long', leverage: 100 },
      /not offered/,
    ],
    [
      'an unknown instrument type',
      { symbol: 'AAPL', instrument_type: 'bond' },
      /body\/instrument_type must be one of equity/,
    ],
    ['an unknown side', { symbol: 'AAPL', side: 'hold' }, /body\/side must be one of buy/],
    ['a short equity', { symbol: 'AAPL', side: 'short' }, /perps only/],
    ['a long equity', { symbol: 'AAPL', side: 'long' }, /not valid for an equity; use 'buy'/],
    [
      'a spend with side sell',
      { symbol: 'acme-store', instrument_type: 'spend', side: 'sell' },
      /not valid for a spend/,
    ],
    ['a negative price', { symbol: 'AAPL', price_limit: -3 }, /positive price/],
    ['a price finer than the tick', { symbol: 'AAPL', price_limit: 200.001 }, /multiple of the tick size of AAPL/],
    ['a notional of zero', { symbol: 'TSLAx', instrument_type: 'rwa', notional_usdc: 0 }, /positive amount/],
    ['a notional on an equity', { symbol: 'AAPL', notional_usdc: 100 }, /notional_usdc is not valid for an equity/],
    ['an unknown policy', { symbol: 'AAPL', policy_id: 'pol_unknown' }, /not a policy of this tenant/],
    ['an unknown property', { symbol: 'AAPL', stop_loss: 1 }, /unknown property 'stop_loss'/],
    ['no symbol', {}, /must have required property 'symbol'/],
    ['a NUL character', { symbol: 'AAPL', agent_id: 'a\u0000b' }, /contains a NUL/],
    ['an unpaired surrogate', { symbol: 'AAPL', policy_id: '\ud800' }, /contains a lone/],
    [
      'a client order id with spaces',
      { symbol: 'AAPL', client_order_id: 'a b' },
      /body\/client_order_id must be 1 to 64 letters, digits/,
    ],
  ])('%s', async (_name, runBody, message) => {
    const before = await world.countOrders()
    const { status, body } = await world.run(runBody)
    expect(status, JSON.stringify(body)).toBe(400)
    expect(body.error).toBe('invalid_request')
    expect(body.message).toMatch(message)
    expect(await world.countOrders()).toBe(before)
  })

  test('the id of another tenant is a 403', async () => {
    await world.addTenant('ten_other')
    const { status, body } = await world.run({ symbol: 'AAPL', tenant_id: 'ten_other' })
    expect([status, body.code]).toEqual([403, 'forbidden'])
  })

  test('a paused or shadow policy cannot govern a trade', async () => {
    const base = { name: 'Unusable policy', contentHash: null, constraints: {} }
    world.policies.set('pol_paused', { id: 'pol_paused', status: 'paused', mode: 'enforce', ...base })
    world.policies.set('pol_shadow', { id: 'pol_shadow', status: 'active', mode: 'shadow', ...base })
    expect((await world.run({ symbol: 'AAPL', policy_id: 'pol_paused' })).status).toBe(400)
    expect((await world.run({ symbol: 'AAPL', policy_id: 'pol_shadow' })).status).toBe(400)
  })

  test('a policy for one agent or one key cannot be used by another', async () => {
    const generous = { require_approval_above_usdc: 9000 }
    const agentPolicyId = withPolicy(generous)
    Object.assign(world.policies.get(agentPolicyId)!, { agentId: 'agent-trusted', keyId: 'key_ten_one' })
    const runBody = { symbol: 'AAPL', quantity: 10, policy_id: agentPolicyId }
    expect((await world.run(runBody)).body.message).toMatch(/for another agent/)
    expect((await world.run({ ...runBody, agent_id: 'agent-rogue' })).status).toBe(400)
    expect((await world.run({ ...runBody, agent_id: 'agent-trusted' })).status).toBe(200)
    const otherKeyPolicyId = withPolicy(generous)
    Object.assign(world.policies.get(otherKeyPolicyId)!, { keyId: 'key_of_somebody_else' })
    expect((await world.run({ ...runBody, policy_id: otherKeyPolicyId })).body.message).toMatch(/for another key/)
  })

  test('the lists validate their query parameters', async () => {
    for (const limit of [0, 101, 1.5, 'many']) {
      expect((await world.call('GET', `/api/rh/receipts?limit=${limit}`)).status).toBe(400)
    }
    const admin = { 'x-admin-key': 'the-admin-key' }
    expect((await world.call('GET', '/api/cb/receipts?limit=201', undefined, admin)).status).toBe(400)
    expect((await world.call('GET', '/api/cb/receipts?status=odd', undefined, admin)).status).toBe(400)
    expect((await world.call('GET', '/api/rh/receipts/not-a-uuid')).status).toBe(404)
    expect((await world.call('GET', '/api/rh/receipts?run_id=not-a-uuid')).body).toEqual([])
    expect((await world.call('GET', '/api/rh/receipts?tenant_id=ten_other')).body).toEqual([])
  })
})

describe('each risk check can refuse a run', () => {
  const expectRefusal = async (runBody: Record<string, unknown>, check: string) => {
    const { status, body } = await world.run(runBody)
    expect(status, JSON.stringify(body)).toBe(422)
    expect(failedChecks(body)).toContain(check)
    return body
  }

  test('the largest valid quantity is refused by policy, not by validation', async () => {
    const body = await expectRefusal({ symbol: 'AAPL', quantity: 1e9 }, 'order_notional')
    expect(body.error).toBe('budget_exceeded')
  })

  test('instrument and merchant lists name types or symbols', async () => {
    await expectRefusal(
      { symbol: 'AAPL', policy_id: withPolicy({ allowed_instruments: ['crypto', 'TSLAx'] }) },
      'instrument_allowed',
    )
    const allowedRun = await world.run({ symbol: 'AAPL', policy_id: withPolicy({ allowed_instruments: ['AAPL'] }) })
    expect(allowedRun.status).toBe(200)
    const merchant = { symbol: 'acme-store', instrument_type: 'spend', quantity: 5 }
    await expectRefusal(
      { ...merchant, policy_id: withPolicy({ denied_merchants: ['acme-store'] }) },
      'merchant_allowed',
    )
  })

  test('leverage and distance to liquidation', async () => {
    const perp = { symbol: 'BTC-PERP', instrument_type: 'perp', side: 'long', quantity: 0.01 }
    await expectRefusal({ ...perp, leverage: 25 }, 'leverage_cap')
    await expectRefusal({ ...perp, leverage: 50, policy_id: withPolicy({ max_leverage: 50 }) }, 'liquidation_distance')
    expect((await world.run({ ...perp, leverage: 5, policy_id: withPolicy({ max_leverage: 4 }) })).status).toBe(422)
  })

  test('the daily limit counts pending runs', async () => {
    const policy_id = withPolicy({ max_per_day_usdc: 2_000, require_approval_above_usdc: 100 })
    const spend = { symbol: 'acme-store', instrument_type: 'spend', quantity: 900, policy_id }
    const first = await world.run(spend)
    expect(first.status).toBe(202)
    expect((await world.run(spend)).status).toBe(202)
    expect(failedChecks(await expectRefusal(spend, 'daily_notional'))).toEqual(['daily_notional'])
    await world.call('POST', `/api/rh/runs/${first.body.run_id}/cancel`, {})
    expect((await world.run(spend)).status).toBe(202)
  })

  test('a halted symbol and a stale quote', async () => {
    world.market.halt('AAPL', true)
    await expectRefusal({ symbol: 'AAPL' }, 'halt')
    world.market.halt('AAPL', false)
    world.market.freeze(new Date(Date.parse(OPEN) - 121_000))
    await expectRefusal({ symbol: 'AAPL' }, 'quote_age')
    world.market.freeze(null)
  })

  test('selling more than is held and buying more than can be paid', async () => {
    await expectRefusal({ symbol: 'TSLAx', instrument_type: 'rwa', side: 'sell', quantity: 3 }, 'holding')
    const policy_id = withPolicy({ max_notional_usdc: 900_000, max_per_day_usdc: 2_000_000 })
    const body = await expectRefusal(
      { symbol: 'USDC-EARN', instrument_type: 'earn', quantity: 500_000, policy_id },
      'buying_power',
    )
    expect(body.error).toBe('budget_exceeded')
  })

  test('too high a share of the account in one symbol', async () => {
    const policy_id = withPolicy({
      max_notional_usdc: 90_000,
      max_per_day_usdc: 500_000,
      require_approval_above_usdc: 90_000,
    })
    await expectRefusal({ symbol: 'AAPL', quantity: 300, policy_id }, 'concentration')
  })

  test('an order that would move the price beyond the collar', async () => {
    const policy_id = withPolicy({ require_approval_above_usdc: 5000 })
    const body = await expectRefusal({ symbol: 'THIN', quantity: 150, policy_id }, 'price_collar')
    expect(body.error).toBe('policy_blocked')
  })

  test('a tokenised equity far from its reference, or more than is offered near it', async () => {
    const reading = world.readings.get('TSLAx')!
    const buy = { symbol: 'TSLAx', instrument_type: 'rwa', quantity: 1 }
    world.readings.set('TSLAx', { ...reading, basisBps: 900 })
    await expectRefusal(buy, 'basis_cap')
    world.readings.set('TSLAx', { ...reading, nearReferenceUsd: 800 })
    await expectRefusal(buy, 'float_cap')
    // A preview is illustrative and must not refuse a trade.
    world.readings.set('TSLAx', { ...reading, basisBps: 900, nearReferenceUsd: 0, preview: true })
    expect((await world.run(buy)).status).toBe(200)
    world.readings.set('TSLAx', reading)
  })

  test('a repeated client_order_id', async () => {
    expect((await world.run({ symbol: 'AAPL', client_order_id: 'mine-1' })).status).toBe(200)
    await expectRefusal({ symbol: 'AAPL', client_order_id: 'mine-1' }, 'duplicate_client_order_id')
  })

  test('a frozen agent', async () => {
    world.frozen.add('agent-7')
    const body = await expectRefusal({ symbol: 'AAPL', agent_id: 'agent-7' }, 'agent')
    expect(body.error).toBe('policy_blocked')
    expect((await world.run({ symbol: 'AAPL', agent_id: 'agent-8' })).status).toBe(200)
  })

  test('the kill switch cancels open runs and refuses new ones, and releasing it revives none', async () => {
    const pendingRun = await world.run({ symbol: 'AAPL', quantity: 10 })
    const approvedRun = await world.run({ symbol: 'AAPL', quantity: 10 })
    await world.approve(approvedRun.body.run_id)
    const engageResponse = await world.call('POST', '/api/rh/kill-switch', { engaged: true, reason: 'drill' })
    expect(engageResponse.body).toMatchObject({ engaged: true, reason: 'drill', engaged_by: 'key_ten_one' })
    expect(engageResponse.body.runs_stopped).toBeGreaterThanOrEqual(2)
    await expectRefusal({ symbol: 'AAPL' }, 'kill_switch')
    await world.call('POST', '/api/rh/kill-switch', { engaged: false })
    await world.brokerage.sweep()
    for (const { body } of [pendingRun, approvedRun]) {
      expect(await world.getRun(body.run_id)).toMatchObject({ status: 'cancelled', fills: [] })
      expect((await world.approve(body.run_id)).status).toBe(409)
    }
    expect((await world.run({ symbol: 'AAPL' })).status).toBe(200)
    expect((await world.call('GET', '/api/rh/kill-switch')).body).toMatchObject({ engaged: false })
  })
})

describe('echoed fields can stop an approval and never change the run', () => {
  const pendingPerp = async () => {
    const perp = { symbol: 'BTC-PERP', instrument_type: 'perp', side: 'long', quantity: 0.01, leverage: 5 }
    return (await world.run(perp)).body
  }

  test('an approval that echoes every field correctly succeeds', async () => {
    const { run_id, approval } = await pendingPerp()
    const { instrument_type, direction, notional_usdc, leverage, liquidation_price, policy_verdict, expires_at } =
      approval
    const echo = { instrument_type, direction, notional_usdc, leverage, liquidation_price, policy_verdict, expires_at }
    expect((await world.approve(run_id, echo)).status).toBe(200)
  })

  test.each([
    ['instrument_type', 'equity'],
    ['direction', 'short'],
    ['notional_usdc', 1],
    ['leverage', 6],
    ['liquidation_price', 1],
    ['policy_verdict', 'override'],
    ['expires_at', '2027-01-01T00:00:00.000Z'],
  ])('a wrong %s is a 400, and the run stays pending', async (field, value) => {
    const { run_id } = await pendingPerp()
    const { status, body } = await world.approve(run_id, { [field]: value })
    expect([status, body.error]).toEqual([400, 'invalid_request'])
    expect(body.message).toContain(field)
    expect(await world.getRun(run_id)).toMatchObject({ status: 'pending_approval', approved_by: null })
  })

  test('an echoed expires_at may use another notation of the same instant', async () => {
    const { run_id, expires_at } = await pendingPerp()
    const sameInstant = new Date(expires_at).toISOString().replace('.000Z', '+00:00')
    expect((await world.approve(run_id, { expires_at: sameInstant })).status).toBe(200)
  })

  test('an approved run is executed on its stored terms, whatever the approval echoes', async () => {
    const fields = fc.record(
      {
        approved_by: fc.string({ minLength: 1, maxLength: 20 }),
        instrument_type: fc.constantFrom('equity', 'perp', 'crypto'),
        direction: fc.constantFrom('long', 'short', 'buy', 'sell'),
        notional_usdc: fc.constantFrom(2000.1, 2000.2, 5000, -1, 0),
        leverage: fc.constantFrom(1, 5),
        policy_verdict: fc.constantFrom('requires_human', 'borderline', 'override'),
        quantity: fc.integer(),
        symbol: fc.constant('BTC-USD'),
      },
      { requiredKeys: [] },
    )
    await fc.assert(
      fc.asyncProperty(fields, async (echo) => {
        const pendingRun = (await world.run({ symbol: 'AAPL', quantity: 10 })).body
        const approveResponse = await world.approve(pendingRun.run_id, echo)
        expect([200, 400]).toContain(approveResponse.status)
        await world.brokerage.sweep()
        const run = await world.getRun(pendingRun.run_id)
        expect(run.status).toBe(approveResponse.status === 200 ? 'executed' : 'pending_approval')
        expect(run).toMatchObject({ symbol: 'AAPL', quantity: 10, instrument_type: 'equity', leverage: null })
        expect(filledQuantity(run)).toBe(approveResponse.status === 200 ? 10 : 0)
        if (approveResponse.status === 200) {
          expect(run.approved_by).toBe('key_ten_one')
          await world.run({
            symbol: 'AAPL',
            side: 'sell',
            quantity: 10,
            policy_id: withPolicy({ require_approval_above_usdc: 9000, max_per_day_usdc: 900_000 }),
          })
        } else await world.call('POST', `/api/rh/runs/${pendingRun.run_id}/cancel`, {})
      }),
      { numRuns: 25 },
    )
  })
})
