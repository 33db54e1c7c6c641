import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startService, type TestService } from '../../../server/test/harness.ts'
import { overflows } from './accessibility.ts'
import { type Axe, installAxe } from './axe.ts'
import { launchBrowser, openPage, signIn, type TestPage, waitForText } from './browser.ts'
import { buildDashboardIfStale } from './build-dashboard.ts'
import { createPaidRuns } from './paid-runs.ts'

const HTML_INJECTION = '<img src=x onerror="globalThis.pwned=1">'
const POLICY = `Small money ${HTML_INJECTION}`
/** A task for a lane that costs 0.025 USDC; the comedian costs 0.01. */
const DEAR = { task: 'Add 1 and 2.', agent_id: 'analyst-v1' }

let service: TestService
let browser: Browser
let axe: Axe
let tenant: Awaited<ReturnType<TestService['onboard']>>
let testPage: TestPage
/** What the tests before have made. */
const made: { policyId?: string; mandateId?: string } = {}

beforeAll(async () => {
  await buildDashboardIfStale()
  ;[service, browser, axe] = await Promise.all([startService(), launchBrowser(), installAxe()])
  tenant = await service.onboard('Acme')
  testPage = await openPage(browser, service.url)
  await signIn(testPage, tenant.apiKey)
}, 120_000)
afterAll(async () => {
  await browser?.close()
  await service?.close()
  axe?.remove()
})

const read = async (path: string, headers = tenant.headers) => (await service.get(path, headers)).body

test('a policy made by form is simulated on past runs, saved, and blocks', async () => {
  await createPaidRuns(service, 2, { headers: tenant.headers, body: DEAR })
  await createPaidRuns(service, 1, { headers: tenant.headers, body: { spender: HTML_INJECTION } })
  const { page, open } = testPage
  await open('account/policies')
  await waitForText(page, 'There are no policies')
  await page.getByRole('link', { name: 'New policy' }).click()
  await page.getByLabel('Name', { exact: true }).fill(POLICY)
  await page.getByLabel('Add a limit').selectOption('max_per_run_usdc')
  await page.getByLabel('Max per run (USDC)', { exact: true }).fill('0.0200001')
  await waitForText(page, 'must be an amount in USDC')
  expect(await page.getByRole('button', { name: 'Create the policy' }).isDisabled()).toBe(true)
  await page.getByLabel('Max per run (USDC)', { exact: true }).fill('0.020')
  await page.getByRole('button', { name: 'Add a rule' }).click()
  await page.getByLabel('Rule 1: field').fill('lane')
  await page.getByLabel('Value', { exact: true }).fill('comedian-v1')
  await page.getByLabel('Effect').selectOption('review')
  await page.getByLabel('Reason (optional)').fill(HTML_INJECTION)

  // Saving what was not simulated asks first.
  await page.getByRole('button', { name: 'Create the policy' }).click()
  await page.getByRole('dialog').getByText('has not been tried on past runs').waitFor()
  await page.getByRole('button', { name: 'Cancel' }).click()

  await page.getByRole('button', { name: 'Simulate' }).click()
  const table = page.getByRole('table', { name: 'Runs that would have been different' })
  await table.waitFor()
  const draft = {
    name: POLICY,
    constraints: { max_per_run_usdc: 0.02 },
    rules: [{ field: 'lane', op: 'eq', value: 'comedian-v1', effect: 'review', reason: HTML_INJECTION }],
  }
  const { body: simulation } = await service.post('/api/policies/simulate', { policy: draft }, tenant.headers)
  expect(simulation).toMatchObject({ considered: 3, newly_blocked: 2, newly_review: 1 })
  const statOf = (name: string) => page.locator('.stats > div', { hasText: name }).locator('dd').innerText()
  expect(await statOf('Newly blocked')).toBe(
    `${simulation.newly_blocked} · ${simulation.money.newly_blocked_usdc} USDC`,
  )
  expect(await statOf('Newly for review')).toBe('1 · 0.01 USDC')
  expect(await statOf('Newly allowed')).toBe('0 · 0 USDC')
  expect(await statOf('Difference')).toBe(`${simulation.money.difference_usdc} USDC`)
  const links = await table.getByRole('link').evaluateAll((all) => all.map((link) => link.getAttribute('href')))
  expect(links.sort()).toEqual(
    simulation.results.map(({ run_id }: { run_id: string }) => `#/account/runs/${run_id}`).sort(),
  )

  // A look at a run does not lose the draft.
  await table.getByRole('link').first().click()
  await waitForText(page, 'Timeline')
  await page.goBack()
  expect(await page.getByLabel('Name', { exact: true }).inputValue()).toBe(POLICY)
  await page.getByRole('button', { name: 'Remove rule 1' }).click()
  await waitForText(page, 'has changed since it was simulated')
  await page.getByRole('button', { name: 'Simulate' }).click()
  await expect.poll(() => statOf('Newly for review')).toBe('0 · 0 USDC')
  expect(await statOf('Newly blocked')).toBe('2 · 0.05 USDC')
  await page.getByRole('button', { name: 'Create the policy' }).click()
  await page.getByRole('heading', { level: 2, name: POLICY }).waitFor()

  const { policies } = await read('/api/policies')
  expect(policies).toMatchObject([{ name: POLICY, version: 1, constraints: { max_per_run_usdc: 0.02 }, rules: [] }])
  made.policyId = policies[0].id
  expect((await service.post('/api/run', DEAR, tenant.headers)).status).toBe(429)
})

