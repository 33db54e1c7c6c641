import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startService, type TestService } from '../../../server/test/harness.ts'
import { findAccessibilityIssues, overflows } from './accessibility.ts'
import { type Axe, installAxe } from './axe.ts'
import { launchBrowser, openPage, type TestPage } from './browser.ts'

type OpenApiDocument = { paths: Record<string, Record<string, { operationId: string }>> }

let service: TestService
let browser: Browser
let axe: Axe
beforeAll(async () => {
  ;[service, browser, axe] = await Promise.all([startService(), launchBrowser(), installAxe()])
})
afterAll(async () => {
  await browser?.close()
  await service?.close()
  axe?.remove()
})

const PHONE = { viewport: { width: 390, height: 844 } }

const listOperations = ({ paths }: OpenApiDocument) =>
  Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, { operationId }]) => ({
      operationId,
      heading: `${method.toUpperCase()} ${path}`,
    })),
  )

const open = async (path: string, options: Parameters<typeof openPage>[2] = {}): Promise<TestPage> => {
  const testPage = await openPage(browser, service.url, options)
  await testPage.page.goto(`${service.url}${path}`)
  return testPage
}

/** What the browser itself says about an answer that the test asks for. */
const isExpected = (problem: string, ...statuses: number[]) =>
  statuses.some((status) =>
    problem.startsWith(`Failed to load resource: the server responded with a status of ${status}`),
  )

const openEverything = (page: Page) =>
  page.evaluate(() => {
    for (const details of document.querySelectorAll<HTMLDetailsElement>('main details')) details.open = true
  })

const answerOf = (page: Page) => page.locator('#answer')

test('every call of openapi.json opens at its address, with samples and a form, without an error', async () => {
  const committed = JSON.parse(readFileSync(join(import.meta.dirname, '../../../openapi.json'), 'utf8'))
  const described = listOperations((await service.get('/openapi.json')).body)
  const missing = listOperations(committed).filter(
    ({ operationId }) => !described.some((operation) => operation.operationId === operationId),
  )
  expect(missing).toEqual([])

  const { page, problems, foreignRequests, close } = await open('/docs')
  expect(await page.locator('#docs-contents details a').count()).toBe(described.length)
  // Moves between the pages as a reader does, by the links of the contents.
  const shown = await page.evaluate(
    async (operationIds) => {
      const list: object[] = []
      for (const operationId of operationIds) {
        const path = `/docs/operations/${operationId}`
        const announced = new Promise((resolve) => {
          new MutationObserver((_, observer) => {
            observer.disconnect()
            resolve(undefined)
          }).observe(document.querySelector('#docs-content')!, { childList: true })
        })
        document.querySelector<HTMLAnchorElement>(`#docs-contents a[href="${path}"]`)!.click()
        await announced
        await new Promise((resolve) => setTimeout(resolve))
        list.push({
          operationId,
          heading: document.querySelector('.endpoint')!.textContent!.replace(/\s+/g, ' ').trim(),
          path: location.pathname,
          current: document.querySelector('#docs-contents [aria-current]')!.getAttribute('href'),
          samples: document.querySelectorAll('.samples > .code').length >= 2,
          form: !document.querySelector<HTMLElement>('#try')!.hidden,
        })
      }
      return list
    },
    described.map(({ operationId }) => operationId),
  )
  expect(shown).toEqual(
    described.map(({ operationId, heading }) => {
      const path = `/docs/operations/${operationId}`
      return { operationId, heading, path, current: path, samples: true, form: true }
    }),
  )
  expect(problems).toEqual([])
  expect(foreignRequests).toEqual([])
  await close()
})

const OPERATION = '/docs/operations/run'
const GUIDE = '/docs/guides/webhooks'

for (const { name, options, paths } of [
  {
    name: 'light',
    options: { colorScheme: 'light' as const },
    paths: ['/docs', OPERATION, GUIDE, '/docs/no-such-page'],
  },
  { name: 'dark', options: { colorScheme: 'dark' as const }, paths: [OPERATION, GUIDE] },
  { name: 'phone', options: PHONE, paths: ['/docs', '/docs/operations/updateWebhook', GUIDE] },
])
  test(`the pages are accessible and fit the screen: ${name}`, async () => {
    for (const path of [...paths, '/docs/guides/governance', '/docs/guides/performance']) {
      const { page, problems, foreignRequests, close } = await open(path, options)
      await openEverything(page)
      if (paths.includes(path)) expect(await axe.findIssues(page), path).toEqual([])
      expect(await findAccessibilityIssues(page), path).toEqual({ unnamed: [], lowContrast: [] })
      expect(await overflows(page), path).toBe(false)
      expect(
        problems.filter((problem) => !isExpected(problem, 404)),
        path,
      ).toEqual([])
      expect(foreignRequests).toEqual([])
      await close()
    }
  })

