import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { memoryStore } from '../src/call-store.ts'
import {
  ApprovalNeeded,
  ApprovalRejected,
  BudgetExceeded,
  type CallStore,
  createClient,
  type OpenPreauth,
  PolicyBlocked,
  SettlementUnknown,
} from '../src/client.ts'
import { type PayingWorld, PRICE, REQUEST, reject, startPayingWorld } from './paying-world.ts'

let paying: PayingWorld
let world: PayingWorld['world']
let proxy: PayingWorld['proxy']
beforeAll(async () => {
  paying = await startPayingWorld()
  ;({ world, proxy } = paying)
}, 120_000)
afterAll(() => paying?.close())
afterEach(() => proxy.setFault(() => 'none'))

/** A tenant with a wallet, and its client through the proxy. */
async function startTenant(store?: CallStore) {
  const tenant = await world.tenantWithWallet(1)
  const { apiKey, walletId } = tenant
  proxy.setFault(() => 'none')
  return { ...tenant, client: createClient({ baseUrl: proxy.url, apiKey, walletId, store }) }
}

const sentTo = (path: string) => proxy.requests.filter((request) => request.path === path)

const reviewRule = {
  field: 'agent_id',
  op: '=',
  value: 'comedian-v1',
  effect: 'review',
  reason: 'Jokes are read first.',
}

describe('a refusal of governance is an error of its own and is never sent again by itself:', () => {
  test('BudgetExceeded, with the smallest change', async () => {
    const { client, headers } = await startTenant()
    await world.post('/api/budgets', { budget_id: 'tiny', window: 'day', limit_usdc: 0.005 }, headers)
    const error = await reject(client.run(REQUEST))
    expect(error).toBeInstanceOf(BudgetExceeded)
    expect(error).toMatchObject({ status: 429, error: 'budget_exceeded', idempotencyKey: expect.any(String) })
    expect((error as BudgetExceeded).smallestChange).not.toEqual([])
    expect(sentTo('/api/run')).toHaveLength(1)
  })

  test.each(['a wallet with too little money', 'a budget', 'a policy'])(
    'what was refused by %s is not made by `resume` when nothing stands in its way any more',
    async (refusedBy) => {
      const store = memoryStore()
      const { client, headers, walletId, payer } = await startTenant(store)
      const emptyWallet = refusedBy.startsWith('a wallet')
        ? ((await world.post('/api/wallets', {}, headers)).body.wallet_id as string)
        : undefined
      const request = { ...REQUEST, ...(emptyWallet && { payment: { wallet_id: emptyWallet } }) }
      if (refusedBy === 'a budget')
        await world.post('/api/budgets', { budget_id: 'tiny', window: 'day', limit_usdc: 0.005 }, headers)
      const rules = [{ field: 'agent_id', op: '=', value: 'comedian-v1', effect: 'deny' }]
      const policy =
        refusedBy === 'a policy' ? await world.post('/api/policies', { name: 'No jokes', rules }, headers) : undefined
      await reject(client.run(request))

      if (emptyWallet) {
        const topUp = `/api/wallets/${emptyWallet}/topup`
        expect((await world.pay(payer, topUp, { amount_usdc: 0.5 }, headers)).answer.status).toBe(200)
      }
      if (refusedBy === 'a budget')
        await world.post('/api/budgets', { budget_id: 'tiny', window: 'day', limit_usdc: 5 }, headers)
      if (policy) await world.call('DELETE', `/api/policies/${policy.body.id}`, undefined, headers)
      expect(await client.resume()).toEqual([])
      const { available } = await world.balanceOf({ walletId: emptyWallet ?? walletId, headers })
      expect(available).toBe(emptyWallet ? '500000' : '1000000')
      // The same call can be made again, and is then made.
      expect((await client.run(request)).receipt.verified).toBe(true)
    },
  )

  test('PolicyBlocked, with the rule that decided', async () => {
    const { client, headers } = await startTenant()
    const rules = [{ field: 'agent_id', op: '=', value: 'comedian-v1', effect: 'deny' }]
    await world.post('/api/policies', { name: 'No jokes', rules }, headers)
    const error = await reject(client.run(REQUEST))
    expect(error).toBeInstanceOf(PolicyBlocked)
    expect((error as PolicyBlocked).policyResults).not.toEqual([])
    expect(sentTo('/api/run')).toHaveLength(1)
  })

  test('an x402 payer signs nothing for a call that is refused', async () => {
    const tenant = await startTenant()
    const payer = await paying.startPayer()
    await world.post('/api/budgets', { budget_id: 'tiny', window: 'day', limit_usdc: 0.005 }, tenant.headers)
    expect(await reject(payer.createClient({ apiKey: tenant.apiKey }).run(REQUEST))).toBeInstanceOf(BudgetExceeded)
    expect([payer.signatures(), await payer.spent()]).toEqual([0, 0n])
  })
})

