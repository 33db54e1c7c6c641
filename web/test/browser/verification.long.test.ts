import { readFileSync } from 'node:fs'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startService, type TestService } from '../../../server/test/harness.ts'
import { launchBrowser, openPage, type TestPage, waitForText } from './browser.ts'
import { buildDashboardIfStale } from './build-dashboard.ts'
import { createPaidRuns, type PaidRun } from './paid-runs.ts'

let service: TestService
let browser: Browser
let run: PaidRun
beforeAll(async () => {
  await buildDashboardIfStale()
  ;[service, browser] = await Promise.all([startService(), launchBrowser()])
  ;[run] = (await createPaidRuns(service, 2)) as [PaidRun]
})
afterAll(async () => {
  await browser?.close()
  await service?.close()
})

const evidenceField = ({ page }: TestPage) => page.getByLabel('Receipt or attestation, as JSON')

async function verify(testPage: TestPage, text: string): Promise<string | null> {
  const { page } = testPage
  await evidenceField(testPage).fill(text)
  await page.getByRole('button', { name: 'Verify' }).click()
  return page.locator('[data-verdict]').getAttribute('data-verdict')
}

const readCheck = ({ page }: TestPage, name: string) => page.locator(`[data-check="${name}"] .badge`).innerText()

test('the receipt of a paid run is listed and valid, with every check and what the checks do not prove', async () => {
  const testPage = await openPage(browser, service.url)
  const { page, open, problems } = testPage
  await open('receipts')
  await page.locator(`a[href="#/receipts/${run.receipt.receipt_id}"]`).click()
  await waitForText(page, 'The receipt is valid.')
  for (const name of ['shape', 'key', 'key_purpose', 'signature', 'prev_hash', 'checkpoint', 'inclusion'])
    expect(await readCheck(testPage, name), name).toContain('passed')
  await waitForText(page, 'That the output is correct or useful')
  expect(problems).toEqual([])
  await testPage.close()
})

test('the saved files are exactly the receipt and the key set', async () => {
  const testPage = await openPage(browser, service.url)
  const { page, open } = testPage
  await open(`receipts/${run.receipt.receipt_id}`)
  const save = async (name: string) => {
    const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name }).click()])
    return { name: download.suggestedFilename(), value: JSON.parse(readFileSync(await download.path(), 'utf8')) }
  }
  expect(await save('Save receipt')).toEqual({
    name: `${run.receipt.receipt_id}.json`,
    value: (await service.get(`/api/receipts/${run.receipt.receipt_id}`)).body,
  })
  expect(await save('Save keys')).toEqual({
    name: 'jwks.json',
    value: (await service.get('/.well-known/jwks.json')).body,
  })
  await testPage.close()
})

test('a tampered receipt is not valid, whatever was changed', async () => {
  const testPage = await openPage(browser, service.url)
  const { page, open } = testPage
  await open(`verify?receipt=${run.receipt.receipt_id}`)
  await expect.poll(() => evidenceField(testPage).inputValue()).toContain(run.receipt.receipt_id)
  const validText = await evidenceField(testPage).inputValue()
  expect(await verify(testPage, validText)).toBe('valid')

  const alterReceipt = (change: (receipt: Record<string, never>) => void) => {
    const receipt = JSON.parse(validText)
    change(receipt)
    return JSON.stringify(receipt)
  }
  const forgeries: [name: string, text: string, failing: string][] = [
    ['price', alterReceipt((receipt) => Object.assign(receipt.pricing!, { price_usdc: 9 })), 'signature'],
    ['lane', alterReceipt((receipt) => Object.assign(receipt, { agent_id: 'coder-v1' })), 'signature'],
    ['key', alterReceipt((receipt) => Object.assign(receipt.signature!, { key_id: 'stranger' })), 'key'],
    ['log index', alterReceipt((receipt) => Object.assign(receipt.log!, { index: 1 })), 'inclusion'],
    ['missing field', alterReceipt((receipt) => delete receipt.run_id), 'shape'],
  ]
  for (const [name, text, failingCheck] of forgeries) {
    expect(await verify(testPage, text), name).toBe('invalid')
    expect(await readCheck(testPage, failingCheck), name).toContain('failed')
  }
  await waitForText(page, 'The receipt is not valid.')
  await testPage.close()
})

test('the whole response of a run can be pasted, and anything that is not evidence shows an error', async () => {
  const testPage = await openPage(browser, service.url)
  const { page, open } = testPage
  await open('verify')
  expect(await verify(testPage, JSON.stringify(run))).toBe('valid')
  for (const [text, sentence] of [
    ['{"schema": "run-receipt/v1", "schema": 1}', 'Not valid JSON'],
    ['not json', 'Not valid JSON'],
    ['{"hello": "world"}', 'Neither a receipt'],
    ['[]', 'Neither a receipt'],
  ] as const) {
    await evidenceField(testPage).fill(text)
    await page.getByRole('button', { name: 'Verify' }).click()
    await page.getByRole('alert').getByText(sentence).waitFor()
  }
  await testPage.close()
})

test('an attestation is valid with the right keys and not valid with other keys', async () => {
  const testPage = await openPage(browser, service.url)
  const { page, open } = testPage
  await open('verify?attestation=AAPLx')
  await expect.poll(() => evidenceField(testPage).inputValue()).toContain('basis-attestation/v1')
  const attestation = await evidenceField(testPage).inputValue()
  expect(await verify(testPage, attestation)).toBe('valid')
  const altered = JSON.parse(attestation)
  altered.snapshot.wrapper_price += 1
  expect(await verify(testPage, JSON.stringify(altered))).toBe('invalid')

  await page.getByLabel('Trusted keys').selectOption('Pasted keys')
  const { body: jwks } = await service.get('/.well-known/jwks.json')
  await page.getByLabel('Key set (JWKS)').fill(JSON.stringify(jwks))
  expect(await verify(testPage, attestation)).toBe('valid')
  const otherKeys = { keys: jwks.keys.filter(({ purpose }: { purpose: string }) => purpose === 'receipt') }
  await page.getByLabel('Key set (JWKS)').fill(JSON.stringify(otherKeys))
  expect(await verify(testPage, attestation)).toBe('invalid')
  await testPage.close()
})

test('when the service is down, the loaded page says so, still verifies and still detects a forgery', async () => {
  const stoppedService = await startService()
  const testPage = await openPage(browser, stoppedService.url)
  const { page, open } = testPage
  const [paidRun] = (await createPaidRuns(stoppedService, 1)) as [PaidRun]
  await open(`receipts/${paidRun.receipt.receipt_id}`)
  await waitForText(page, 'The receipt is valid.')
  const savedText = await page.locator('pre.json').innerText()
  await stoppedService.close()

  await page.getByRole('link', { name: 'Verify', exact: true }).click()
  expect(await verify(testPage, savedText)).toBe('valid')
  expect(await readCheck(testPage, 'inclusion')).toContain('passed')
  expect(await verify(testPage, savedText.replace('"comedian-v1"', '"coder-v1"'))).toBe('invalid')
  await page.getByRole('link', { name: 'Overview', exact: true }).click()
  await page.getByText('The service is not responding.').waitFor()
  await testPage.close()
})
