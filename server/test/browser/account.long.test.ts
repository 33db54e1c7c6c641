import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startService, type TestService } from '../harness.ts'
import { launchBrowser, openPage, see, signIn } from './browser.ts'
import { builtDashboard } from './built-dashboard.ts'
import { paidRuns } from './traffic.ts'

const EVIL = '<img src=x onerror="globalThis.pwned=1"><script>globalThis.pwned=1</script>'

let service: TestService
let browser: Browser
beforeAll(async () => {
  await builtDashboard()
  ;[service, browser] = await Promise.all([startService(), launchBrowser()])
})
afterAll(async () => {
  await browser?.close()
  await service?.close()
})

test('signing in shows the tenant’s runs page by page and by outcome, and nobody else’s', async () => {
  const [tenant, stranger] = [await service.onboard('Acme'), await service.onboard('Other')]
  const mine = await paidRuns(service, 27, { headers: tenant.headers })
  const [theirs] = await paidRuns(service, 1, { headers: stranger.headers })
  const watched = await openPage(browser, service.url)
  const { page, open, problems } = watched
  await signIn(watched, tenant.apiKey)
  await open('account/runs')
  const rows = page.getByRole('table', { name: 'Runs' }).locator('tbody tr')
  await expect.poll(() => rows.count()).toBe(25)
  await expect.poll(() => rows.first().innerText()).toContain(mine.at(-1)!.run_id.slice(-8))

  await page.getByRole('button', { name: 'Older' }).click()
  await expect.poll(() => rows.count()).toBe(2)
  expect(await rows.last().locator('code').first().textContent()).toBe(mine[0]!.run_id)
  await page.getByRole('button', { name: 'Newer' }).click()
  await expect.poll(() => rows.count()).toBe(25)
  expect(await page.content()).not.toContain(theirs!.run_id)

  await page.getByLabel('Outcome').selectOption('blocked')
  await see(page, 'No run is blocked.')
  expect(new URL(page.url()).hash).toBe('#/account/runs?outcome=blocked')
  expect(problems).toEqual([])
  await watched.close()
})

test('a wrong key is refused in a sentence, and no key or token is kept in the page', async () => {
  const tenant = await service.onboard('Acme')
  const watched = await openPage(browser, service.url)
  const { page, open } = watched
  await open('account')
  await page.getByLabel('API key', { exact: true }).fill('csk_wrong')
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('alert').waitFor()
  expect(await page.getByLabel('API key', { exact: true }).inputValue()).toBe('')

  await signIn(watched, tenant.apiKey)
  const kept = await page.evaluate(() => ({
    storage: JSON.stringify([{ ...localStorage }, { ...sessionStorage }]),
    cookie: document.cookie,
    page: document.documentElement.outerHTML,
  }))
  const [cookie] = await page.context().cookies()
  expect(cookie).toMatchObject({ name: 'countersign_session', httpOnly: true, sameSite: 'Lax' })
  expect(kept.cookie).toBe('')
  for (const secret of [tenant.apiKey, cookie!.value])
    for (const place of [kept.storage, kept.page]) expect(place).not.toContain(secret)
  expect(kept.storage).not.toMatch(/csrf/i)

  // A page that is loaded again is still signed in, and may still write.
  await page.reload()
  await page.getByRole('button', { name: 'Sign out' }).waitFor()
  await watched.close()
})

test('signing out ends the session everywhere and leaves nothing of the tenant in the page', async () => {
  const tenant = await service.onboard('Leaving Org')
  const watched = await openPage(browser, service.url)
  const { page, open } = watched
  await signIn(watched, tenant.apiKey)
  const [cookie] = await page.context().cookies()
  const second = await page.context().newPage()
  await second.goto(`${service.url}/dashboard#/account`)
  await second.getByRole('heading', { name: 'Leaving Org' }).waitFor()

  await page.getByRole('button', { name: 'Sign out' }).click()
  await see(page, 'Sign in with an API key')
  await second.getByText('Sign in with an API key').waitFor()
  expect(await page.content()).not.toContain('Leaving Org')
  const headers = { cookie: `${cookie!.name}=${cookie!.value}` }
  expect((await service.get('/api/me', headers)).status).toBe(401)
  await page.reload()
  await open('account/runs')
  await see(page, 'Sign in with an API key')
  await watched.close()
})

