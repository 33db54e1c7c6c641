import { readFile } from 'node:fs/promises'
import type { Browser, Page } from 'playwright-core'
import { generatePrivateKey } from 'viem/accounts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startService, type TestService } from '../../../server/test/harness.ts'
import { findAccessibilityIssues, overflows } from './accessibility.ts'
import { type Axe, installAxe } from './axe.ts'
import { launchBrowser, openPage, signIn, type TestPage, waitForText } from './browser.ts'
import { buildDashboardIfStale } from './build-dashboard.ts'
import { injectWallet } from './injected-wallet.ts'

const CANARY = '<img src=x onerror="globalThis.pwned=1">'
const DESKTOP = { width: 1280, height: 900 }
const PHONE = { width: 390, height: 844 }

let service: TestService
let browser: Browser
let axe: Axe
beforeAll(async () => {
  await buildDashboardIfStale()
  ;[service, browser, axe] = await Promise.all([startService(), launchBrowser(), installAxe()])
}, 120_000)
afterAll(async () => {
  await browser?.close()
  await service?.close()
  axe?.remove()
})

type Tenant = Awaited<ReturnType<TestService['onboard']>>

/** The browser itself logs a 402, which is how a price is asked for, and a 404 of another tenant's things. */
const unexpected = (problems: string[]) => problems.filter((problem) => !/status of (402|404)/.test(problem))
const isInjected = (page: Page) => page.evaluate(() => 'pwned' in globalThis)
const looks = (['light', 'dark'] as const).flatMap((colorScheme) =>
  [DESKTOP, PHONE].map((viewport) => ({ colorScheme, viewport })),
)

/** What axe-core and our own checks find, in light and dark, on a desktop and on a phone. */
async function checkLooks(page: Page, name: string) {
  for (const { colorScheme, viewport } of looks) {
    await page.emulateMedia({ colorScheme })
    await page.setViewportSize(viewport)
    const look = `${name} ${colorScheme} ${viewport.width}`
    // axe takes seconds, so it sees both themes and both widths once; contrast is checked in the other two as well.
    if ((colorScheme === 'light') === (viewport === DESKTOP)) expect(await axe.findIssues(page), look).toEqual([])
    else expect(await findAccessibilityIssues(page), look).toEqual({ unnamed: [], lowContrast: [] })
    expect(await overflows(page), `${look} is wider than the screen`).toBe(false)
  }
  await page.setViewportSize(DESKTOP)
  expect(await isInjected(page)).toBe(false)
}

async function createWallet(tenant: Tenant, name: string, usdc = 0): Promise<string> {
  const { body } = await service.post('/api/wallets', { name }, tenant.headers)
  if (usdc > 0) {
    const payer = await service.payer(usdc)
    const answer = await payer.fetch(`${service.url}/api/wallets/${body.wallet_id}/topup`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...tenant.headers },
      body: JSON.stringify({ amount_usdc: usdc }),
    })
    expect(answer.status).toBe(200)
  }
  return body.wallet_id
}

const payRun = async (tenant: Tenant, walletId: string, body: Record<string, unknown> = {}) => {
  const request = { task: 'Tell me a joke.', agent_id: 'comedian-v1', payment: { wallet_id: walletId }, ...body }
  const answer = await service.post('/api/run', request, tenant.headers)
  expect(answer.status, answer.text).toBe(200)
  return answer.body
}

async function openAs(tenant: Tenant): Promise<TestPage> {
  const testPage = await openPage(browser, service.url)
  await signIn(testPage, tenant.apiKey)
  return testPage
}

