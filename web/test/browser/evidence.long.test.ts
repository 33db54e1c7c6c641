import { readFileSync } from 'node:fs'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startService, type TestService } from '../../../server/test/harness.ts'
import { overflows } from './accessibility.ts'
import { type Axe, installAxe } from './axe.ts'
import { launchBrowser, openPage, signIn, type TestPage, waitForText } from './browser.ts'
import { buildDashboardIfStale } from './build-dashboard.ts'
import { createPaidRuns, type PaidRun } from './paid-runs.ts'

const CANARY = '<img src=x onerror="globalThis.pwned=1">'

let service: TestService
let foreignService: TestService
let browser: Browser
let axe: Axe
let tenant: Awaited<ReturnType<TestService['onboard']>>
let run: PaidRun & { output: string }
let foreignRun: PaidRun
let good: string
let tampered: string
let foreign: string
beforeAll(async () => {
  await buildDashboardIfStale()
  ;[service, foreignService, browser, axe] = await Promise.all([
    startService(),
    startService(),
    launchBrowser(),
    installAxe(),
  ])
  tenant = await service.onboard('Evidence Org')
  ;[run] = (await createPaidRuns(service, 1, { headers: tenant.headers })) as [typeof run]
  ;[foreignRun] = (await createPaidRuns(foreignService, 1)) as [PaidRun]
  const read = async (from: TestService, { receipt }: PaidRun) =>
    (await from.get(`/api/receipts/${receipt.receipt_id}`)).body
  const receipt = await read(service, run)
  good = JSON.stringify(receipt)
  tampered = JSON.stringify({ ...receipt, pricing: { ...receipt.pricing, price_usdc: 9 } })
  foreign = JSON.stringify(await read(foreignService, foreignRun))
})
afterAll(async () => {
  await browser?.close()
  await service?.close()
  await foreignService?.close()
  axe?.remove()
})

type NamedText = { name: string; text: string }
const toFiles = (files: NamedText[]) =>
  files.map(({ name, text }) => ({ name, mimeType: 'application/json', buffer: Buffer.from(text) }))

async function dropFiles(page: Page, files: NamedText[]) {
  await page.getByRole('heading', { level: 1, name: 'Verify' }).waitFor()
  await page.evaluate((list) => {
    const dataTransfer = new DataTransfer()
    for (const { name, text } of list) dataTransfer.items.add(new File([text], name))
    const target = document.querySelector('h1')!
    for (const type of ['dragover', 'drop'])
      target.dispatchEvent(new DragEvent(type, { bubbles: true, cancelable: true, dataTransfer }))
  }, files)
}

const verdicts = async ({ page }: TestPage, count: number): Promise<(string | null)[]> => {
  const items = page.locator('[data-verdict]')
  await expect.poll(() => items.count()).toBe(count)
  return items.evaluateAll((elements) => elements.map((element) => element.getAttribute('data-verdict')))
}

