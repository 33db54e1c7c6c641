import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { anotherKey, richTenant, type Tenant } from '../../../server/test/governance/world.ts'
import { startService, type TestService } from '../../../server/test/harness.ts'
import { findAccessibilityIssues, overflows } from './accessibility.ts'
import { type Axe, installAxe } from './axe.ts'
import { launchBrowser, openPage, signIn, type TestPage, waitForText } from './browser.ts'
import { buildDashboardIfStale } from './build-dashboard.ts'

const HTML_INJECTION = '<img src=x onerror="globalThis.pwned=1"><script>globalThis.pwned=1</script>'
const TASK_CANARY = 'canary-timbuktu-0815'
const DESKTOP = { width: 1280, height: 900 }
const PHONE = { width: 390, height: 844 }

let service: TestService
let browser: Browser
let axe: Axe
beforeAll(async () => {
  await buildDashboardIfStale()
  ;[service, browser, axe] = await Promise.all([startService(), launchBrowser(), installAxe()])
})
afterAll(async () => {
  await browser?.close()
  await service?.close()
  axe?.remove()
})

/** A tenant whose payments above a cent wait for a person. */
async function openTenant(): Promise<Tenant> {
  const tenant = await richTenant(service)
  await addPolicy(tenant, { name: 'Ask first', constraints: { require_approval_above_usdc: 0.02 } })
  return tenant
}

async function addPolicy(tenant: Tenant, policy: Record<string, unknown>): Promise<string> {
  const { status, text, body } = await service.post('/api/policies', policy, tenant.headers)
  expect(status, text).toBe(201)
  return body.id
}

/** A run that waits for an approval; the id of the approval. */
async function askForRun(tenant: Tenant, body: Record<string, unknown> = {}): Promise<string> {
  const {
    status,
    text,
    body: answer,
  } = await service.post(
    '/api/run',
    { task: 'Add 1 and 2.', agent_id: 'coder-v1', payment: { wallet_id: tenant.walletId }, ...body },
    tenant.headers,
  )
  expect(status, text).toBe(429)
  return answer.approval_id
}

async function askForPayment(tenant: Tenant, body: Record<string, unknown> = {}): Promise<string> {
  const request = { agent_id: 'fleet-7', amount_usdc: 0.5, merchant: { id: 'maps.example' }, ...body }
  const { text, body: answer } = await service.post('/api/pre-auth', request, tenant.headers)
  expect(answer?.approval_id, text).toBeDefined()
  return answer.approval_id
}

/** A trade that waits for an approval; the id of its run. */
async function askForTrade(tenant: Tenant, body: Record<string, unknown> = {}): Promise<string> {
  const perp = { symbol: 'BTC-PERP', instrument_type: 'perp', side: 'long', quantity: 0.01, leverage: 5 }
  const request = { tenant_id: tenant.tenantId, ...perp, ...body }
  const { status, text, body: answer } = await service.post('/api/rh/run', request, tenant.headers)
  expect(status, text).toBe(202)
  return answer.run_id
}

const readApproval = async (tenant: Tenant, id: string) =>
  (await service.get(`/api/approvals/${id}`, tenant.headers)).body
const readTrade = async (tenant: Tenant, id: string) => (await service.get(`/api/rh/runs/${id}`, tenant.headers)).body

async function openInbox(tenant: { apiKey: string }, hash = 'account/approvals'): Promise<TestPage> {
  const testPage = await openPage(browser, service.url)
  await signIn(testPage, tenant.apiKey)
  await testPage.open(hash)
  return testPage
}

const cardOf = ({ page }: TestPage, id: string) => page.getByRole('article', { name: id })
const outcomes = ({ page }: TestPage) => page.getByRole('status', { name: 'Outcome of your decisions' })
const confirm = ({ page }: TestPage) => page.getByRole('dialog').getByRole('button', { name: /^Approve/ })

/** What axe-core and our own checks find in one page, in light and dark, on a desktop and on a phone. */
async function expectAccessible(testPage: TestPage, name: string) {
  const { page } = testPage
  for (const viewport of [DESKTOP, PHONE])
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.setViewportSize(viewport)
      await page.emulateMedia({ colorScheme })
      const look = `${name} ${colorScheme} ${viewport.width}`
      expect(await findAccessibilityIssues(page), look).toEqual({ unnamed: [], lowContrast: [] })
      expect(await overflows(page), look).toBe(false)
      if ((colorScheme === 'light') === (viewport === DESKTOP)) expect(await axe.findIssues(page), look).toEqual([])
    }
  await page.setViewportSize(DESKTOP)
  await page.emulateMedia({ colorScheme: 'light' })
}

