import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startService, type TestService } from '../harness.ts'
import { findFlaws, overflows } from './accessibility.ts'
import { launchBrowser, openPage, see, signIn } from './browser.ts'
import { builtDashboard } from './built-dashboard.ts'
import { paidRuns } from './traffic.ts'

let service: TestService
let browser: Browser
let tenant: Awaited<ReturnType<TestService['onboard']>>
beforeAll(async () => {
  await builtDashboard()
  ;[service, browser] = await Promise.all([startService(), launchBrowser()])
  tenant = await service.onboard('Acme')
  await paidRuns(service, 3, { headers: tenant.headers })
})
afterAll(async () => {
  await browser?.close()
  await service?.close()
})

const publicPages: [hash: string, heading: string, text: string][] = [
  ['', 'Overview', 'comedian-v1'],
  ['overview', 'Overview', 'The signature holds and nothing was taken back.'],
  ['receipts', 'Receipts', '#1'],
  ['receipts?kind=loop', 'Receipts', 'No receipt fits this filter.'],
  ['verify', 'Verify', 'Trusted keys'],
  ['basis', 'Basis board', 'AAPLx'],
  ['basis/AAPLx', 'AAPLx', 'The attestation holds.'],
  ['account', 'Account', 'Sign in with an API key'],
  ['nowhere', 'Overview', 'comedian-v1'],
]
const accountPages: [part: string, text: string][] = [
  ['tower', 'Spent today'],
  ['runs', 'completed'],
  ['approvals', 'Nothing waits for you.'],
  ['limits', 'There are no budgets'],
  ['analytics', 'Latency p95'],
  ['webhooks', 'There are no subscriptions'],
  ['alerts', 'does not include predictive alerts'],
]

for (const colorScheme of ['light', 'dark'] as const) {
  for (const width of [1280, 390]) {
    test(`every page loads without an error and can be read, ${colorScheme}, ${width} pixels wide`, async () => {
      const watched = await openPage(browser, service.url, { colorScheme, viewport: { width, height: 800 } })
      const { page, problems, strangers, open } = watched
      const check = async (name: string) => {
        expect(await findFlaws(page), name).toEqual({ unnamed: [], faint: [] })
        expect(await overflows(page), `${name} is wider than the screen`).toBe(false)
      }
      for (const [hash, heading, text] of publicPages) {
        await open(hash)
        await page.getByRole('heading', { level: 1, name: heading, exact: true }).waitFor()
        await see(page, text)
        await check(hash)
      }
      await signIn(watched, tenant.apiKey)
      for (const [part, text] of accountPages) {
        await open(`account/${part}`)
        await see(page, text)
        await check(part)
      }
      expect(problems).toEqual([])
      expect(strangers).toEqual([])
      await watched.close()
    })
  }
}

test('the page is served under a policy that allows nothing inline and nothing foreign', async () => {
  const { headers, text } = await service.get('/dashboard')
  const policy = headers.get('content-security-policy')!
  expect(policy).toContain("default-src 'none'")
  expect(policy).not.toMatch(/unsafe|\*/)
  expect(text).not.toMatch(/<style|<script(?![^>]*\bsrc=)| on\w+=|https?:\/\//)
})

test('the watch over the page is awake: what breaks the policy or cannot be read is noticed', async () => {
  const watched = await openPage(browser, service.url)
  const { page, problems, open } = watched
  await open('overview')
  await see(page, 'comedian-v1')
  await page.evaluate(() => {
    document.body.insertAdjacentHTML('beforeend', '<p style="color: red">inline</p><img src="https://example.com/x">')
    const faint = Object.assign(document.createElement('p'), { textContent: 'faint' })
    faint.style.color = '#999'
    document.body.append(faint, document.createElement('input'))
  })
  await expect.poll(() => problems.join()).toMatch(/violated style-src.*violated img-src|violated img-src.*style-src/s)
  const flaws = await findFlaws(page)
  expect(flaws.unnamed).toHaveLength(1)
  expect(flaws.faint.join()).toContain('faint')
  await watched.close()
})

test('the browser remembers the head of the log, and notices when it is taken back', async () => {
  const watched = await openPage(browser, service.url)
  const { page, open } = watched
  const early = (await service.get('/api/log/checkpoint')).text
  await open('overview')
  await see(page, 'nothing was taken back')
  await paidRuns(service, 2)
  await page.reload()
  await see(page, 'nothing was taken back')

  await page.route('**/api/log/checkpoint', (route) => route.fulfill({ contentType: 'text/plain', body: early }))
  await page.reload()
  await see(page, 'entries when it was last looked at')
  await watched.close()
})

test('a part that is missing or broken leaves the rest of the page', async () => {
  const watched = await openPage(browser, service.url)
  const { page, open } = watched
  const answer = (status: number, message: string) => ({
    status,
    contentType: 'application/json',
    body: JSON.stringify({ error: 'error', message }),
  })
  await page.route('**/api/budgets', (route) => route.fulfill(answer(404, 'There is nothing at this address.')))
  await page.route('**/api/policies*', (route) => route.fulfill(answer(500, 'It broke.')))
  await page.route('**/api/basis/**', (route) => route.fulfill(answer(404, 'There is nothing at this address.')))
  await signIn(watched, tenant.apiKey)
  await open('account/limits')
  await see(page, 'This service does not offer this.')
  await see(page, 'It broke.')
  await page.getByRole('link', { name: 'Runs' }).click()
  await see(page, 'completed')
  await open('basis')
  await see(page, 'This service does not offer this.')
  await watched.close()
})

test('a guest who looks at every page and many receipts stays within the default limit of requests', async () => {
  const limited = await startService({ env: { RATE_LIMIT_ANON_PER_MINUTE: '60', RATE_LIMIT_KEY_PER_MINUTE: '600' } })
  const runs = await paidRuns(limited, 6)
  const watched = await openPage(browser, limited.url)
  const { page, open, problems } = watched
  for (const [hash, , text] of publicPages.slice(1)) {
    await open(hash)
    await see(page, text)
  }
  for (const { receipt } of runs) {
    await open(`receipts/${receipt.receipt_id}`)
    await see(page, 'The receipt holds.')
  }
  expect(problems).toEqual([])
  await watched.close()
  await limited.close()
})

test('the keyboard alone reaches the content and every page', async () => {
  const watched = await openPage(browser, service.url)
  const { page, open } = watched
  await open('overview')
  await see(page, 'comedian-v1')
  await page.keyboard.press('Tab')
  expect(await page.evaluate(() => document.activeElement?.textContent)).toBe('Skip to the content')
  await page.keyboard.press('Enter')
  expect(await page.evaluate(() => document.activeElement?.tagName)).toBe('MAIN')
  await page.getByRole('link', { name: 'Receipts', exact: true }).focus()
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { level: 1, name: 'Receipts' }).waitFor()
  expect(await page.evaluate(() => document.activeElement?.tagName)).toBe('MAIN')
  expect(await page.title()).toBe('Receipts · Countersign')
  await watched.close()
})