test('a good, a tampered and a foreign receipt are told apart by id, file, drop and paste', async () => {
  const testPage = await openPage(browser, service.url)
  const { page, open, problems, foreignRequests } = testPage
  const texts = [
    { name: 'good.json', text: good },
    { name: 'tampered.json', text: tampered },
    { name: 'foreign.json', text: foreign },
  ]
  const expected = ['valid', 'invalid', 'invalid']
  await open('verify')
  await page.getByLabel('From files').setInputFiles(toFiles(texts))
  expect(await verdicts(testPage, 3)).toEqual(expected)
  await waitForText(page, '1 of 3 are valid.')
  await waitForText(page, 'It may be of another service')

  await page.reload()
  await dropFiles(page, texts)
  expect(await verdicts(testPage, 3)).toEqual(expected)

  for (const [index, { text }] of texts.entries()) {
    await page.getByLabel('Receipt or attestation, as JSON').fill(text)
    await page.getByRole('button', { name: 'Verify', exact: true }).click()
    expect(await verdicts(testPage, 1)).toEqual([expected[index]])
  }

  // With the keys of the other service the foreign receipt is good, and ours is foreign.
  await page.getByLabel('Trusted keys').selectOption('Pasted keys')
  const { text: foreignKeys } = await foreignService.get('/.well-known/jwks.json')
  await page.getByLabel('Key set (JWKS)').fill(foreignKeys)
  expect(await verdicts(testPage, 1)).toEqual(['valid'])
  await dropFiles(page, texts)
  expect(await verdicts(testPage, 3)).toEqual(['invalid', 'invalid', 'valid'])
  await page.getByLabel('Trusted keys').selectOption('Keys of this service')
  expect(await verdicts(testPage, 3)).toEqual(expected)

  const byId = page.getByRole('form', { name: 'Verify by id' })
  for (const id of [run.receipt.receipt_id, run.run_id]) {
    await byId.getByLabel('By id').fill(id)
    await byId.getByRole('button', { name: 'Look up' }).click()
    await page.waitForURL(`**/*${id}`)
    await waitForText(page, 'The receipt is valid.')
  }
  expect(problems).toEqual([])
  expect(foreignRequests).toEqual([])
  await byId.getByLabel('By id').fill(foreignRun.receipt.receipt_id)
  await byId.getByRole('button', { name: 'Look up' }).click()
  await page.getByRole('alert').waitFor()
  await testPage.close()
})

test('the answer of a run opens its receipt, and a file that is no evidence does not hide the others', async () => {
  const testPage = await openPage(browser, service.url)
  const { page, open } = testPage
  await open('verify')
  await dropFiles(page, [
    { name: 'answer.json', text: JSON.stringify(run) },
    { name: 'other-output.json', text: JSON.stringify({ ...run, output: `${run.output}!` }) },
    { name: `${CANARY}.json`, text: CANARY },
  ])
  expect(await verdicts(testPage, 2)).toEqual(['valid', 'invalid'])
  await page.getByRole('region', { name: 'answer.json' }).getByText('The receipt is about this output.').waitFor()
  await page
    .getByRole('region', { name: `${CANARY}.json` })
    .getByText('Not valid JSON')
    .waitFor()
  expect(await page.evaluate(() => 'pwned' in globalThis)).toBe(false)
  await testPage.close()
})

test('the audit trail is filtered, its chain holds, and a changed answer is noticed', async () => {
  await service.post('/api/keys', { name: `Agent ${CANARY}`, scopes: ['read'] }, tenant.headers)
  await service.call('PUT', '/api/settings', { self_approval: 'never' }, tenant.headers)
  const testPage = await openPage(browser, service.url)
  const { page, open, problems } = testPage
  await signIn(testPage, tenant.apiKey)
  await open('account/audit')
  const table = page.getByRole('table', { name: 'Audit trail' })
  await table.getByRole('link', { name: 'settings.updated' }).waitFor()
  const { events } = (await service.get('/api/audit?limit=100', tenant.headers)).body
  await waitForText(page, `The chain holds from event 1 to event ${events.length}.`)
  await page.getByRole('button', { name: 'Check the whole chain' }).click()
  await waitForText(page, `All ${events.length} events hold, from the first to the head.`)
  await table.getByRole('link', { name: 'Event 1' }).click()
  await page.getByRole('region', { name: 'Event 1', exact: true }).getByText('"hash": "sha256:').waitFor()

  const save = async (name: string) => {
    const [download] = await Promise.all([page.waitForEvent('download'), page.getByText(name).click()])
    return readFileSync(await download.path(), 'utf8')
  }
  expect(JSON.parse(await save('Save as JSON'))).toEqual(events)
  expect((await save('Save as CSV')).split('\r\n')).toHaveLength(events.length + 1)
  const chain = await save('The whole chain (NDJSON)')

  await page.getByLabel('Type').fill('key.created')
  await page.getByRole('button', { name: 'Apply' }).click()
  await waitForText(page, 'events shown are unchanged')
  expect(page.url()).toContain('type=key.created')
  expect(await table.getByRole('link', { name: 'settings.updated' }).count()).toBe(0)
  expect(await page.locator('main img').count()).toBe(0)

  // The exported chain can be verified without this page's data.
  await open('verify')
  const settingsChange = '"self_approval":"never"'
  expect(chain).toContain(settingsChange)
  await dropFiles(page, [
    { name: 'audit.ndjson', text: chain },
    { name: 'forged.ndjson', text: chain.replace(settingsChange, '"self_approval":"single_key"') },
  ])
  expect(await verdicts(testPage, 2)).toEqual(['valid', 'invalid'])

  await page.route('**/api/audit?*', async (route) => {
    const response = await route.fetch()
    await route.fulfill({
      response,
      body: (await response.text()).replace(settingsChange, '"self_approval":"single_key"'),
    })
  })
  await open('account/audit')
  await page.reload()
  await waitForText(page, 'The chain does not hold.')
  await waitForText(page, 'its hash is not the hash of its contents')
  await page.getByRole('button', { name: 'Check the whole chain' }).click()
  await waitForText(page, 'The whole chain does not hold.')
  expect(await page.evaluate(() => 'pwned' in globalThis)).toBe(false)
  expect(problems).toEqual([])
  await testPage.close()

  const stranger = await service.onboard('Stranger Org')
  const strangerPage = await openPage(browser, service.url)
  await signIn(strangerPage, stranger.apiKey)
  await strangerPage.open('account/audit')
  await waitForText(strangerPage.page, 'The chain holds from event 1 to event 1.')
  await strangerPage.open(`account/audit?subject=${run.run_id}`)
  await waitForText(strangerPage.page, 'No event matches this filter.')
  await strangerPage.close()
})