test('a payment and a trade are approved and rejected with a reason, and the page says who, when and why', async () => {
  const tenant = await openTenant()
  const policyId = (await service.get('/api/policies', tenant.headers)).body.policies[0].id
  const [run, payment] = [await askForRun(tenant), await askForPayment(tenant)]
  const [trade, badTrade] = [
    await askForTrade(tenant),
    await askForTrade(tenant, { symbol: 'ETH-PERP', quantity: 0.2 }),
  ]
  const testPage = await openInbox(tenant)
  const { page, open, problems } = testPage

  // A perp waits for minutes, a payment for a day: the trade comes first, and the trade that was asked first before the other.
  const rows = page.getByRole('list', { name: 'Approvals' }).getByRole('link')
  await expect.poll(() => rows.count()).toBe(4)
  expect((await rows.allInnerTexts()).map((text) => text.split('\n')[0])).toEqual([
    'Long 0.01 BTC-PERP',
    'Long 0.2 ETH-PERP',
    'Run on coder-v1',
    'Payment to maps.example',
  ])
  await expect.poll(() => page.title()).toMatch(/^\(4\) /)

  const tradeCard = cardOf(testPage, trade)
  for (const fact of ['Leverage', 'Liquidation price', 'Session', 'Price when asked', 'Price now', 'Drift since asked'])
    await tradeCard.getByText(fact, { exact: true }).waitFor()
  const before = await tradeCard.locator('.countdown').innerText()
  await expect.poll(() => tradeCard.locator('.countdown').innerText()).not.toBe(before)
  await tradeCard.getByText('always_require_approval').waitFor()
  await tradeCard.getByLabel('Reason').fill('Within the plan.')
  await tradeCard.getByRole('button', { name: 'Approve' }).click()
  expect(await readTrade(tenant, trade)).toMatchObject({ status: 'pending_approval' })
  await confirm(testPage).click()
  await outcomes(testPage).getByText('approved').waitFor()
  await expect.poll(async () => (await readTrade(tenant, trade)).approved_at).not.toBeNull()
  expect((await readTrade(tenant, trade)).approvals).toMatchObject([{ reason: 'Within the plan.' }])

  // The next one is open by itself. A rejection takes a reason.
  const badCard = cardOf(testPage, badTrade)
  await badCard.getByRole('button', { name: 'Reject' }).click()
  await badCard.getByText('Say why it is rejected.').waitFor()
  await badCard.getByLabel('Reason').fill('Too much of it.')
  await badCard.getByRole('button', { name: 'Reject' }).click()
  await expect
    .poll(() => readTrade(tenant, badTrade))
    .toMatchObject({ status: 'cancelled', reason: 'Too much of it.', ended_by: expect.stringMatching(/^key_/) })

  await open(`account/approvals/${run}`)
  const runCard = cardOf(testPage, run)
  await runCard.getByText('Add 1 and 2.').waitFor()
  await runCard.getByText('This spender has paid nothing in the last 30 days.').waitFor()
  expect(await runCard.getByRole('link', { name: 'Ask first' }).getAttribute('href')).toBe(
    `#/account/policies/${policyId}`,
  )
  await runCard.getByText('0 of 1').waitFor()
  await runCard.getByRole('button', { name: 'Approve' }).click()
  await confirm(testPage).click()
  // Paid from the wallet it starts by itself, and the card says so and leads to the run.
  await runCard.getByText('approved and used').waitFor()
  await runCard.getByText('by key_').first().waitFor()
  expect(await runCard.getByRole('link', { name: /^run_/ }).first().getAttribute('href')).toMatch(
    /^#\/account\/runs\/run_/,
  )

  await open(`account/approvals/${payment}?status=pending`)
  const paymentCard = cardOf(testPage, payment)
  await paymentCard.getByLabel('Reason').fill('Not this month.')
  await paymentCard.getByRole('button', { name: 'Reject' }).click()
  await paymentCard.getByText('Not this month.').waitFor()
  expect(await readApproval(tenant, payment)).toMatchObject({
    status: 'rejected',
    approvals: [{ decision: 'reject', reason: 'Not this month.' }],
  })
  await waitForText(page, 'Nothing waits for a decision.')

  await page.getByLabel('Status').selectOption('rejected')
  await expect.poll(() => rows.count()).toBe(2)
  await page.getByLabel('Domain').selectOption('brokerage')
  await expect.poll(() => rows.count()).toBe(1)
  expect(new URL(page.url()).hash).toBe('#/account/approvals?status=rejected&domain=brokerage')
  await cardOf(testPage, badTrade).getByText('Too much of it.').first().waitFor()
  expect(problems).toEqual([])
  await testPage.close()
})