test('the answer of a call, a question before one and the results of a search are accessible', async () => {
  const { page, close } = await open('/docs/operations/run')
  await page.getByRole('button', { name: 'Send POST' }).click()
  await answerOf(page).getByText('402 Payment Required').waitFor()
  await openEverything(page)
  expect(await axe.findIssues(page, '#try')).toEqual([])
  await page.getByRole('searchbox').fill('budget')
  await page.locator('#docs-results a').first().waitFor()
  expect(await axe.findIssues(page, 'body > header')).toEqual([])
  await page.goto(`${service.url}/docs/operations/deleteWebhook`)
  await page.getByRole('button', { name: 'Send DELETE' }).click()
  await page.getByRole('dialog').waitFor()
  expect(await axe.findIssues(page, 'dialog')).toEqual([])
  await close()
})

test('a free call is sent and its status, headers and body are shown', async () => {
  const { page, problems, close } = await open('/docs/operations/getPricing')
  await page.getByRole('button', { name: 'Send GET' }).click()
  await answerOf(page).getByText('200 OK').waitFor()
  const body = JSON.parse((await answerOf(page).locator('pre').first().textContent())!)
  expect(body).toEqual((await service.get('/api/pricing')).body)
  await answerOf(page).getByText('Headers', { exact: true }).click()
  expect(await answerOf(page).textContent()).toContain('x-request-id: ')

  await page.goto(`${service.url}/docs/operations/route`)
  await page.getByRole('button', { name: 'Send POST' }).click()
  await answerOf(page).getByText('200 OK').waitFor()
  expect(await answerOf(page).textContent()).toContain('"recommended_agent_id": "analyst-v1"')
  expect(problems).toEqual([])
  await close()
})

test('an unpaid run shows the terms of its 402, and nothing is charged', async () => {
  const { page, problems, close } = await open('/docs/operations/run')
  const key = await page.getByRole('textbox', { name: 'Idempotency-Key' }).inputValue()
  expect(key).toMatch(/^[0-9a-f]{32}$/)
  await page.getByRole('button', { name: 'Send POST' }).click()
  await answerOf(page).getByText('402 Payment Required').waitFor()
  const terms = await answerOf(page).locator('.terms').innerText()
  expect(terms).toMatch(/Price\s+0\.025 USDC \(25000 units\)/)
  expect(terms).toMatch(/Scheme\s+exact on eip155:8453/)
  expect(terms).toMatch(/Pay to\s+0x[0-9a-fA-F]{40}/)
  await answerOf(page).getByText('PAYMENT-REQUIRED, decoded').click()
  const decoded = JSON.parse((await answerOf(page).locator('.terms pre').textContent())!)
  expect(decoded).toMatchObject({ x402Version: 2, accepts: [{ scheme: 'exact', amount: '25000' }] })
  expect(problems.filter((problem) => !isExpected(problem, 402))).toEqual([])
  await close()
})

test('a call without its key shows 401; the key acts, stays in memory between pages, and is stored nowhere', async () => {
  const { apiKey } = await service.onboard()
  const { page, problems, close } = await open('/docs/operations/getMe')
  await page.getByRole('button', { name: 'Send GET' }).click()
  await answerOf(page).getByText('401 Unauthorized').waitFor()
  await page.getByLabel('API key', { exact: true }).fill(apiKey)
  await page.getByRole('button', { name: 'Send GET' }).click()
  await answerOf(page).getByText('200 OK').waitFor()

  await page.locator('#docs-contents a[href="/docs/operations/listOwnKeys"]').click()
  await page.getByRole('heading', { level: 1 }).waitFor()
  await expect.poll(() => page.getByLabel('API key', { exact: true }).inputValue()).toBe(apiKey)
  const readStorage = () =>
    page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie]))
  expect(await readStorage()).not.toContain(apiKey)
  await page.reload()
  expect(await page.getByLabel('API key', { exact: true }).inputValue()).toBe('')

  await page.getByLabel('API key', { exact: true }).fill(apiKey)
  await page.getByLabel('Keep it for this tab').check()
  await page.reload()
  expect(await page.getByLabel('API key', { exact: true }).inputValue()).toBe(apiKey)
  await page.getByLabel('Keep it for this tab').uncheck()
  expect(await readStorage()).not.toContain(apiKey)
  expect(problems.filter((problem) => !isExpected(problem, 401))).toEqual([])
  await close()
})

