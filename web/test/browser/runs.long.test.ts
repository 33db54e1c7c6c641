import { readFile } from 'node:fs/promises'
import { sql } from 'kysely'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startService, type TestService } from '../../../server/test/harness.ts'
import { type Axe, installAxe } from './axe.ts'
import { launchBrowser, openPage, signIn, waitForText } from './browser.ts'
import { buildDashboardIfStale } from './build-dashboard.ts'
import { createPaidRuns } from './paid-runs.ts'

const HTML_INJECTION = '<img src=x onerror="globalThis.pwned=1">'
/** Ten thousand by hand: RUNS_IN_LIST=10000. */
const MANY = Number(process.env.RUNS_IN_LIST ?? 1_500)
/** A page of runs is 100; what is in view is far less. */
const MOST_ROWS_IN_PAGE = 120

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

test('a run leads from the list to its timeline, output and receipt, and not to another tenant’s run', async () => {
  const [tenant, other] = [await service.onboard('Acme'), await service.onboard('Other')]
  const body = { spender: HTML_INJECTION, tags: { project: HTML_INJECTION } }
  await createPaidRuns(service, 1, { headers: tenant.headers, body })
  const [foreign] = await createPaidRuns(service, 1, { headers: other.headers })
  const testPage = await openPage(browser, service.url)
  const { page, open, problems, foreignRequests } = testPage
  await signIn(testPage, tenant.apiKey)
  await open('account/runs')
  const rows = page.getByRole('table', { name: 'Runs' }).locator('tbody tr[data-index]')
  await expect.poll(() => rows.count()).toBe(1)
  expect(await page.content()).not.toContain(foreign!.run_id)
  expect(await axe.findIssues(page)).toEqual([])
  await rows.first().getByRole('link').first().click()

  const steps = page.getByRole('list', { name: 'Timeline' }).locator('> li')
  await expect.poll(() => steps.count()).toBe(8)
  expect(await steps.locator('strong').allTextContents()).toEqual([
    ...['Route', 'Policy', 'Payment', 'Work', 'Verification', 'Settlement', 'Receipt', 'Log'],
  ])
  await expect.poll(() => steps.last().innerText()).toContain('of the public log')
  await waitForText(page, HTML_INJECTION)
  expect(await page.evaluate(() => (globalThis as { pwned?: number }).pwned)).toBeUndefined()
  expect(await axe.findIssues(page)).toEqual([])
  await page.getByRole('link', { name: 'Open and verify' }).click()
  await waitForText(page, 'The receipt is valid')

  await open(`account/runs/${foreign!.run_id}`)
  await waitForText(page, `There is no run ${foreign!.run_id}`)
  expect(problems.filter((problem) => !/404/.test(problem))).toEqual([])
  expect(foreignRequests).toEqual([])
  await testPage.close()
})

test('filters are in the address, a run id opens its run, and what is listed is saved as CSV', async () => {
  const tenant = await service.onboard('Filters')
  const named = await createPaidRuns(service, 2, { headers: tenant.headers, body: { spender: 'buyer-1' } })
  const [coded] = await createPaidRuns(service, 1, { headers: tenant.headers, body: { agent_id: 'coder-v1' } })
  const testPage = await openPage(browser, service.url)
  const { page, open, problems } = testPage
  await signIn(testPage, tenant.apiKey)
  await open('account/runs')
  const rows = page.getByRole('table', { name: 'Runs' }).locator('tbody tr[data-index]')
  await expect.poll(() => rows.count()).toBe(3)
  await page.getByLabel('Spender').first().fill('buyer-1')
  await page.getByRole('button', { name: 'Apply' }).click()
  await expect.poll(() => rows.count()).toBe(2)
  expect(new URL(page.url()).hash).toBe('#/account/runs?spender=buyer-1')

  const download = page.waitForEvent('download')
  await page.getByRole('button', { name: 'Save as CSV' }).click()
  const csv = await readFile(await (await download).path(), 'utf8')
  expect(
    csv
      .split('\r\n')
      .slice(1)
      .map((line) => line.split(',')[0]),
  ).toEqual(named.map(({ run_id }) => run_id).reverse())

  await page.getByText('Columns').click()
  await page.getByLabel('Tags').check()
  expect(await page.getByRole('columnheader').allTextContents()).toContain('Tags')
  await page.getByRole('button', { name: 'Clear' }).click()
  await page.getByRole('combobox', { name: 'Outcome' }).selectOption('blocked')
  await waitForText(page, 'No run fits these filters.')
  await page.getByRole('button', { name: 'Clear' }).click()
  await page.getByLabel('Run id').fill(coded!.run_id)
  await page.getByRole('button', { name: 'Apply' }).click()
  await waitForText(page, 'run on coder-v1')
  expect(problems).toEqual([])
  await testPage.close()
})

test('a long list of runs is scrolled to the last one with few rows in the page at any time', async () => {
  const tenant = await service.onboard('Large')
  const [first] = await createPaidRuns(service, 1, { headers: tenant.headers })
  // Older ones: copies of the ended run with ids before its own.
  const columns = await sql<{ list: string }>`
    select string_agg(quote_ident(attname), ', ') as list from pg_attribute
    where attrelid = 'ended_runs'::regclass and attnum > 0 and not attisdropped and attname <> 'id'`.execute(service.db)
  const list = sql.raw(columns.rows[0]!.list)
  await sql`
    insert into ended_runs (id, ${list}) select 'run_0190' || lpad(to_hex(number), 4, '0') || substr(id, 13), ${list}
    from ended_runs, generate_series(1, ${MANY - 1}) number where id = ${first!.run_id}`.execute(service.db)
  const testPage = await openPage(browser, service.url)
  const { page, open, problems } = testPage
  await signIn(testPage, tenant.apiKey)
  await open('account/runs')
  const table = page.getByRole('table', { name: 'Runs' })
  await table.locator('tbody tr[data-index="0"]').waitFor()
  await page.evaluate(() => {
    const frames = { longest: 0, last: performance.now(), mostRows: 0 }
    Object.assign(globalThis, { frames })
    const look = (now: number) => {
      frames.longest = Math.max(frames.longest, now - frames.last)
      frames.last = now
      frames.mostRows = Math.max(frames.mostRows, document.querySelectorAll('tbody tr').length)
      requestAnimationFrame(look)
    }
    requestAnimationFrame(look)
  })
  const lastIndex = () => table.locator('tbody tr[data-index]').last().getAttribute('data-index')
  await expect
    .poll(
      async () => {
        await page.evaluate(() => scrollBy(0, 8_000))
        return Number(await lastIndex())
      },
      { timeout: 120_000, interval: 30 },
    )
    .toBe(MANY - 1)
  const { longest, mostRows } = await page.evaluate(
    () => (globalThis as unknown as { frames: { longest: number; mostRows: number } }).frames,
  )
  console.log(`longest frame while scrolling through ${MANY} runs: ${longest.toFixed(0)} ms`)
  expect(mostRows).toBeLessThan(MOST_ROWS_IN_PAGE)
  await page.evaluate(() => scrollTo(0, 0))
  await table.locator('tbody tr[data-index="0"]').waitFor()
  expect(problems).toEqual([])
  await testPage.close()
}, 180_000)