test('a run paid by the agent waits for the agent after its approval', async () => {
  const tenant = await openTenant()
  const id = await askForRun(tenant, { payment: undefined })
  const testPage = await openInbox(tenant, `account/approvals/${id}`)
  await cardOf(testPage, id).getByRole('button', { name: 'Approve' }).click()
  await confirm(testPage).click()
  await cardOf(testPage, id).getByText('approved, waits for the agent').waitFor()
  await testPage.close()
})

test('several are decided at once, one that is refused says why, and the wrong domain is refused', async () => {
  const tenant = await openTenant()
  await addPolicy(tenant, {
    name: 'Four eyes',
    identity_type: 'agent',
    agent_id: 'fleet-9',
    constraints: { require_approval_above_usdc: 0.25, separate_approver: true },
  })
  const [run, own, trade] = [
    await askForRun(tenant),
    await askForPayment(tenant, { agent_id: 'fleet-9' }),
    await askForTrade(tenant, { agent_id: 'fleet-7' }),
  ]
  // A core approval cannot decide a trade, nor the other way round.
  const post = async (path: string, body: unknown) => (await service.post(path, body, tenant.headers)).status
  expect(await post('/api/approvals', { approval_id: trade, decision: 'approve' })).toBe(404)
  expect(await post('/api/rh/approve', { run_id: run.replace('apr_', '') })).toBe(404)

  const testPage = await openInbox(tenant)
  const { page, problems } = testPage
  await page.getByRole('list', { name: 'Approvals' }).getByRole('link').nth(2).waitFor()
  for (const box of await page.getByRole('checkbox', { name: /^Select / }).all()) await box.check()
  const selected = page.getByRole('region', { name: 'Selected approvals' })
  await selected.getByLabel('Reason').fill('All of the week.')
  await selected.getByRole('button', { name: 'Approve 3' }).click()
  await page.getByRole('dialog').getByText('It is a trade').waitFor()
  await confirm(testPage).click()
  await outcomes(testPage).getByText('not decided').waitFor()
  await outcomes(testPage)
    .getByText(/the policy requires another key/)
    .waitFor()
  expect(await outcomes(testPage).getByRole('listitem').count()).toBe(3)
  expect(await readApproval(tenant, run)).toMatchObject({
    status: 'approved',
    approvals: [{ reason: 'All of the week.' }],
  })
  expect(await readApproval(tenant, own)).toMatchObject({ status: 'pending' })
  expect((await readTrade(tenant, trade)).approved_at).not.toBeNull()
  // The browser itself logs the answer with 403.
  expect(problems.filter((problem) => !problem.includes('403'))).toEqual([])
  await testPage.close()
})

test('whoever asked and is not the only one who may decide is refused', async () => {
  const tenant = await openTenant()
  await anotherKey(service, tenant)
  const id = await askForRun(tenant)
  const testPage = await openInbox(tenant)
  await cardOf(testPage, id).getByRole('button', { name: 'Approve' }).click()
  await confirm(testPage).click()
  await outcomes(testPage)
    .getByText(/Whoever asked cannot decide/)
    .waitFor()
  expect(await readApproval(tenant, id)).toMatchObject({ status: 'pending' })
  await testPage.close()
})