describe('ApprovalNeeded', () => {
  test('waits for the approval; the same call then runs once, paid from the wallet', async () => {
    const tenant = await startTenant()
    await world.post('/api/policies', { name: 'Read first', rules: [reviewRule] }, tenant.headers)
    const error = await reject(tenant.client.run(REQUEST))
    expect(error).toBeInstanceOf(ApprovalNeeded)
    const needed = error as ApprovalNeeded
    expect(sentTo('/api/run')).toHaveLength(1)
    const waiting = needed.waitForApproval({ intervalMs: 50 })
    await world.post('/api/approvals', { approval_id: needed.approvalId, decision: 'approve' }, tenant.headers)
    const approval = await waiting
    const { run, receipt } = await tenant.client.run(
      { ...REQUEST, approval_id: approval.approval_id },
      { idempotencyKey: needed.idempotencyKey },
    )
    expect([run.status, receipt.verified]).toEqual(['completed', true])
    expect((await world.balanceOf(tenant)).available).toBe('990000')
  })

  test('by x402: nothing is signed before the approval, and one payment after it', async () => {
    const tenant = await startTenant()
    const payer = await paying.startPayer()
    const client = payer.createClient({ apiKey: tenant.apiKey })
    await world.post('/api/policies', { name: 'Read first', rules: [reviewRule] }, tenant.headers)
    const needed = (await reject(client.run(REQUEST))) as ApprovalNeeded
    expect([needed.name, payer.signatures()]).toEqual(['ApprovalNeeded', 0])
    await world.post('/api/approvals', { approval_id: needed.approvalId, decision: 'approve' }, tenant.headers)
    const { approval_id } = await needed.waitForApproval({ intervalMs: 50 })
    const { run } = await client.run({ ...REQUEST, approval_id }, { idempotencyKey: needed.idempotencyKey })
    expect([run.status, payer.signatures(), await payer.spent()]).toEqual(['completed', 1, PRICE])
  })

  test('throws ApprovalRejected when it is rejected, and says when nobody has decided in time', async () => {
    const tenant = await startTenant()
    await world.post('/api/policies', { name: 'Read first', rules: [reviewRule] }, tenant.headers)
    const needed = (await reject(tenant.client.run(REQUEST))) as ApprovalNeeded
    expect(await reject(needed.waitForApproval({ intervalMs: 20, timeoutMs: 100 }))).toMatchObject({ retryable: true })
    await world.post('/api/approvals', { approval_id: needed.approvalId, decision: 'reject' }, tenant.headers)
    const error = await reject(needed.waitForApproval({ intervalMs: 20 }))
    expect(error).toBeInstanceOf(ApprovalRejected)
    expect((error as ApprovalRejected).approval.resolution).toBe('rejected')
  })
})

