import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startService, type TestService } from '../../../server/test/harness.ts'
import { findAccessibilityIssues, overflows } from './accessibility.ts'
import { launchBrowser, openPage, signIn, waitForText } from './browser.ts'
import { buildDashboardIfStale } from './build-dashboard.ts'
import { createPaidRuns } from './paid-runs.ts'

let service: TestService
let browser: Browser
let tenant: Awaited<ReturnType<TestService['onboard']>>
beforeAll(async () => {
  await buildDashboardIfStale()
  ;[service, browser] = await Promise.all([startService(), launchBrowser()])
  tenant = await service.onboard('Acme')
  await createPaidRuns(service, 3, { headers: tenant.headers })
})
afterAll(async () => {
  await browser?.close()
  await service?.close()
})

const publicPages: [hash: string, heading: string, text: string | RegExp][] = [
  ['', 'Let agents spend, and prove what they paid for.', 'Create an organisation'],
  ['playground', 'Playground', 'The same call from your code'],
  ['overview', 'Overview', 'Signature valid; no entry was removed or changed.'],
  // A place in the log; which one depends on when the head of an audit chain, which is not listed, got its own.
  ['receipts', 'Receipts', /^#\d+/],
  ['receipts?kind=loop', 'Receipts', 'No receipt matches this filter.'],
  ['verify', 'Verify', 'Trusted keys'],
  ['basis', 'Basis board', 'AAPLx'],
  ['basis/AAPLx', 'AAPLx', 'The attestation is valid.'],
  ['account', 'Account', 'Sign in with an API key'],
  ['nowhere', 'Page not found', 'There is no page'],
]
for (const width of [1280, 390])
  test(`every public page loads without an error for a guest, ${width} pixels wide`, async () => {
    const testPage = await openPage(browser, service.url, { viewport: { width, height: 800 } })
    const { page, problems, foreignRequests, open } = testPage
    for (const [hash, heading, text] of publicPages) {
      await open(hash)
      await page.getByRole('heading', { level: 1, name: heading, exact: true }).waitFor()
      await waitForText(page, text)
      expect(await overflows(page), `${hash} is wider than the screen`).toBe(false)
    }
    expect(problems).toEqual([])
    expect(foreignRequests).toEqual([])
    await testPage.close()
  })

test('the content security policy allows nothing inline and no other origin', async () => {
  const { headers, text } = await service.get('/dashboard')
  const policy = headers.get('content-security-policy')!
  expect(policy).toContain("default-src 'none'")
  expect(policy).not.toMatch(/unsafe|\*/)
  expect(text).not.toMatch(/<style|<script(?![^>]*\bsrc=)| on\w+=|https?:\/\//)
})

test('the test helpers notice policy violations, unnamed controls and low contrast', async () => {
  const testPage = await openPage(browser, service.url)
  const { page, problems, open } = testPage
  await open('overview')
  await waitForText(page, 'comedian-v1')
  await page.evaluate(() => {
    document.body.insertAdjacentHTML('beforeend', '<p style="color: red">inline</p><img src="https://example.com/x">')
    const faint = Object.assign(document.createElement('p'), { textContent: 'faint' })
    faint.style.color = '#999'
    document.body.append(faint, document.createElement('input'))
  })
  await expect.poll(() => problems.join()).toMatch(/violated style-src.*violated img-src|violated img-src.*style-src/s)
  const issues = await findAccessibilityIssues(page)
  expect(issues.unnamed).toHaveLength(1)
  expect(issues.lowContrast.join()).toContain('faint')
  await testPage.close()
})

test('the dashboard stores the log head and detects a log that was rolled back', async () => {
  const testPage = await openPage(browser, service.url)
  const { page, open } = testPage
  const earlierCheckpoint = (await service.get('/api/log/checkpoint')).text
  await open('overview')
  await waitForText(page, 'no entry was removed or changed')
  await createPaidRuns(service, 2)
  await page.reload()
  await waitForText(page, 'no entry was removed or changed')

  await page.route('**/api/log/checkpoint', (route) =>
    route.fulfill({ contentType: 'text/plain', body: earlierCheckpoint }),
  )
  await page.reload()
  await waitForText(page, 'entries when last checked')
  await testPage.close()
})

test('a missing or failing endpoint does not break the rest of the page', async () => {
  const testPage = await openPage(browser, service.url)
  const { page, open } = testPage
  const errorResponse = (status: number, message: string) => ({
    status,
    contentType: 'application/json',
    body: JSON.stringify({ error: 'error', message }),
  })
  await page.route('**/api/budgets', (route) => route.fulfill(errorResponse(404, 'There is nothing at this address.')))
  await page.route('**/api/policies*', (route) => route.fulfill(errorResponse(500, 'It broke.')))
  await page.route('**/api/basis/**', (route) => route.fulfill(errorResponse(404, 'There is nothing at this address.')))
  await signIn(testPage, tenant.apiKey)
  // The address of budgets before they had a page of their own.
  await open('account/limits')
  await waitForText(page, 'Not available on this service.')
  await open('account/policies')
  await waitForText(page, 'It broke.')
  await page.getByRole('link', { name: 'Runs' }).click()
  await waitForText(page, 'completed')
  await open('basis')
  await waitForText(page, 'Not available on this service.')
  await testPage.close()
})

test('opening every page and many receipts as a guest stays within the default rate limit', async () => {
  const limited = await startService({ env: { RATE_LIMIT_ANON_PER_MINUTE: '60', RATE_LIMIT_KEY_PER_MINUTE: '600' } })
  const runs = await createPaidRuns(limited, 6)
  const testPage = await openPage(browser, limited.url)
  const { page, open, problems } = testPage
  for (const [hash, , text] of publicPages.slice(1)) {
    await open(hash)
    await waitForText(page, text)
  }
  for (const { receipt } of runs) {
    await open(`receipts/${receipt.receipt_id}`)
    await waitForText(page, 'The receipt is valid.')
  }
  expect(problems).toEqual([])
  await testPage.close()
  await limited.close()
})

test('content and pages can be reached by keyboard alone', async () => {
  const testPage = await openPage(browser, service.url)
  const { page, open } = testPage
  await open('overview')
  await waitForText(page, 'comedian-v1')
  await page.keyboard.press('Tab')
  expect(await page.evaluate(() => document.activeElement?.textContent)).toBe('Skip to content')
  await page.keyboard.press('Enter')
  expect(await page.evaluate(() => document.activeElement?.tagName)).toBe('MAIN')
  await page.getByRole('link', { name: 'Receipts', exact: true }).focus()
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { level: 1, name: 'Receipts' }).waitFor()
  expect(await page.evaluate(() => document.activeElement?.tagName)).toBe('MAIN')
  expect(await page.title()).toBe('Receipts · Countersign')
  await testPage.close()
})