test('a session that ended elsewhere leads back to signing in', async () => {
  const tenant = await service.onboard('Ended Org')
  const watched = await openPage(browser, service.url)
  const { page } = watched
  await signIn(watched, tenant.apiKey)
  await page.context().clearCookies()
  await page.getByRole('link', { name: 'Analytics' }).click()
  await see(page, 'Sign in with an API key')
  await watched.close()
})

test('a person approves one action and rejects another, and the service does as they said', async () => {
  const tenant = await service.onboard('Careful Org')
  await service.post(
    '/api/policies',
    { name: 'Ask first', constraints: { require_approval_above_usdc: 0.02 } },
    tenant.headers,
  )
  const ask = (agent_id: string) => service.post('/api/run', { task: 'Add 1 and 2.', agent_id }, tenant.headers)
  const [wanted, unwanted] = [await ask('coder-v1'), await ask('analyst-v1')]
  expect([wanted.status, unwanted.status]).toEqual([429, 429])

  const watched = await openPage(browser, service.url)
  const { page, open, problems } = watched
  await signIn(watched, tenant.apiKey)
  await open('account/approvals')
  const card = (answer: typeof wanted) => page.getByRole('article', { name: answer.body.approval_id })
  await card(wanted).getByRole('button', { name: 'Approve' }).click()
  await card(wanted).waitFor({ state: 'detached' })
  await card(unwanted).getByLabel('Reason (optional)').fill('Too dear')
  await card(unwanted).getByRole('button', { name: 'Reject' }).click()
  await see(page, 'Nothing waits for you.')

  const status = async (answer: typeof wanted) =>
    (await service.get(`/api/approvals/${answer.body.approval_id}`, tenant.headers)).body
  expect(await status(wanted)).toMatchObject({ status: 'approved' })
  expect(await status(unwanted)).toMatchObject({ status: 'rejected', approvals: [{ reason: 'Too dear' }] })
  await page.getByLabel('Status').selectOption('all')
  await card(wanted).waitFor()
  expect(problems).toEqual([])
  await watched.close()
})

test('an agent is frozen and let go, a budget is made, a policy switched off', async () => {
  const tenant = await service.onboard('Steering Org')
  await service.post('/api/policies', { name: 'Small only', constraints: { max_per_run_usdc: 1 } }, tenant.headers)
  const watched = await openPage(browser, service.url)
  const { page, open, problems } = watched
  await signIn(watched, tenant.apiKey)

  await open('account/tower')
  const freeze = page.getByRole('form', { name: 'Freeze an agent' })
  await freeze.getByLabel('Agent').fill('writer-v1')
  await freeze.getByLabel('Reason').fill('It wrote too much')
  await freeze.getByRole('button', { name: 'Freeze' }).click()
  await see(page, 'It wrote too much')
  const write = () => service.post('/api/run', { task: 'Write.', agent_id: 'writer-v1' }, tenant.headers)
  expect((await write()).status).toBe(429)
  await page.getByRole('button', { name: 'Unfreeze' }).click()
  await see(page, 'No agent is frozen.')
  expect((await write()).status).toBe(402)

  await open('account/limits')
  await page.getByText('Make a budget').click()
  const budget = page.getByRole('form', { name: 'Budget' })
  await budget.getByLabel('Name').fill('daily')
  await budget.getByLabel('Window').selectOption('day')
  await budget.getByLabel('Limit (USDC)').fill('0.5')
  await budget.getByRole('button', { name: 'Save' }).click()
  await page.getByRole('table', { name: 'Budgets' }).getByText('daily').waitFor()
  await budget.getByLabel('Name').fill('daily')
  await budget.getByLabel('Window').selectOption('day')
  await budget.getByLabel('Limit (USDC)').fill('0.7')
  await budget.getByRole('button', { name: 'Save' }).click()
  await page.getByRole('table', { name: 'Budgets' }).getByText('0.7 USDC').waitFor()
  expect((await service.get('/api/budgets', tenant.headers)).body.budgets).toMatchObject([
    { budget_id: 'daily', window: 'day', limit_usdc: 0.7, on_breach: 'block' },
  ])
  await page.getByRole('button', { name: 'Switch off' }).click()
  await page.getByRole('button', { name: 'Switch on' }).waitFor()
  expect((await service.get('/api/policies', tenant.headers)).body.policies).toMatchObject([{ status: 'inactive' }])
  expect(problems).toEqual([])
  await watched.close()
})