test('a call that deletes is sent only after it was confirmed', async () => {
  const { apiKey, headers } = await service.onboard()
  const { body } = await service.post(
    '/api/webhooks',
    { url: 'https://example.com/hook', events: ['run.completed'] },
    headers,
  )
  expect(body.id).toBeTruthy()
  const { page, close } = await open('/docs/operations/deleteWebhook')
  const sent: string[] = []
  page.on('request', (request) => {
    if (request.method() === 'DELETE') sent.push(request.url())
  })
  await page.getByLabel('API key', { exact: true }).fill(apiKey)
  await page.getByLabel('id (required)').fill(body.id)
  await page.getByRole('button', { name: 'Send DELETE' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click()
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  expect(sent).toEqual([])
  await page.getByRole('button', { name: 'Send DELETE' }).click()
  await page.keyboard.press('Escape')
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  expect(sent).toEqual([])
  await page.getByRole('button', { name: 'Send DELETE' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Send DELETE' }).click()
  await answerOf(page).getByText('200 OK').waitFor()
  expect(sent).toHaveLength(1)
  await close()
})

test('a body that is not JSON is not sent', async () => {
  const { page, close } = await open('/docs/operations/route')
  const sent: string[] = []
  page.on('request', (request) => {
    if (request.method() !== 'GET') sent.push(request.url())
  })
  await page.getByLabel('Body, as JSON').fill('{"task": ')
  await page.getByRole('button', { name: 'Send POST' }).click()
  await answerOf(page).getByText('The body is not JSON').waitFor()
  expect(sent).toEqual([])
  await close()
})

test('the search finds a call, a field and a heading of a guide by keyboard alone, and works offline', async () => {
  const { page, problems, close } = await open('/docs')
  await page.keyboard.press('/')
  const search = page.getByRole('searchbox')
  expect(await search.evaluate((input) => input === document.activeElement)).toBe(true)
  await search.fill('delete webhook')
  await page.locator('#docs-results a').first().waitFor()
  await page.context().setOffline(true)
  const firstResult = () => page.locator('#docs-results a').first().getAttribute('href')
  await expect.poll(firstResult).toBe('/docs/operations/deleteWebhook')
  await search.fill('max_price_usdc')
  await expect.poll(firstResult).toMatch(/#(body|answer-200)\..*max_price_usdc$/)
  await search.fill('settlement states')
  await expect.poll(firstResult).toBe('/docs/guides/money#settlement-states')
  await search.fill('no such words anywhere')
  await page.locator('#docs-results').getByText('Nothing found').waitFor()
  await page.context().setOffline(false)

  await search.fill('max_price_usdc run')
  await expect.poll(firstResult).toBe('/docs/operations/run#body.budget.max_price_usdc')
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('Enter')
  const field = page.locator('[id="body.budget.max_price_usdc"]')
  await field.waitFor()
  await expect.poll(() => field.evaluate((element) => element.getBoundingClientRect().top)).toBeLessThan(300)
  expect(new URL(page.url()).hash).toBe('#body.budget.max_price_usdc')
  await page.goBack()
  await page.getByRole('heading', { name: 'Countersign documentation' }).waitFor()
  expect(problems).toEqual([])
  await close()
})

test('former links, deep links to a hidden field, and links between guides arrive', async () => {
  const { page, problems, close } = await open('/docs#run')
  await page.waitForURL(`${service.url}/docs/operations/run`)
  await page.goto(`${service.url}/docs/operations/run#answer-200.settlement.payer`)
  await page.locator('[id="answer-200.settlement.payer"]').waitFor({ state: 'visible' })
  await page.goto(`${service.url}/docs/guides/money`)
  await page.locator('.prose a[href^="/docs/guides/governance"]').first().click()
  await page.getByRole('heading', { level: 1, name: 'Governance' }).waitFor()
  await page.locator('.outline').getByRole('link', { name: 'Mandates' }).click()
  await expect
    .poll(() => page.locator('#mandates').evaluate((heading) => heading.getBoundingClientRect().top))
    .toBeLessThan(300)
  expect(problems).toEqual([])
  await close()
})

test('the contents open over the page on a phone, and a copied command is the one that is shown', async () => {
  const { page, problems, close } = await open('/docs', {
    ...PHONE,
    permissions: ['clipboard-read', 'clipboard-write'],
  })
  expect(await page.locator('#docs-contents').isVisible()).toBe(false)
  await page.getByRole('button', { name: 'Contents' }).click()
  await page.locator('#docs-contents summary').getByText('Routing', { exact: true }).click()
  await page.locator('#docs-contents a[href="/docs/operations/route"]').click()
  await page.getByRole('heading', { level: 1, name: 'Which lane a run would take' }).waitFor()
  expect(await page.locator('#docs-contents').isVisible()).toBe(false)
  const shown = await page.locator('.samples pre').first().textContent()
  await page.getByRole('button', { name: 'Copy: Command' }).click()
  await page.getByText('Copied').waitFor()
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(shown)
  expect(problems).toEqual([])
  await close()
})

test('without scripts a call and a guide can be read, and nothing is shown that needs a script', async () => {
  const { page, close } = await open('/docs/operations/run', { javaScriptEnabled: false })
  expect(await page.locator('[id="body.task"]').isVisible()).toBe(true)
  expect(await page.locator('.samples pre').count()).toBe(3)
  expect(await page.locator('#try, #docs-search').filter({ visible: true }).count()).toBe(0)
  await page.locator('#docs-contents a[href="/docs/guides/money"]').click()
  expect(await page.getByRole('heading', { level: 1 }).innerText()).toMatch(/^Money/)
  await close()
})
