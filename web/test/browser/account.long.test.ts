import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startService, type TestService } from '../../../server/test/harness.ts'
import { launchBrowser, openPage, signIn, waitForText } from './browser.ts'
import { buildDashboardIfStale } from './build-dashboard.ts'
import { createPaidRuns } from './paid-runs.ts'

const HTML_INJECTION = '<img src=x onerror="globalThis.pwned=1"><script>globalThis.pwned=1</script>'

let service: TestService
let browser: Browser
beforeAll(async () => {
  await buildDashboardIfStale()
  ;[service, browser] = await Promise.all([startService(), launchBrowser()])
})
afterAll(async () => {
  await browser?.close()
  await service?.close()
})

test('a wrong API key shows an error, and no key or token stays in the page', async () => {
  const tenant = await service.onboard('Acme')
  const testPage = await openPage(browser, service.url)
  const { page, open } = testPage
  await open('account')
  await page.getByLabel('API key', { exact: true }).fill('csk_wrong')
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('alert').waitFor()
  expect(await page.getByLabel('API key', { exact: true }).inputValue()).toBe('')

  await signIn(testPage, tenant.apiKey)
  const pageState = await page.evaluate(() => ({
    storage: JSON.stringify([{ ...localStorage }, { ...sessionStorage }]),
    cookie: document.cookie,
    page: document.documentElement.outerHTML,
  }))
  const [cookie] = await page.context().cookies()
  expect(cookie).toMatchObject({ name: 'countersign_session', httpOnly: true, sameSite: 'Lax' })
  expect(pageState.cookie).toBe('')
  for (const secret of [tenant.apiKey, cookie!.value])
    for (const text of [pageState.storage, pageState.page]) expect(text).not.toContain(secret)
  expect(pageState.storage).not.toMatch(/csrf/i)

  // After a reload the user is still signed in.
  await page.reload()
  await page.getByRole('button', { name: 'Sign out' }).waitFor()
  await testPage.close()
})

test('signing out ends the session in every tab and removes the tenant’s data from the page', async () => {
  const tenant = await service.onboard('Leaving Org')
  const testPage = await openPage(browser, service.url)
  const { page, open } = testPage
  await signIn(testPage, tenant.apiKey)
  const [cookie] = await page.context().cookies()
  const secondTab = await page.context().newPage()
  await secondTab.goto(`${service.url}/dashboard#/account`)
  await secondTab.getByRole('banner').getByText('Leaving Org').waitFor()

  await page.getByRole('button', { name: 'Sign out' }).click()
  await waitForText(page, 'Sign in with an API key')
  await secondTab.getByText('Sign in with an API key').waitFor()
  expect(await page.content()).not.toContain('Leaving Org')
  const headers = { cookie: `${cookie!.name}=${cookie!.value}` }
  expect((await service.get('/api/me', headers)).status).toBe(401)
  await page.reload()
  await open('account/runs')
  await waitForText(page, 'Sign in with an API key')
  await testPage.close()
})

test('a session that ended elsewhere shows the sign-in form', async () => {
  const tenant = await service.onboard('Ended Org')
  const testPage = await openPage(browser, service.url)
  const { page, open } = testPage
  await signIn(testPage, tenant.apiKey)
  await page.context().clearCookies()
  // The page may notice it by itself, when it reads what has changed.
  await open('account/analytics')
  await waitForText(page, 'Sign in with an API key')
  await testPage.close()
})