test('texts that others wrote stay text on every page', async () => {
  const tenant = await service.onboard(`Org ${EVIL}`)
  const admin = { 'x-admin-key': service.service.adminKey }
  await service.call('PATCH', `/api/admin/tenants/${tenant.tenantId}`, { plan: 'builder' }, admin)
  const [run] = await paidRuns(service, 1, {
    headers: tenant.headers,
    body: { task: EVIL, session_id: EVIL.slice(0, 100) },
  })
  const write = async (path: string, body: unknown) => {
    const { status, text } = await service.post(path, body, tenant.headers)
    expect(status, text).toBeLessThan(300)
  }
  await write('/api/control-tower', { action: 'freeze', agent_id: `agent ${EVIL}`.slice(0, 100), reason: EVIL })
  await write('/api/predictive/alerts', { severity: 'critical', type: EVIL.slice(0, 80), message: EVIL })
  await write('/api/policies', {
    name: EVIL,
    rules: [{ field: 'agent_id', op: 'eq', value: EVIL, effect: 'review', reason: EVIL }],
    constraints: { require_approval_above_usdc: 0.02 },
  })
  await write('/api/webhooks', { url: `http://127.0.0.1:9/?${encodeURIComponent(EVIL)}`, events: ['*'] })
  await service.post('/api/run', { task: EVIL, agent_id: 'coder-v1' }, tenant.headers)

  const watched = await openPage(browser, service.url)
  const { page, open, problems } = watched
  await signIn(watched, tenant.apiKey)
  const seen = [
    ['account/tower', EVIL],
    ['account/runs', 'completed'],
    ['account/approvals', EVIL],
    ['account/limits', EVIL],
    ['account/analytics', 'Latency p95'],
    ['account/webhooks', '127.0.0.1:9'],
    ['account/alerts', EVIL],
    [`receipts/${run!.receipt.receipt_id}`, 'The receipt holds.'],
    [`receipts?run_id=${encodeURIComponent(EVIL)}`, 'No receipt fits this filter.'],
    [`receipts/${encodeURIComponent(EVIL)}`, `There is no receipt ${EVIL}`],
  ] as const
  for (const [hash, text] of seen) {
    await open(hash)
    await see(page, text)
    expect(await page.locator('main img, main script, main iframe').count(), hash).toBe(0)
  }
  await page.getByRole('link', { name: 'Account' }).click()
  await page.getByRole('heading', { level: 1, name: `Org ${EVIL}` }).waitFor()
  await open('verify')
  await page.getByLabel('Receipt or attestation, as JSON').fill(JSON.stringify({ ...run!.receipt, agent_id: EVIL }))
  await page.getByRole('button', { name: 'Verify' }).click()
  await see(page, 'The receipt does not hold.')
  expect(await page.evaluate(() => (globalThis as { pwned?: number }).pwned)).toBeUndefined()
  // The one complaint is the browser's own, about the receipt that does not exist.
  expect(problems.filter((problem) => !problem.includes('404'))).toEqual([])
  await watched.close()
})