test('a new reading reaches the basis page by its stream, and without a stream the page asks again', async () => {
  const testPage = await openPage(browser, service.url)
  const { page, open, problems } = testPage
  await open('basis')
  await page.locator('[data-stream="live"]').waitFor()
  await open('basis/AAPLx')
  await page.locator('[data-stream="live"]').waitFor()
  await waitForText(page, 'The attestation is valid.')
  expect(problems).toEqual([])

  const { body: quote } = await service.get('/api/basis/v1/quote/AAPLx')
  let quoteReads = 0
  page.on('request', (request) => {
    if (request.url().includes('/quote/')) quoteReads += 1
  })
  const readings = [quote, { ...quote, wrapper_price: 123_456.75 }]
  await page.route('**/api/basis/v1/stream*', (route) =>
    route.fulfill({
      contentType: 'text/event-stream',
      body: readings.map((reading) => `event: quote\ndata: ${JSON.stringify(reading)}\n\n`).join(''),
    }),
  )
  await page.reload()
  await waitForText(page, '123456.75')
  expect(quoteReads).toBeLessThanOrEqual(1)
  // The stream of this test ends after its readings.
  await page.locator('[data-stream="polling"]').waitFor()
  await testPage.close()
})

for (const [colorScheme, width] of [
  ['light', 1280],
  ['dark', 390],
] as const)
  test(`the pages of evidence are accessible, ${colorScheme}, ${width} wide`, async () => {
    const testPage = await openPage(browser, service.url, { colorScheme, viewport: { width, height: 844 } })
    const { page, open, problems } = testPage
    const check = async (name: string) => {
      expect(await axe.findIssues(page), name).toEqual([])
      expect(await overflows(page), `${name} is wider than the screen`).toBe(false)
    }
    await signIn(testPage, tenant.apiKey)
    await open('account/audit')
    await waitForText(page, 'The chain holds from event 1')
    await page.getByRole('table').getByRole('link', { name: 'Event 2' }).click()
    await page.getByRole('region', { name: 'Event 2', exact: true }).waitFor()
    await check('audit')
    await open('verify')
    await dropFiles(page, [
      { name: 'good.json', text: good },
      { name: 'foreign.json', text: foreign },
      { name: 'nothing.json', text: '{}' },
    ])
    await waitForText(page, '1 of 3 are valid.')
    await check('verify')
    await open('basis/AAPLx')
    await page.locator('[data-stream="live"]').waitFor()
    await waitForText(page, 'The attestation is valid.')
    await check('basis')
    expect(problems).toEqual([])
    await testPage.close()
  })