test('an agent can be frozen and unfrozen, a budget created and changed, a policy switched off', async () => {
  const tenant = await service.onboard('Steering Org')
  await service.post('/api/policies', { name: 'Small only', constraints: { max_per_run_usdc: 1 } }, tenant.headers)
  const testPage = await openPage(browser, service.url)
  const { page, open, problems } = testPage
  await signIn(testPage, tenant.apiKey)

  await open('account/tower')
  const freeze = page.getByRole('form', { name: 'Freeze an agent' })
  await freeze.getByLabel('Agent', { exact: true }).fill('writer-v1')
  await freeze.getByLabel('Reason').fill('It wrote too much')
  await freeze.getByRole('button', { name: 'Freeze' }).click()
  await page.getByRole('button', { name: 'Freeze now' }).click()
  await waitForText(page, 'It wrote too much')
  const write = () => service.post('/api/run', { task: 'Write.', agent_id: 'writer-v1' }, tenant.headers)
  expect((await write()).status).toBe(429)
  await page.getByRole('button', { name: 'Unfreeze' }).click()
  await waitForText(page, 'No agent is frozen.')
  expect((await write()).status).toBe(402)

  await open('account/budgets')
  const budget = page.getByRole('form', { name: 'Budget' })
  await budget.getByLabel('Name').fill('daily')
  await budget.getByLabel('Window').selectOption('day')
  await budget.getByLabel('Limit (USDC)').fill('0.5')
  await budget.getByRole('button', { name: 'Save' }).click()
  await page.getByRole('listitem', { name: 'Budget daily' }).getByRole('link', { name: 'Change' }).click()
  const change = page.getByRole('form', { name: 'Change daily' })
  await change.getByLabel('Limit (USDC)').fill('0.7')
  await change.getByRole('button', { name: 'Save' }).click()
  await page.getByRole('listitem', { name: 'Budget daily' }).getByText('0.7 USDC each day').waitFor()
  expect((await service.get('/api/budgets', tenant.headers)).body.budgets).toMatchObject([
    { budget_id: 'daily', window: 'day', limit_usdc: 0.7, on_breach: 'block' },
  ])
  await open('account/policies')
  await page.getByRole('button', { name: 'Switch off' }).click()
  await page.getByRole('button', { name: 'Switch on' }).waitFor()
  expect((await service.get('/api/policies', tenant.headers)).body.policies).toMatchObject([{ status: 'inactive' }])
  expect(problems).toEqual([])
  await testPage.close()
})

test('HTML in stored texts is shown as text on every page', async () => {
  const tenant = await service.onboard(`Org ${HTML_INJECTION}`)
  const admin = { 'x-admin-key': service.service.adminKey }
  await service.call('PATCH', `/api/admin/tenants/${tenant.tenantId}`, { plan: 'builder' }, admin)
  const [run] = await createPaidRuns(service, 1, {
    headers: tenant.headers,
    body: { task: HTML_INJECTION, session_id: HTML_INJECTION.slice(0, 100) },
  })
  const write = async (path: string, body: unknown) => {
    const { status, text } = await service.post(path, body, tenant.headers)
    expect(status, text).toBeLessThan(300)
  }
  await write('/api/control-tower', {
    action: 'freeze',
    agent_id: `agent ${HTML_INJECTION}`.slice(0, 100),
    reason: HTML_INJECTION,
  })
  await write('/api/predictive/alerts', {
    severity: 'critical',
    type: HTML_INJECTION.slice(0, 80),
    message: HTML_INJECTION,
  })
  await write('/api/policies', {
    name: HTML_INJECTION,
    rules: [{ field: 'agent_id', op: 'eq', value: HTML_INJECTION, effect: 'review', reason: HTML_INJECTION }],
    constraints: { require_approval_above_usdc: 0.02 },
  })
  await write('/api/webhooks', { url: `http://127.0.0.1:9/?${encodeURIComponent(HTML_INJECTION)}`, events: ['*'] })
  await service.post('/api/run', { task: HTML_INJECTION, agent_id: 'coder-v1' }, tenant.headers)

  const testPage = await openPage(browser, service.url)
  const { page, open, problems } = testPage
  await signIn(testPage, tenant.apiKey)
  const pages = [
    ['account/tower', HTML_INJECTION],
    ['account/runs', 'completed'],
    ['account/approvals', HTML_INJECTION],
    ['account/policies', HTML_INJECTION],
    ['account/analytics', 'Latency p95'],
    ['account/webhooks', '127.0.0.1:9'],
    ['account/alerts', HTML_INJECTION],
    [`receipts/${run!.receipt.receipt_id}`, 'The receipt is valid.'],
    [`receipts?run_id=${encodeURIComponent(HTML_INJECTION)}`, 'No receipt matches this filter.'],
    [`receipts/${encodeURIComponent(HTML_INJECTION)}`, `There is no receipt ${HTML_INJECTION}`],
  ] as const
  for (const [hash, text] of pages) {
    await open(hash)
    await waitForText(page, text)
    expect(await page.locator('main img, main script, main iframe').count(), hash).toBe(0)
  }
  await page.getByRole('banner').getByText(`Org ${HTML_INJECTION}`).waitFor()
  expect(await page.locator('header img:not(.brand img)').count()).toBe(0)
  await open('verify')
  await page
    .getByLabel('Receipt or attestation, as JSON')
    .fill(JSON.stringify({ ...run!.receipt, agent_id: HTML_INJECTION }))
  await page.getByRole('button', { name: 'Verify' }).click()
  await waitForText(page, 'The receipt is not valid.')
  expect(await page.evaluate(() => (globalThis as { pwned?: number }).pwned)).toBeUndefined()
  // The browser itself logs the 404 of the receipt that does not exist.
  expect(problems.filter((problem) => !problem.includes('404'))).toEqual([])
  await testPage.close()
})
