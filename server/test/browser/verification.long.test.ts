import { readFileSync } from 'node:fs'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startService, type TestService } from '../harness.ts'
import { launchBrowser, openPage, see, type Watched } from './browser.ts'
import { builtDashboard } from './built-dashboard.ts'
import { type PaidRun, paidRuns } from './traffic.ts'

let service: TestService
let browser: Browser
let run: PaidRun
beforeAll(async () => {
  await builtDashboard()
  ;[service, browser] = await Promise.all([startService(), launchBrowser()])
  ;[run] = (await paidRuns(service, 2)) as [PaidRun]
})
afterAll(async () => {
  await browser?.close()
  await service?.close()
})

const evidence = ({ page }: Watched) => page.getByLabel('Receipt or attestation, as JSON')

async function verify(watched: Watched, text: string): Promise<string | null> {
  const { page } = watched
  await evidence(watched).fill(text)
  await page.getByRole('button', { name: 'Verify' }).click()
  return page.locator('[data-verdict]').getAttribute('data-verdict')
}

const check = ({ page }: Watched, name: string) => page.locator(`[data-check="${name}"] .mark`).innerText()

test('a receipt of a paid run is found in the list and holds, with all its checks and what they do not prove', async () => {
  const watched = await openPage(browser, service.url)
  const { page, open, problems } = watched
  await open('receipts')
  await page.locator(`a[href="#/receipts/${run.receipt.receipt_id}"]`).click()
  await see(page, 'The receipt holds.')
  for (const name of ['shape', 'key', 'key_purpose', 'signature', 'prev_hash', 'checkpoint', 'inclusion'])
    expect(await check(watched, name), name).toContain('holds')
  await see(page, 'That the output is right or useful')
  expect(problems).toEqual([])
  await watched.close()
})

test('the saved files are the receipt and the keys, as the command line reads them', async () => {
  const watched = await openPage(browser, service.url)
  const { page, open } = watched
  await open(`receipts/${run.receipt.receipt_id}`)
  const save = async (name: string) => {
    const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name }).click()])
    return { name: download.suggestedFilename(), value: JSON.parse(readFileSync(await download.path(), 'utf8')) }
  }
  expect(await save('Save the receipt')).toEqual({
    name: `${run.receipt.receipt_id}.json`,
    value: (await service.get(`/api/receipts/${run.receipt.receipt_id}`)).body,
  })
  expect(await save('Save the keys')).toEqual({
    name: 'jwks.json',
    value: (await service.get('/.well-known/jwks.json')).body,
  })
  await watched.close()
})

test('a receipt that was tampered with does not hold, whatever was changed', async () => {
  const watched = await openPage(browser, service.url)
  const { page, open } = watched
  await open(`verify?receipt=${run.receipt.receipt_id}`)
  await expect.poll(() => evidence(watched).inputValue()).toContain(run.receipt.receipt_id)
  const honest = await evidence(watched).inputValue()
  expect(await verify(watched, honest)).toBe('holds')

  const changed = (change: (receipt: Record<string, never>) => void) => {
    const receipt = JSON.parse(honest)
    change(receipt)
    return JSON.stringify(receipt)
  }
  const forgeries: [name: string, text: string, failing: string][] = [
    ['price', changed((receipt) => Object.assign(receipt.pricing!, { price_usdc: 9 })), 'signature'],
    ['lane', changed((receipt) => Object.assign(receipt, { agent_id: 'coder-v1' })), 'signature'],
    ['key', changed((receipt) => Object.assign(receipt.signature!, { key_id: 'stranger' })), 'key'],
    ['log index', changed((receipt) => Object.assign(receipt.log!, { index: 1 })), 'inclusion'],
    ['missing field', changed((receipt) => delete receipt.run_id), 'shape'],
  ]
  for (const [name, text, failing] of forgeries) {
    expect(await verify(watched, text), name).toBe('fails')
    expect(await check(watched, failing), name).toContain('fails')
  }
  await see(page, 'The receipt does not hold.')
  await watched.close()
})

test('the answer of a run can be pasted whole, and what is no evidence is refused in a sentence', async () => {
  const watched = await openPage(browser, service.url)
  const { page, open } = watched
  await open('verify')
  expect(await verify(watched, JSON.stringify(run))).toBe('holds')
  for (const [text, sentence] of [
    ['{"schema": "run-receipt/v1", "schema": 1}', 'This is not JSON'],
    ['not json', 'This is not JSON'],
    ['{"hello": "world"}', 'neither a receipt'],
    ['[]', 'neither a receipt'],
  ] as const) {
    await evidence(watched).fill(text)
    await page.getByRole('button', { name: 'Verify' }).click()
    await page.getByRole('alert').getByText(sentence).waitFor()
  }
  await watched.close()
})

test('an attestation holds, and with keys of somebody else it does not', async () => {
  const watched = await openPage(browser, service.url)
  const { page, open } = watched
  await open('verify?attestation=AAPLx')
  await expect.poll(() => evidence(watched).inputValue()).toContain('basis-attestation/v1')
  const attestation = await evidence(watched).inputValue()
  expect(await verify(watched, attestation)).toBe('holds')
  const changed = JSON.parse(attestation)
  changed.snapshot.wrapper_price += 1
  expect(await verify(watched, JSON.stringify(changed))).toBe('fails')

  await page.getByLabel('Trusted keys').selectOption('I paste them')
  const { body: jwks } = await service.get('/.well-known/jwks.json')
  await page.getByLabel('Key set (JWKS)').fill(JSON.stringify(jwks))
  expect(await verify(watched, attestation)).toBe('holds')
  const strangers = { keys: jwks.keys.filter(({ purpose }: { purpose: string }) => purpose === 'receipt') }
  await page.getByLabel('Key set (JWKS)').fill(JSON.stringify(strangers))
  expect(await verify(watched, attestation)).toBe('fails')
  await watched.close()
})

test('with the service gone the loaded page still verifies, says that it is alone, and still catches a forgery', async () => {
  const other = await startService()
  const watched = await openPage(browser, other.url)
  const { page, open } = watched
  const [paid] = (await paidRuns(other, 1)) as [PaidRun]
  await open(`receipts/${paid.receipt.receipt_id}`)
  await see(page, 'The receipt holds.')
  const saved = await page.locator('pre.json').innerText()
  await other.close()

  await page.getByRole('link', { name: 'Verify', exact: true }).click()
  expect(await verify(watched, saved)).toBe('holds')
  expect(await check(watched, 'inclusion')).toContain('holds')
  expect(await verify(watched, saved.replace('"comedian-v1"', '"coder-v1"'))).toBe('fails')
  await page.getByRole('link', { name: 'Overview', exact: true }).click()
  await page.getByText('The service does not answer.').waitFor()
  await watched.close()
})
