import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createDemoWorld } from '../../../server/src/commands/demo-world.ts'
import { startService, type TestService } from '../../../server/test/harness.ts'
import { overflows } from './accessibility.ts'
import { type Axe, installAxe } from './axe.ts'
import { launchBrowser, openPage, signIn, untilLoaded } from './browser.ts'
import { buildDashboardIfStale } from './build-dashboard.ts'
import { type DemoWorld, listAddresses } from './dashboard-pages.ts'

/** It would run if any page took a stored text for HTML. */
const CANARY = '<img src=x onerror="globalThis.pwned=1">'

let service: TestService
let browser: Browser
let axe: Axe
let world: DemoWorld
beforeAll(async () => {
  await buildDashboardIfStale()
  ;[service, browser, axe] = await Promise.all([startService(), launchBrowser(), installAxe()])
  const { adminKey } = service.service
  world = await createDemoWorld({ url: service.url, adminKey, text: (plain) => `${plain} ${CANARY}` })
})
afterAll(async () => {
  axe?.remove()
  await browser?.close()
  await service?.close()
})

for (const [name, viewport] of Object.entries({
  desktop: { width: 1280, height: 900 },
  phone: { width: 390, height: 844 },
})) {
  test(`every page, with hostile texts in all its rows, can be used by everybody, light and dark, on a ${name}`, async () => {
    const testPage = await openPage(browser, service.url, { viewport })
    const { page, problems, foreignRequests, open } = testPage
    await signIn(testPage, world.apiKey)
    const issues: string[] = []
    for (const address of listAddresses(world)) {
      await open(address)
      await untilLoaded(page)
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme })
        for (const issue of await axe.findIssues(page)) issues.push(`${address}, ${colorScheme}: ${issue}`)
      }
      if (await overflows(page)) issues.push(`${address} is wider than the screen`)
      const injected = await page.locator('main :is(img, script, iframe)').count()
      if (injected > 0) issues.push(`${address} has HTML of a stored text`)
    }
    expect(issues).toEqual([])
    expect(await page.evaluate(() => (globalThis as { pwned?: number }).pwned)).toBeUndefined()
    expect(problems).toEqual([])
    expect(foreignRequests).toEqual([])
    await testPage.close()
  }, 600_000)
}

test('another tenant opens none of its things, and finds none of its texts on any page', async () => {
  const stranger = await service.onboard('Stranger')
  const testPage = await openPage(browser, service.url)
  const { page, open } = testPage
  await signIn(testPage, stranger.apiKey)
  const leaks: string[] = []
  for (const address of listAddresses(world).filter((one) => one.startsWith('account/'))) {
    await open(address)
    await untilLoaded(page)
    const text = await page.locator('body').innerText()
    if (/northwind|report-writer|apollo|rotterdam|onerror/i.test(text)) leaks.push(address)
  }
  expect(leaks).toEqual([])
  await testPage.close()
}, 300_000)

test('a receipt on paper is the receipt alone, with its ids in full', async () => {
  const testPage = await openPage(browser, service.url, { colorScheme: 'dark' })
  const { page, open } = testPage
  const { body } = await service.get('/api/receipts?limit=1')
  await open(`receipts/${body.receipts[0].receipt_id}`)
  await page.getByText('The receipt is valid.').waitFor()
  const inkOf = () => page.evaluate(() => getComputedStyle(document.body).color)
  const inkOnScreen = await inkOf()
  await page.emulateMedia({ media: 'print', colorScheme: 'dark' })
  await expect.poll(inkOf).not.toBe(inkOnScreen)
  expect(await page.getByRole('banner').isVisible()).toBe(false)
  expect(await page.getByRole('button').filter({ visible: true }).count()).toBe(0)
  const shortened = await page
    .locator('.id-head')
    .evaluateAll((heads) => heads.filter((head) => head.scrollWidth > head.clientWidth + 1).length)
  expect(shortened).toBe(0)
  await testPage.close()
})
