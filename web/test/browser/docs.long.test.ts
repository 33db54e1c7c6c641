import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startService, type TestService } from '../../../server/test/harness.ts'
import { findAccessibilityIssues, overflows } from './accessibility.ts'
import { launchBrowser, openPage } from './browser.ts'

type OpenApiDocument = { paths: Record<string, Record<string, { operationId: string }>> }

let service: TestService
let browser: Browser
beforeAll(async () => {
  ;[service, browser] = await Promise.all([startService(), launchBrowser()])
})
afterAll(async () => {
  await browser?.close()
  await service?.close()
})

const listOperations = ({ paths }: OpenApiDocument) =>
  Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, { operationId }]) => `${operationId} ${method.toUpperCase()} ${path}`),
  )

for (const colorScheme of ['light', 'dark'] as const) {
  test(`the API page shows every operation of openapi.json without an error, ${colorScheme}`, async () => {
    const { page, problems, foreignRequests, close } = await openPage(browser, service.url, { colorScheme })
    await page.goto(`${service.url}/docs`)
    await page.locator('article').first().waitFor()
    const shownOperations = await page
      .locator('article')
      .evaluateAll((articles) =>
        articles.map((article) => `${article.id} ${article.querySelector('h3')!.textContent!.replace(/\s+/g, ' ')}`),
      )
    const describedOperations = listOperations((await service.get('/openapi.json')).body)
    expect(shownOperations.sort()).toEqual(describedOperations.sort())
    expect(await page.locator('nav a').count()).toBe(describedOperations.length)

    // The contents of a details element are built when it is opened.
    await page.evaluate(() => {
      for (const details of document.querySelectorAll('article details')) (details as HTMLDetailsElement).open = true
    })
    await expect.poll(() => page.locator('article details > summary:only-child').count()).toBe(0)
    expect(await findAccessibilityIssues(page)).toEqual({ unnamed: [], lowContrast: [] })
    expect(problems).toEqual([])
    expect(foreignRequests).toEqual([])
    await close()
  })
}

test('every operation of the committed openapi.json is on the page', async () => {
  const committedDocument = JSON.parse(
    readFileSync(resolve(import.meta.dirname, '../../../openapi.json'), 'utf8'),
  ) as OpenApiDocument
  const { page, close } = await openPage(browser, service.url)
  await page.goto(`${service.url}/docs`)
  await page.locator('article').first().waitFor()
  const ids = new Set(await page.locator('article').evaluateAll((articles) => articles.map(({ id }) => id)))
  const missing = listOperations(committedDocument).filter((operation) => !ids.has(operation.split(' ')[0]!))
  expect(missing).toEqual([])
  await close()
})

test('the page opens at the linked endpoint, filters by words, and fits a narrow screen', async () => {
  const { page, problems, close } = await openPage(browser, service.url, { viewport: { width: 390, height: 800 } })
  await page.goto(`${service.url}/docs#run`)
  await expect
    .poll(() => page.locator('#run').evaluate((article) => article.getBoundingClientRect().top))
    .toBeLessThan(100)
  expect(await overflows(page)).toBe(false)
  await page.getByLabel('Find').fill('delete webhook')
  await expect.poll(() => page.locator('article:visible').count()).toBe(1)
  expect(await page.locator('article:visible').getAttribute('id')).toBe('deleteWebhook')
  expect(problems).toEqual([])
  await close()
})