test('a wallet is opened and filled by a browser wallet; a run paid from it is in its ledger, which the page adds up', async () => {
  const tenant = await service.onboard('Acme')
  const testPage = await openPage(browser, service.url)
  const { page, open, problems, foreignRequests } = testPage
  const wallet = await injectWallet(page, generatePrivateKey())
  await service.post('/api/dev/faucet', { address: wallet.account.address, amount_usdc: 3 })
  await signIn(testPage, tenant.apiKey)
  await open('account/wallets')
  await waitForText(page, 'No wallet yet.')
  await page.getByLabel('Name').fill(`Agents ${CANARY}`)
  await page.getByRole('button', { name: 'Open', exact: true }).click()
  await page.getByRole('heading', { name: `Agents ${CANARY}` }).waitFor()
  const walletId = new URL(page.url()).hash.split('/').at(-1)!

  await page.getByLabel('From', { exact: true }).selectOption({ label: 'Test Wallet' })
  await page.getByLabel('Amount (USDC)').fill('2')
  await page.getByLabel(/has no money on Base/).check()
  await page.getByRole('button', { name: 'Fill the wallet' }).click()
  await page.getByText('2 USDC paid in.').waitFor()
  expect(await page.getByRole('link', { name: 'Its receipt' }).getAttribute('href')).toMatch(/^#\/receipts\/rcpt_/)
  const run = await payRun(tenant, walletId, { spender: CANARY, tags: { project: CANARY } })
  await waitForText(page, '1.99 USDC')
  const entries = page.getByRole('table', { name: 'Entries of the wallet' }).locator('tbody tr')
  await expect.poll(() => entries.count()).toBe(2)
  expect(await entries.first().innerText()).toContain('0.01')
  await checkLooks(page, 'wallet')
  await open('account/wallets')
  await page.getByRole('link', { name: `Agents ${CANARY}` }).waitFor()
  await checkLooks(page, 'wallets')

  await open('account/ledger')
  const { body: ledger } = await service.get('/api/ledger?limit=100', tenant.headers)
  const rows = page.getByRole('table', { name: 'Ledger entries' }).locator('tbody tr[data-index]')
  await expect.poll(() => rows.count()).toBe(ledger.entries.length)
  const transactions = new Set(ledger.entries.map((entry: { transaction_id: string }) => entry.transaction_id)).size
  await waitForText(page, `${transactions} transactions sum up to zero, and ${ledger.entries.length} running balances`)
  await checkLooks(page, 'ledger')
  const download = page.waitForEvent('download')
  await page.getByRole('button', { name: 'Save as CSV' }).click()
  const csv = await readFile(await (await download).path(), 'utf8')
  expect(csv.split('\r\n')).toHaveLength(ledger.entries.length + 1)
  await page.getByLabel('Run, escrow or payout').fill(run.run_id)
  await page.getByRole('button', { name: 'Apply' }).click()
  await waitForText(page, '1 transaction sums up to zero, and 0 running balances')

  // The service says that its books balance, and the page sees that they do not.
  await page.route('**/api/ledger?*', async (route) => {
    const response = await route.fetch()
    const body = await response.json()
    body.entries[0].amount = String(BigInt(body.entries[0].amount) + 1n)
    await route.fulfill({ response, json: body })
  })
  await open('account/ledger')
  // What was read a moment ago would be shown again.
  await page.reload()
  await page.getByRole('alert').filter({ hasText: 'The ledger does not add up' }).waitFor()
  await waitForText(page, 'of this transaction does not sum up to zero')
  await checkLooks(page, 'ledger-tampered')
  expect(unexpected(problems)).toEqual([])
  expect(foreignRequests).toEqual([])
  await testPage.close()
}, 120_000)

test('money is put in escrow, released, given back by the other side and disputed; a stranger sees none of it', async () => {
  const [buyer, seller, stranger] = [
    await service.onboard('Buyer'),
    await service.onboard('Seller'),
    await service.onboard('Stranger'),
  ]
  const from = await createWallet(buyer, 'Purchases', 1)
  const to = await createWallet(seller, 'Sales')
  const { page, open, problems, close } = await openAs(buyer)
  const put = async (amount: string, memo: string) => {
    await open('account/escrow')
    await page.getByLabel('Amount (USDC)').fill(amount)
    await page.getByLabel('To wallet').fill(to)
    await page.getByLabel('Memo').fill(memo)
    await page.getByRole('button', { name: 'Put in escrow' }).click()
    await waitForText(page, 'you pay')
    await waitForText(page, memo)
    return new URL(page.url()).hash.split('/').at(-1)!
  }
  const decide = async (at: Page, button: string, reason: string) => {
    await at.getByRole('button', { name: button, exact: true }).click()
    const dialog = at.getByRole('dialog')
    await dialog.getByLabel('Reason').fill(reason)
    await dialog.getByRole('button', { name: button, exact: true }).click()
  }
  await open('account/escrow')
  await waitForText(page, 'Nothing is in escrow.')
  const first = await put('0.2', `Maps ${CANARY}`)
  await waitForText(page, 'goes back')
  expect(await page.getByRole('button', { name: 'Give back' }).count()).toBe(0)
  await checkLooks(page, 'escrow')
  await decide(page, 'Release', `Delivered ${CANARY}`)
  await waitForText(page, 'released')
  await waitForText(page, `Delivered ${CANARY}`)
  expect((await service.get(`/api/wallets/${to}`, seller.headers)).body.balance.available).toBe('200000')

  const second = await put('0.3', 'Weather')
  const third = await put('0.1', 'Traffic')
  await decide(page, 'Dispute', '')
  await page.getByRole('dialog').getByText('Say why').waitFor()
  await page.getByRole('dialog').getByLabel('Reason').fill('Nothing came.')
  await page.getByRole('dialog').getByRole('button', { name: 'Dispute', exact: true }).click()
  await waitForText(page, 'stopped until one side gives way')
  expect(await page.getByRole('button', { name: 'Release', exact: true }).count()).toBe(1)
  await open('account/escrow')
  const rows = page.getByRole('table', { name: 'Escrows' }).locator('tbody tr[data-index]')
  await expect.poll(() => rows.count()).toBe(3)
  await checkLooks(page, 'escrows')
  await page.getByLabel('State').selectOption('disputed')
  await expect.poll(() => rows.count()).toBe(1)

  const other = await openAs(seller)
  await other.open(`account/escrow/${second}`)
  await waitForText(other.page, 'you are paid')
  expect(await other.page.getByRole('button', { name: 'Release', exact: true }).count()).toBe(0)
  await decide(other.page, 'Give back', 'Cannot deliver.')
  await waitForText(other.page, 'refunded')
  await other.open('account/escrow')
  await expect.poll(() => other.page.getByRole('table', { name: 'Escrows' }).locator('tr[data-index]').count()).toBe(3)
  expect((await service.get(`/api/wallets/${from}`, buyer.headers)).body.balance).toMatchObject({
    available: '700000',
    escrowed: '100000',
  })

  const foreign = await openAs(stranger)
  await foreign.open('account/escrow')
  await waitForText(foreign.page, 'Nothing is in escrow.')
  for (const id of [first, second, third]) {
    await foreign.open(`account/escrow/${id}`)
    await waitForText(foreign.page, `There is no escrow ${id}`)
  }
  await foreign.open(`account/wallets/${from}`)
  await waitForText(foreign.page, `There is no wallet ${from}`)
  for (const testPage of [{ page, problems, close }, other, foreign]) {
    expect(unexpected(testPage.problems)).toEqual([])
    expect(await isInjected(testPage.page)).toBe(false)
    await testPage.close()
  }
}, 120_000)

test('settlements are those of the API, and an unfinished one can be driven', async () => {
  const tenant = await service.onboard('Settles')
  const walletId = await createWallet(tenant, 'Agents', 0.1)
  for (let count = 0; count < 3; count += 1) await payRun(tenant, walletId)
  const { page, open, problems, close } = await openAs(tenant)
  await open('account/settlements')
  const { body } = await service.get('/api/settlements?limit=100', tenant.headers)
  const rows = page.getByRole('table', { name: 'Settlements' }).locator('tbody tr[data-index]')
  await expect.poll(() => rows.count()).toBe(4)
  const links = await rows.locator('td:first-child a').evaluateAll((list) => list.map((a) => a.getAttribute('href')))
  expect(links).toEqual(
    body.settlements.map(({ settlement_id }: { settlement_id: string }) => `#/account/settlements/${settlement_id}`),
  )
  await checkLooks(page, 'settlements')
  await page.getByLabel('Paid by').selectOption('x402')
  await expect.poll(() => rows.count()).toBe(1)
  await rows.first().getByRole('link').first().click()
  await waitForText(page, 'The money has arrived.')
  expect(await page.getByRole('button', { name: 'Ask the chain now' }).count()).toBe(0)
  await checkLooks(page, 'settlement')
  await open('account/settlements?status=unknown')
  await waitForText(page, 'No settlement fits these filters.')

  // One that the service reports as unknown until it is driven.
  const [settled] = body.settlements
  await page.route(`**/api/settle/${settled.settlement_id}`, (route) =>
    route.fulfill({ json: { ...settled, status: 'unknown', transaction: null } }),
  )
  await open(`account/settlements/${settled.settlement_id}`)
  await page.getByRole('button', { name: 'Ask the chain now' }).click()
  await waitForText(page, 'The settlement is settled.')
  expect(unexpected(problems)).toEqual([])
  await close()
}, 120_000)

test('the spend explorer adds up by every grouping, and leads to runs that sum up to what it says', async () => {
  const tenant = await service.onboard('Spends')
  const walletId = await createWallet(tenant, 'Agents', 1)
  const bond = { name: 'Red', scopes: ['read', 'run'], team: `red ${CANARY}` }
  const { body: key } = await service.post('/api/keys', bond, tenant.headers)
  const red = { ...tenant, headers: { 'x-api-key': key.api_key } }
  await payRun(red, walletId, { spender: 'ann', tags: { project: CANARY } })
  await payRun(tenant, walletId, { spender: 'ann', agent_id: 'writer-v1' })
  await payRun(tenant, walletId, { spender: CANARY })
  const payment = { agent_id: 'ann', merchant: { id: CANARY }, amount_usdc: 0.5 }
  const { body: preauth } = await service.post('/api/pre-auth', payment, tenant.headers)
  await service.post('/api/pre-auth/close', { preauth_id: preauth.preauth_id, outcome: 'settled' }, tenant.headers)
  const { page, open, problems, close } = await openAs(tenant)
  const table = page.getByRole('table', { name: 'Spend by group' })
  for (const group of ['spender', 'team', 'lane', 'merchant', 'tag', 'day']) {
    await open(`account/spend?group=${group}`)
    await waitForText(page, 'sum up to the total of the service, 0.533 USDC')
    await table.waitFor()
    expect(await isInjected(page)).toBe(false)
  }
  await open('account/spend')
  await waitForText(page, 'nothing before')
  await page.locator('.chart canvas').waitFor()
  await checkLooks(page, 'spend')
  const download = page.waitForEvent('download')
  await page.getByRole('button', { name: 'Save as CSV' }).click()
  const csv = await readFile(await (await download).path(), 'utf8')
  expect(csv).toContain('\r\nann,0.523,0,0.523,2,0.023,0.5')

  // ann: two runs of 0.01 and 0.013, and a payment elsewhere.
  await page.getByRole('link', { name: '2 runs, 0.023 USDC' }).click()
  await page.getByRole('status').filter({ hasText: '2 runs, 0.023 USDC' }).waitFor()
  expect(await page.getByRole('table', { name: 'Runs' }).locator('tr[data-index]').count()).toBe(2)
  await page.goBack()
  await page.getByLabel('Compare with').selectOption('none')
  await expect.poll(() => page.getByRole('columnheader', { name: 'Difference' }).count()).toBe(0)
  expect(unexpected(problems)).toEqual([])
  await close()
}, 120_000)

test('a key that may only read sees everything and no form, and the server refuses it', async () => {
  const tenant = await service.onboard('Reads')
  const walletId = await createWallet(tenant, 'Agents', 0.1)
  const { body: escrow } = await service.post(`/api/wallets/${walletId}/escrow`, { amount: '1000' }, tenant.headers)
  const { body: key } = await service.post('/api/keys', { name: 'reader', scopes: ['read'] }, tenant.headers)
  const { page, open, problems, close } = await openAs({ ...tenant, apiKey: key.api_key })
  await open('account/wallets')
  await waitForText(page, 'This key cannot open wallets')
  await open(`account/wallets/${walletId}`)
  await waitForText(page, 'This key cannot top up')
  await open(`account/escrow/${escrow.escrow_id}`)
  await waitForText(page, 'This key cannot decide about it')
  await open('account/escrow')
  await waitForText(page, 'This key cannot move money into escrow')
  for (const name of ['Open', 'Fill the wallet', 'Put in escrow', 'Release', 'Dispute'])
    expect(await page.getByRole('button', { name, exact: true }).count()).toBe(0)
  const headers = { 'x-api-key': key.api_key }
  for (const [path, body] of [
    ['/api/wallets', {}],
    [`/api/wallets/${walletId}/topup`, { amount_usdc: 1 }],
    [`/api/wallets/${walletId}/escrow`, { amount: '1000' }],
    [`/api/escrow/${escrow.escrow_id}/release`, {}],
  ] as const)
    expect((await service.post(path, body, headers)).status, path).toBe(403)
  await open('account/ledger')
  await waitForText(page, 'It adds up')
  expect(unexpected(problems)).toEqual([])
  await close()
}, 120_000)