describe('preauthorize closes what it opened', () => {
  const request = { agent_id: 'fleet-7', amount_usdc: 0.5, merchant: { id: 'maps.example' } }
  const readPreauth = async (preauthId: string, headers: Record<string, string>) =>
    (await world.get(`/api/pre-auth/${preauthId}`, headers)).body

  test('with what was reported', async () => {
    const { client, headers } = await startTenant()
    const { result, closed } = await client.preauthorize(request, async (token, preauth) => {
      expect(token).toBe(preauth.token)
      expect(await readPreauth(preauth.preauth_id, headers)).toMatchObject({ status: 'open' })
      await preauth.settled({ actual_amount_usdc: 0.2 })
      return 'a map'
    })
    expect([result, closed?.outcome, closed?.charged, closed?.released]).toEqual([
      'a map',
      'reported',
      '200000',
      '300000',
    ])
  })

  test('as paid in full when the callback reports nothing, and as voided when it says so', async () => {
    const { client } = await startTenant()
    const silent = await client.preauthorize(request, async () => 1)
    expect(silent.closed).toMatchObject({ outcome: 'reported', charged: '500000' })
    const voided = await client.preauthorize(request, (_, preauth) => preauth.voided())
    expect(voided.closed).toMatchObject({ outcome: 'voided', charged: '0' })
  })

  test('as failed when the callback throws, and as paid when it threw after it had reported', async () => {
    const { client, headers } = await startTenant()
    let preauth: OpenPreauth | undefined
    const fail = (isPaid: boolean) => async (_: string, opened: OpenPreauth) => {
      preauth = opened
      if (isPaid) await opened.settled()
      throw new Error('The shop is closed.')
    }
    expect(await reject(client.preauthorize(request, fail(false)))).toMatchObject({ message: 'The shop is closed.' })
    expect(await readPreauth(preauth!.preauth_id, headers)).toMatchObject({ closed: { outcome: 'failed' } })
    expect(await reject(client.preauthorize(request, fail(true)))).toMatchObject({ message: 'The shop is closed.' })
    expect(await readPreauth(preauth!.preauth_id, headers)).toMatchObject({ closed: { outcome: 'reported' } })
  })

  test('when a run has used the token: the run has closed it', async () => {
    const { client } = await startTenant()
    const own = { agent_id: 'comedian-v1', amount_usdc: 0.01, merchant: { id: 'countersign' } }
    const { result, closed } = await client.preauthorize(own, (preauth_token) =>
      client.run({ ...REQUEST, preauth_token }),
    )
    expect([result.run.status, closed]).toEqual(['completed', null])
  })

  test('once, although each answer is lost on the way', async () => {
    const { client, headers } = await startTenant()
    const seen = new Set<string>()
    proxy.setFault(({ path, method }) => {
      const isFirst = method === 'POST' && !seen.has(path)
      seen.add(path)
      return isFirst ? 'drop-after' : 'none'
    })
    const { closed } = await client.preauthorize(request, async (_, preauth) => preauth.settled())
    expect(closed).toMatchObject({ outcome: 'reported', charged: '500000' })
    const { body } = await world.get('/api/pre-auth', headers)
    expect(body.preauths.map(({ status }: { status: string }) => status)).toEqual(['closed'])
  })

  test('after a restart: what was reported, what nobody paid, and it says what it cannot know', async () => {
    const entries = memoryStore()
    const dying = { ...entries, remove: () => Promise.reject(new Error('The process is gone.')) }
    const { client, apiKey, headers } = await startTenant(dying)
    const never = new Promise<never>(() => {})
    let opened = 0
    const started = (reported: boolean) =>
      new Promise<void>((resolve) => {
        const key = reported ? 'reported' : 'unreported'
        void client.preauthorize(
          request,
          async (_, preauth) => {
            if (reported) await preauth.settled({ actual_amount_usdc: 0.1 })
            opened += 1
            resolve()
            return never
          },
          { idempotencyKey: key },
        )
      })
    await started(true)
    await started(false)
    // Opened, and the process died before the caller had the token.
    const { body: unused } = await world.post('/api/pre-auth', request, { ...headers, 'idempotency-key': 'unused' })
    await entries.create(`unused preauth ${proxy.url}`, JSON.stringify(request))
    expect(opened).toBe(2)

    const restarted = createClient({ baseUrl: proxy.url, apiKey, store: entries })
    const resumed = await restarted.resume()
    const byKey = Object.fromEntries(resumed.map((call) => [call.idempotencyKey, call]))
    expect(byKey.reported).toMatchObject({ kind: 'preauth', closed: { outcome: 'reported', charged: '100000' } })
    expect(byKey.unused).toMatchObject({ closed: { preauth_id: unused.preauth_id, outcome: 'voided' } })
    expect(byKey.unreported).toMatchObject({ error: expect.any(SettlementUnknown) })
    expect((await restarted.resume()).map(({ idempotencyKey }) => idempotencyKey)).toEqual(['unreported'])
  })

  test('and one that a person has to approve goes on with its key', async () => {
    const tenant = await startTenant()
    const rules = [{ field: 'amount_usdc', op: '>', value: 0.1, effect: 'review' }]
    await world.post('/api/policies', { name: 'Large', rules }, tenant.headers)
    const needed = (await reject(tenant.client.preauthorize(request, async () => 1))) as ApprovalNeeded
    expect(needed).toBeInstanceOf(ApprovalNeeded)
    await world.post('/api/approvals', { approval_id: needed.approvalId, decision: 'approve' }, tenant.headers)
    await needed.waitForApproval({ intervalMs: 50 })
    const { idempotencyKey } = needed
    const { closed } = await tenant.client.preauthorize(request, async (token) => expect(token).toBeTypeOf('string'), {
      idempotencyKey,
    })
    expect(closed).toMatchObject({ outcome: 'reported' })
  })
})
