import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startService, type TestService } from '../harness.ts'
import { findFlaws, overflows } from './accessibility.ts'
import { launchBrowser, openPage } from './browser.ts'

type Description = { paths: Record<string, Record<string, { operationId: string }>> }

let service: TestService
let browser: Browser
beforeAll(async () => {
  ;[service, browser] = await Promise.all([startService(), launchBrowser()])
})
afterAll(async () => {
  await browser?.close()
  await service?.close()
})

const operationsOf = ({ paths }: Description) =>
  Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, { operationId }]) => `${operationId} ${method.toUpperCase()} ${path}`),
  )

for (const colorScheme of ['light', 'dark'] as const) {
  test(`the API page shows every operation of the description, without an error, ${colorScheme}`, async () => {
    const { page, problems, strangers, close } = await openPage(browser, service.url, { colorScheme })
    await page.goto(`${service.url}/docs`)
    await page.locator('article').first().waitFor()
    const shown = await page
      .locator('article')
      .evaluateAll((articles) =>
        articles.map((article) => `${article.id} ${article.querySelector('h3')!.textContent!.replace(/\s+/g, ' ')}`),
      )
    const described = operationsOf((await service.get('/openapi.json')).body)
    expect(shown.sort()).toEqual(described.sort())
    expect(await page.locator('nav a').count()).toBe(described.length)

    // What is folded is built when it is opened.
    await page.evaluate(() => {
      for (const fold of document.querySelectorAll('article details')) (fold as HTMLDetailsElement).open = true
    })
    await expect.poll(() => page.locator('article details > summary:only-child').count()).toBe(0)
    expect(await findFlaws(page)).toEqual({ unnamed: [], faint: [] })
    expect(problems).toEqual([])
    expect(strangers).toEqual([])
    await close()
  })
}

test('every operation of the committed description is on the page', async () => {
  const committed = JSON.parse(
    readFileSync(resolve(import.meta.dirname, '../../../openapi.json'), 'utf8'),
  ) as Description
  const { page, close } = await openPage(browser, service.url)
  await page.goto(`${service.url}/docs`)
  await page.locator('article').first().waitFor()
  const ids = new Set(await page.locator('article').evaluateAll((articles) => articles.map(({ id }) => id)))
  const missing = operationsOf(committed).filter((operation) => !ids.has(operation.split(' ')[0]!))
  expect(missing).toEqual([])
  await close()
})

test('the page opens at the endpoint it was asked for, finds by word, and fits a narrow screen', async () => {
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