test('with the keyboard alone: next, previous, select, approve, reject', async () => {
  const tenant = await openTenant()
  const [trade, run, payment] = [await askForTrade(tenant), await askForRun(tenant), await askForPayment(tenant)]
  const testPage = await openInbox(tenant)
  const { page, problems } = testPage
  const { keyboard } = page
  await cardOf(testPage, trade).waitFor()
  await keyboard.press('?')
  await page.getByText('Reject: write the reason').waitFor()
  await keyboard.press('?')
  await keyboard.press('j')
  await cardOf(testPage, run).waitFor()
  expect(new URL(page.url()).hash).toBe(`#/account/approvals/${run}`)
  expect(await page.evaluate(() => document.activeElement?.textContent)).toContain('Run on coder-v1')
  await keyboard.press('x')
  await page.getByText('1 selected').waitFor()
  await keyboard.press('x')
  await page.getByText('1 selected').waitFor({ state: 'detached' })
  await keyboard.press('j')
  await cardOf(testPage, payment).waitFor()
  // In the field of the reason the keys are letters; Escape leaves it without a decision.
  await keyboard.press('r')
  await keyboard.type('ajkrx')
  expect(await cardOf(testPage, payment).getByLabel('Reason to reject').inputValue()).toBe('ajkrx')
  await keyboard.press('Escape')
  await keyboard.press('k')
  await cardOf(testPage, run).waitFor()
  expect(await readApproval(tenant, payment)).toMatchObject({ status: 'pending' })
  await keyboard.press('r')
  await keyboard.type('Later.')
  await keyboard.press('Enter')
  await expect
    .poll(() => readApproval(tenant, run))
    .toMatchObject({ status: 'rejected', approvals: [{ reason: 'Later.' }] })
  // What was decided has left the list; the keys go on from its place.
  await expect.poll(() => page.getByRole('list', { name: 'Approvals' }).getByRole('link').count()).toBe(2)
  await keyboard.press('j')
  await cardOf(testPage, payment).waitFor()
  await keyboard.press('k')
  await cardOf(testPage, trade).waitFor()
  await keyboard.press('a')
  await page.getByRole('dialog').waitFor()
  await keyboard.press('Tab')
  await keyboard.press('Enter')
  await expect.poll(async () => (await readTrade(tenant, trade)).approved_at).not.toBeNull()
  expect(problems).toEqual([])
  await testPage.close()
})

test('a key that only reads sees no buttons and no request, and another organisation sees nothing', async () => {
  const tenant = await openTenant()
  const [id, trade] = [await askForRun(tenant, { task: `Write about ${TASK_CANARY}.` }), await askForTrade(tenant)]
  const reader = await anotherKey(service, tenant, ['read'])
  const readerPage = await openInbox({ apiKey: reader['x-api-key']! }, `account/approvals/${id}`)
  const card = cardOf(readerPage, id)
  await card.getByText('that takes the scope control').waitFor()
  expect(await card.getByRole('button', { name: /Approve|Reject/ }).count()).toBe(0)
  expect(await readerPage.page.getByRole('checkbox').count()).toBe(0)
  expect(await readerPage.page.content()).not.toContain(TASK_CANARY)
  await readerPage.open('account/trades')
  await waitForText(readerPage.page, 'can view but not make changes')
  expect(await readerPage.page.getByRole('button', { name: /trading/ }).count()).toBe(0)
  const refused = await service.post('/api/approvals', { approval_id: id, decision: 'approve' }, reader)
  expect(refused.status).toBe(403)
  await readerPage.close()

  const strangerPage = await openInbox(await service.onboard('Strangers'))
  const { page, open } = strangerPage
  await waitForText(page, 'Nothing waits for a decision.')
  await open(`account/approvals/${id}`)
  await waitForText(page, `There is no approval ${id}`)
  await open(`account/approvals/${trade}`)
  await waitForText(page, `There is no approval ${trade}`)
  await open(`account/trades/${trade}`)
  await waitForText(page, `There is no trade ${trade}`)
  await strangerPage.close()
})