test('the smallest change is applied from the page of the blocked run, and the same run then goes through', async () => {
  const { page, open } = testPage
  const [blocked] = (await read('/api/runs?outcome=blocked')).runs
  await open(`account/runs/${blocked.run_id}`)
  await page.getByRole('link', { name: 'Apply the smallest change' }).click()
  await waitForText(page, 'max_per_run_usdc goes from 0.02 to 0.025.')
  expect(await page.getByLabel('Max per run (USDC)', { exact: true }).inputValue()).toBe('0.025')
  await page.locator('.stats').waitFor()
  await page.getByRole('button', { name: 'Save as a new version' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText('no longer refuses the run of 0.025 USDC by analyst-v1').waitFor()
  await dialog
    .getByText('Against version 1, which is in force now, 3 runs (0.075 USDC) more would be allowed')
    .waitFor()
  await dialog.getByText('1 run (0.025 USDC) would have been allowed that did not run').waitFor()
  expect(await axe.findIssues(page, 'dialog[open]')).toEqual([])
  await dialog.getByRole('button', { name: 'Save as a new version' }).click()
  await waitForText(page, 'version 2, mode enforce')
  const [run] = await createPaidRuns(service, 1, { headers: tenant.headers, body: DEAR })
  expect(await read(`/api/runs/${run!.run_id}`)).toMatchObject({ outcome: 'completed' })
  expect(await read(`/api/policies/${made.policyId}`)).toMatchObject({ constraints: { max_per_run_usdc: 0.025 } })
})

test('form and JSON edit one draft: unknown fields survive, and errors stand at their path', async () => {
  const { page, open } = testPage
  await open(`account/policies/${made.policyId}/edit`)
  await page.getByRole('button', { name: 'JSON' }).click()
  const editor = page.getByLabel('Policy as JSON')
  const text = await editor.inputValue()
  expect(JSON.parse(text)).toMatchObject({ name: POLICY, constraints: { max_per_run_usdc: 0.025 } })
  await editor.fill(text.replace('"max_per_run_usdc": 0.025', '"max_per_run_usdc": 0.03, "max_per_day_usd": 1'))
  const problems = page.getByRole('list', { name: 'Problems' }).first()
  await problems.getByText('constraints.max_per_day_usd').waitFor()
  expect(await problems.innerText()).toContain('is not a field here. Is it max_per_day_usdc?')
  await page.getByRole('button', { name: 'Form' }).click()
  expect(await page.getByLabel('Max per run (USDC)', { exact: true }).inputValue()).toBe('0.03')
  await page.getByLabel('Max per run (USDC)', { exact: true }).fill('0.04')
  await page.getByRole('button', { name: 'JSON' }).click()
  expect(JSON.parse(await editor.inputValue()).constraints).toEqual({ max_per_run_usdc: 0.04, max_per_day_usd: 1 })
  await editor.fill('{"name": "a",\n "rules": [}')
  await waitForText(page, 'Line 2, column 12: Unexpected }.')
  expect(await page.getByRole('button', { name: 'Form' }).isDisabled()).toBe(true)
  expect(await page.getByRole('button', { name: 'Save as a new version' }).isDisabled()).toBe(true)
  await editor.fill('{"constraints": {}}')
  await page.getByRole('button', { name: 'require_mandate' }).waitFor({ state: 'detached' })
  await editor.press('ArrowLeft')
  await editor.press('ArrowLeft')
  await page.getByRole('button', { name: 'require_mandate' }).click()
  expect(JSON.parse(await editor.inputValue())).toEqual({ constraints: { require_mandate: true } })
  await page.getByRole('button', { name: 'Start again' }).click()
  expect(await editor.inputValue()).toBe(text)
})

test('two versions are compared field by field, and an old one is restored as a new version', async () => {
  const { page, open } = testPage
  await open(`account/policies/${made.policyId}?from=1&to=2`)
  const row = page.getByRole('table', { name: 'Differences between version 1 and version 2' }).locator('tbody tr')
  await row.waitFor()
  expect(await row.locator('td').allInnerTexts()).toEqual([
    'constraints.max_per_run_usdc',
    expect.stringContaining('changed'),
    '0.02',
    '0.025',
  ])
  await page.getByRole('link', { name: 'Restore version 1' }).click()
  await page.locator('.stats').waitFor()
  await page.getByRole('button', { name: 'Save as a new version' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Save as a new version' }).click()
  await waitForText(page, 'version 3, mode enforce')
  expect(await read(`/api/policies/${made.policyId}`)).toMatchObject({
    version: 3,
    constraints: { max_per_run_usdc: 0.02 },
  })
  await page.getByRole('button', { name: 'Switch off' }).click()
  await page.getByRole('button', { name: 'Switch on' }).waitFor()
  expect((await service.post('/api/run', DEAR, tenant.headers)).status).toBe(402)
})

test('budgets stand in a tree with what is reserved apart, and the smallest change of one fills its form', async () => {
  const { page, open } = testPage
  await open('account/budgets')
  const form = page.getByRole('form', { name: 'Budget' })
  const create = async (fields: Record<string, string>, choices: Record<string, string>) => {
    for (const [label, value] of Object.entries(choices)) await form.getByLabel(label).selectOption(value)
    for (const [label, value] of Object.entries(fields)) await form.getByLabel(label, { exact: true }).fill(value)
    await form.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('listitem', { name: `Budget ${fields.Name}`, exact: true }).waitFor()
  }
  await create({ Name: 'all', 'Limit (USDC)': '0.03' }, { Window: 'month' })
  await page.getByText('Create a budget').click()
  await create(
    { Name: 'buyer', 'Which spender': 'buyer', 'Limit (USDC)': '0.040000' },
    { For: 'spender', 'Part of': 'all' },
  )
  const reserve = (amount: string) =>
    service.post('/api/pre-auth', { agent_id: 'buyer', amount, merchant: { id: 'shop' } }, tenant.headers)
  expect((await reserve('12345')).status).toBeLessThan(300)
  await page.reload()
  const all = page.getByRole('listitem', { name: 'Budget all', exact: true })
  const words = '0 USDC spent, 0.012345 USDC reserved, 0.017655 USDC free'
  await all.getByText(words).waitFor()
  await all.getByText('smaller than those below it together').waitFor()
  await all
    .getByRole('listitem', { name: 'Budget buyer' })
    .getByText('0.012345 USDC reserved, 0.027655 USDC free')
    .waitFor()
  const widths = await all
    .locator('.budget-bar')
    .first()
    .locator('span')
    .evaluateAll((parts) => parts.map((part) => (part as HTMLElement).style.width))
  expect(widths).toEqual(['0%', '41.15%'])
  expect(await all.getByRole('link', { name: 'Its runs' }).last().getAttribute('href')).toBe(
    '#/account/runs?spender=buyer',
  )

  const refused = await reserve('20000')
  expect(refused.body.decided_by).toMatchObject({ budget_id: 'all' })
  await open(`account/runs/${refused.body.run_id}`)
  await page.getByRole('link', { name: 'Apply the smallest change' }).click()
  const change = page.getByRole('form', { name: 'Change all' })
  expect(await change.getByLabel('Limit (USDC)').inputValue()).toBe('0.032345')
  await change.getByRole('button', { name: 'Save' }).click()
  await change.waitFor({ state: 'detached' })
  expect((await reserve('20000')).status).toBeLessThan(300)
  await page.getByRole('button', { name: 'Delete' }).last().click()
  await page.getByRole('dialog').getByRole('button', { name: 'Delete the budget' }).click()
  await page.getByRole('listitem', { name: 'Budget buyer' }).waitFor({ state: 'detached' })
  expect((await read('/api/budgets')).budgets).toMatchObject([{ budget_id: 'all', limit_usdc: 0.032345 }])
  await service.call('DELETE', '/api/budgets/all', undefined, tenant.headers)
})

test('a mandate is made, its signed remainder is verified in the page, and after it is revoked its run is refused', async () => {
  const { page, open } = testPage
  await open('account/mandates')
  await waitForText(page, 'There are no mandates')
  await page.getByRole('link', { name: 'New mandate' }).click()
  const form = page.getByRole('form', { name: 'Mandate' })
  await form.getByLabel('Name').fill(`Trip ${HTML_INJECTION}`)
  await form.getByLabel('Agent (empty: any)').fill('comedian-v1')
  await form.getByLabel('One payment, at most (USDC)').fill('0.05')
  await form.getByLabel('All payments together (USDC)').fill('0.035')
  await form.getByLabel('Payments in all (1: a single one)').fill('5')
  await form.getByRole('button', { name: 'Create the mandate' }).click()
  await waitForText(page, '0.035 USDC of 0.035 USDC, 5 of 5 payments')
  await waitForText(page, 'signature valid')
  const { mandates } = await read('/api/mandates')
  made.mandateId = mandates[0].id
  expect(mandates[0].constraints).toEqual([
    { type: 'payment.amount_range', currency: 'USDC', max: 0.05 },
    { type: 'payment.budget', currency: 'USDC', max: 0.035 },
    { type: 'payment.agent_recurrence', frequency: 'ON_DEMAND', max_occurrences: 5 },
  ])
  const body = { mandate_id: made.mandateId }
  const [run] = await createPaidRuns(service, 1, { headers: tenant.headers, body })
  await open('account/mandates')
  await page.reload()
  await waitForText(page, '0.025 USDC of 0.035 USDC, 4 of 5 payments')
  await page.getByRole('link', { name: 'Trip' }).click()
  await page.getByRole('table', { name: 'What used the mandate' }).locator(`a[href$="${run!.run_id}"]`).waitFor()
  await page.getByRole('button', { name: 'Revoke' }).click()
  await page.getByRole('dialog').getByLabel('Reason').fill(HTML_INJECTION)
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke the mandate' }).click()
  await page.locator('.badge', { hasText: 'revoked' }).waitFor()
  const refused = await service.post(
    '/api/run',
    { task: 'Add 1 and 2.', agent_id: 'comedian-v1', ...body },
    tenant.headers,
  )
  expect(refused.status).toBe(429)
  expect(refused.body.message).toContain('is revoked')
})

const pages = () => [
  ['account/policies', POLICY],
  ['account/policies/new', 'Add a rule'],
  [`account/policies/${made.policyId}?from=1&to=2`, 'What changed'],
  [`account/policies/${made.policyId}/edit`, 'Add a limit'],
  ['account/budgets', 'There are no budgets'],
  ['account/mandates', HTML_INJECTION],
  ['account/mandates/new', 'How often'],
  [`account/mandates/${made.mandateId}`, 'What remains'],
]

test('texts of users run nothing, and every page is accessible in light and dark, on desktop and phone', async () => {
  const { page, open } = testPage
  const looks = [
    { colorScheme: 'light', viewport: { width: 1280, height: 844 } },
    { colorScheme: 'dark', viewport: { width: 390, height: 844 } },
  ] as const
  const check = async (place: string) => {
    for (const { colorScheme, viewport } of looks) {
      await page.emulateMedia({ colorScheme })
      await page.setViewportSize(viewport)
      expect(await axe.findIssues(page), `${place} ${colorScheme} ${viewport.width}`).toEqual([])
      expect(await overflows(page), `${place} ${viewport.width}`).toBe(false)
    }
    expect(await page.locator('main img, main script').count(), place).toBe(0)
  }
  for (const [hash, text] of pages()) {
    await open(hash!)
    await waitForText(page, text!)
    await check(hash!)
    if (!hash!.endsWith('/edit')) continue
    await page.getByRole('button', { name: 'JSON' }).click()
    await check(`${hash} as JSON`)
  }
  expect(await page.evaluate(() => (globalThis as { pwned?: number }).pwned)).toBeUndefined()
}, 120_000)

test('a key that may only read sees no form, and another tenant sees nothing', async () => {
  const { body: key } = await service.post('/api/keys', { name: 'reader', scopes: ['read'] }, tenant.headers)
  const reader = await openPage(browser, service.url)
  await signIn(reader, key.api_key)
  for (const [hash, text] of [
    ['account/policies', 'can view but not make changes'],
    ['account/policies/new', 'has no control scope'],
    [`account/policies/${made.policyId}`, 'can view but not make changes'],
    [`account/policies/${made.policyId}/edit`, 'has no control scope'],
    ['account/budgets', 'can view but not make changes'],
    ['account/mandates', 'has no mandate scope'],
    ['account/mandates/new', 'has no mandate scope'],
    [`account/mandates/${made.mandateId}`, 'has no mandate scope'],
  ] as const) {
    await reader.open(hash)
    await waitForText(reader.page, text)
    const names = /Save|Create|Delete|Revoke$|Switch|Change$|Restore|New /
    expect(
      await reader.page
        .locator('main')
        .getByRole('button', { name: names })
        .filter({ hasNotText: 'Save the statement' })
        .count(),
      hash,
    ).toBe(0)
    expect(await reader.page.locator('main').getByRole('link', { name: names }).count(), hash).toBe(0)
  }
  expect(reader.problems).toEqual([])
  await reader.close()
  const headers = { 'x-api-key': key.api_key }
  expect((await service.post('/api/policies', { name: 'A', constraints: {} }, headers)).status).toBe(403)
  expect((await service.post('/api/budgets', { budget_id: 'a', limit_usdc: 1 }, headers)).status).toBe(403)
  expect((await service.post(`/api/mandates/${made.mandateId}/revoke`, {}, headers)).status).toBe(403)

  const other = await service.onboard('Other')
  const stranger = await openPage(browser, service.url)
  await signIn(stranger, other.apiKey)
  for (const [hash, text] of [
    ['account/policies', 'There are no policies'],
    [`account/policies/${made.policyId}`, `There is no policy ${made.policyId}`],
    [`account/policies/${made.policyId}/edit`, `There is no policy ${made.policyId}`],
    ['account/budgets', 'There are no budgets'],
    ['account/mandates', 'There are no mandates'],
    [`account/mandates/${made.mandateId}`, `There is no mandate ${made.mandateId}`],
  ] as const) {
    await stranger.open(hash)
    await waitForText(stranger.page, text)
    expect(await stranger.page.content()).not.toContain('Small money')
  }
  await stranger.close()
  // The browser logs no error but the answers that say that something was not found.
  expect(testPage.problems.filter((problem) => !/404/.test(problem))).toEqual([])
  expect(testPage.foreignRequests).toEqual([])
  await testPage.close()
})