test('a hidden page notifies of a new one without a word of what it is', async () => {
  const tenant = await openTenant()
  const testPage = await openPage(browser, service.url)
  const { page, open } = testPage
  await page.addInitScript(() => {
    const shown: unknown[] = []
    class FakeNotification {
      static permission = 'default'
      static async requestPermission() {
        FakeNotification.permission = 'granted'
        return 'granted'
      }
      constructor(title: string, options: unknown) {
        shown.push({ title, options })
      }
    }
    Object.assign(globalThis, { Notification: FakeNotification, shownNotifications: shown })
  })
  await signIn(testPage, tenant.apiKey)
  await open('account/approvals')
  await page.getByRole('button', { name: 'Notify me in this browser' }).click()
  await waitForText(page, 'This browser tells you when something new waits.')
  const shown = () =>
    page.evaluate(() => (globalThis as unknown as { shownNotifications: unknown[] }).shownNotifications)
  await waitForText(page, 'Nothing waits for a decision.')
  await page.evaluate(() => Object.defineProperty(document, 'visibilityState', { get: () => 'hidden' }))
  await askForRun(tenant, { task: `Write about ${TASK_CANARY}.`, spender: 'secret-buyer' })
  await expect.poll(shown, { timeout: 25_000 }).toHaveLength(1)
  const text = JSON.stringify(await shown())
  expect(text).toContain('An approval waits for a decision.')
  for (const secret of [TASK_CANARY, 'secret-buyer', 'coder-v1', '0.0']) expect(text).not.toContain(secret)
  await testPage.close()
})

test('texts of callers are shown as text, and inbox and trades are accessible', async () => {
  const tenant = await openTenant()
  const name = HTML_INJECTION.slice(0, 78)
  const id = await askForRun(tenant, { task: HTML_INJECTION, spender: name })
  const payment = await askForPayment(tenant, { merchant: { id: name }, purpose: HTML_INJECTION })
  const trade = await askForTrade(tenant, { purpose: HTML_INJECTION, spender: name })
  await service.post(
    '/api/rh/run',
    {
      tenant_id: tenant.tenantId,
      symbol: 'BTC-USD',
      instrument_type: 'crypto',
      side: 'buy',
      quantity: 0.001,
    },
    tenant.headers,
  )
  await service.post(
    '/api/approvals',
    { approval_id: payment, decision: 'reject', reason: HTML_INJECTION },
    tenant.headers,
  )
  const testPage = await openInbox(tenant, `account/approvals/${id}?status=all`)
  const { page, open, problems } = testPage
  const expectText = async (text: string) => {
    await waitForText(page, text)
    expect(await page.locator('main img, main script, main iframe').count()).toBe(0)
  }
  await expectText(HTML_INJECTION)
  await expectAccessible(testPage, 'inbox run')
  await open(`account/approvals/${payment}?status=all`)
  await expectText(`Payment to ${name}`)
  await expectText(HTML_INJECTION)
  await open(`account/approvals/${trade}`)
  await expectText(name)
  await waitForText(page, 'Price now')
  await expectAccessible(testPage, 'inbox trade')
  await open('account/approvals')
  await cardOf(testPage, trade).waitFor()
  await expectAccessible(testPage, 'inbox list')

  await open(`account/trades/${trade}`)
  await waitForText(page, 'Decide in the inbox')
  await expectAccessible(testPage, 'trade page')
  await page.getByRole('button', { name: 'Cancel this trade' }).click()
  await page.getByRole('dialog').getByLabel('Reason').fill(HTML_INJECTION)
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel the trade' }).click()
  await waitForText(page, 'rejected')
  await expectText(HTML_INJECTION)
  expect(await readTrade(tenant, trade)).toMatchObject({ status: 'cancelled', reason: HTML_INJECTION })

  await open('account/trades')
  await page.getByRole('table', { name: 'Trades' }).getByText('executed').waitFor()
  await waitForText(page, 'trading is on')
  await page
    .getByRole('table', { name: /^Positions at/ })
    .getByText('BTC-USD')
    .waitFor()
  await expectAccessible(testPage, 'trades')
  await page.getByRole('button', { name: 'Switch all trading off' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Switch off' }).click()
  await waitForText(page, 'trading is off')
  expect((await service.get('/api/rh/kill-switch', tenant.headers)).body.engaged).toBe(true)
  await page.getByRole('button', { name: 'Switch trading on' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Switch on' }).click()
  await waitForText(page, 'trading is on')
  await page.getByRole('combobox', { name: 'Status' }).selectOption('executed')
  await page.getByRole('table', { name: 'Trades' }).getByRole('link').first().click()
  await page.getByRole('table', { name: 'Fills' }).waitFor()
  await waitForText(page, 'Average price')
  expect(await page.evaluate(() => (globalThis as { pwned?: number }).pwned)).toBeUndefined()
  expect(problems).toEqual([])
  await testPage.close()
}, 120_000)
