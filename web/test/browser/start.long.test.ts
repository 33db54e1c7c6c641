import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import type { Browser, Page } from 'playwright-core'
import { generatePrivateKey } from 'viem/accounts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startService, type TestService } from '../../../server/test/harness.ts'
import { findAccessibilityIssues, overflows } from './accessibility.ts'
import { type Axe, installAxe } from './axe.ts'
import { launchBrowser, openPage, signIn, type TestPage, waitForText } from './browser.ts'
import { buildDashboardIfStale } from './build-dashboard.ts'
import { injectWallet, type WalletBehaviour } from './injected-wallet.ts'

const run = promisify(execFile)
const HTML_INJECTION = '<img src=x onerror="globalThis.pwned=1"><script>globalThis.pwned=1</script>'
const DESKTOP = { width: 1280, height: 900 }
const PHONE = { width: 390, height: 844 }
const PRICE_MICRO = 10_000n

let service: TestService
let productionService: TestService
let browser: Browser
let axe: Axe
beforeAll(async () => {
  await buildDashboardIfStale()
  ;[service, productionService, browser, axe] = await Promise.all([
    startService(),
    startService({ env: { NODE_ENV: 'production' } }),
    launchBrowser(),
    installAxe(),
  ])
}, 120_000)
afterAll(async () => {
  await browser?.close()
  await productionService?.close()
  await service?.close()
  axe?.remove()
})

/** The browser itself logs a 402, which is how a price is asked for. */
const unexpected = (problems: string[]) => problems.filter((problem) => !problem.includes('status of 402'))

const isInjected = (page: Page) => page.evaluate(() => 'pwned' in globalThis)

const shoot = async (page: Page, name: string) => {
  if (process.env.SCREENSHOTS) await page.screenshot({ path: `${process.env.SCREENSHOTS}/${name}.png`, fullPage: true })
}

async function openWithWallet(behaviour: WalletBehaviour & { usdc?: number } = {}, at = service) {
  const testPage = await openPage(browser, at.url)
  const wallet = await injectWallet(testPage.page, generatePrivateKey(), behaviour)
  if (behaviour.usdc)
    await service.post('/api/dev/faucet', { address: wallet.account.address, amount_usdc: behaviour.usdc })
  return { ...testPage, wallet }
}

async function askForPrice({ page }: Pick<TestPage, 'page'>, task = 'Tell me a joke about clocks.') {
  await page.getByLabel('What should be done').fill(task)
  await page.getByLabel('Lane', { exact: true }).selectOption('comedian-v1')
  await page.getByRole('button', { name: 'See lane and price' }).click()
  await page.getByRole('heading', { name: '402 Payment Required' }).waitFor()
}

const payButton = (page: Page) => page.getByRole('button', { name: 'Pay 0.01 USDC and run' })
const consent = (page: Page) => page.getByLabel(/has no money on Base/)

async function createOrganisation({ page }: Pick<TestPage, 'page'>, name: string): Promise<string> {
  await page.getByLabel('Name of the organisation').fill(name)
  await page.getByLabel('E-mail').fill('new@example.com')
  await page.getByRole('button', { name: 'Create', exact: true }).click()
  const key = page.getByTestId('api-key')
  await key.waitFor()
  return (await key.textContent())!
}

const looks = (['light', 'dark'] as const).flatMap((colorScheme) =>
  [DESKTOP, PHONE].map((viewport) => ({ colorScheme, viewport })),
)

/** What axe-core and our own checks find, in light and dark, on a desktop and on a phone. */
async function checkLooks(page: Page, name: string) {
  for (const { colorScheme, viewport } of looks) {
    await page.emulateMedia({ colorScheme })
    await page.setViewportSize(viewport)
    const look = `${name} ${colorScheme} ${viewport.width}`
    await shoot(page, look.replaceAll(' ', '-'))
    // axe takes seconds, so it sees both themes and both widths once; contrast is checked in the other two as well.
    if ((colorScheme === 'light') === (viewport === DESKTOP)) expect(await axe.findIssues(page), look).toEqual([])
    else expect(await findAccessibilityIssues(page), look).toEqual({ unnamed: [], lowContrast: [] })
    expect(await overflows(page), `${look} is wider than the screen`).toBe(false)
  }
  await page.setViewportSize(DESKTOP)
}

test('a new person gets from / to a verified receipt without a terminal, and every page on the way can be used by everybody', async () => {
  const testPage = await openPage(browser, service.url)
  const { page, problems, foreignRequests } = testPage
  const check = (name: string) => checkLooks(page, name)
  await page.goto(`${service.url}/`)
  await page.getByRole('heading', { level: 1, name: 'Let agents spend' }).waitFor()
  await check('start')

  const key = await createOrganisation(testPage, `Org ${HTML_INJECTION}`)
  await page.getByRole('button', { name: 'Create a wallet with 1 test USDC' }).waitFor()
  await check('key')
  expect(key).toMatch(/^csk_/)
  await page.getByRole('button', { name: 'I have stored it' }).click()
  expect(await page.content()).not.toContain(key)

  await page.getByRole('button', { name: 'Create a wallet with 1 test USDC' }).click()
  await page.getByText('1 USDC available').waitFor()
  await check('wallet')
  await page.getByRole('main').getByRole('link', { name: 'Open the playground' }).click()
  await page.getByRole('heading', { level: 1, name: 'Playground' }).waitFor()
  await check('playground')
  // The router chooses: the example is a limerick.
  await page.getByLabel('What should be done').fill(`Write a limerick about ${HTML_INJECTION}`)
  await page.getByRole('button', { name: 'See lane and price' }).click()
  await page.getByRole('heading', { name: '402 Payment Required' }).waitFor()
  await waitForText(page, 'What spoke for it')
  await check('offer')
  await page.getByRole('button', { name: /^Pay [\d.]+ USDC and run$/ }).click()
  await waitForText(page, 'The receipt is valid, and is about this task, output and payment.')
  expect(await page.getByRole('list', { name: 'Progress' }).innerText()).toMatch(/Accepted.*Completed/s)
  await check('result')
  await page.getByRole('link', { name: 'Open the receipt' }).click()
  await waitForText(page, 'The receipt is valid.')

  expect(await page.locator('main img, main script').count()).toBe(0)
  expect(await isInjected(page)).toBe(false)
  expect(unexpected(problems)).toEqual([])
  expect(foreignRequests).toEqual([])
  // The key opens the same organisation from elsewhere, and one run was charged.
  const { body } = await service.get('/api/runs', { 'x-api-key': key })
  expect(body.runs.filter((listed: { action: string }) => listed.action === 'run')).toMatchObject([
    { outcome: 'completed' },
  ])
  await testPage.close()
})

test('the key and every example can be copied, and the copied curl command runs as it is', async () => {
  const testPage = await openPage(browser, service.url, { permissions: ['clipboard-read', 'clipboard-write'] })
  const { page, open } = testPage
  const readClipboard = () => page.evaluate(() => navigator.clipboard.readText())
  await open('')
  const key = await createOrganisation(testPage, "O'Neill's clocks")
  await page.getByRole('button', { name: 'Copy the API key' }).click()
  await expect.poll(readClipboard).toBe(key)
  await page.getByRole('button', { name: 'Create a wallet with 1 test USDC' }).click()
  await page.getByText('1 USDC available').waitFor()
  await open('playground')
  await askForPrice(testPage, "Tell me a joke about O'Neill's $HOME clock.")
  const samples = new Map<string, string>()
  for (const name of ['curl', 'SDK', 'CLI', 'MCP']) {
    await page.getByRole('radio', { name, exact: true }).check()
    await page.getByRole('button', { name: `Copy the call with ${name}` }).click()
    await expect.poll(readClipboard).toBe(await page.getByRole('region', { name: `The call with ${name}` }).innerText())
    samples.set(name, await readClipboard())
  }
  const { stdout } = await run('bash', ['-c', samples.get('curl')!], {
    env: { PATH: process.env.PATH, COUNTERSIGN_API_KEY: key },
  })
  expect(JSON.parse(stdout)).toMatchObject({ status: 'completed', settlement: { method: 'wallet' } })
  const [headers, rpc] = [
    { 'x-api-key': key, accept: 'application/json, text/event-stream' },
    JSON.parse(samples.get('MCP')!),
  ]
  expect((await service.post('/mcp', rpc, headers)).text).toContain('completed')
  await testPage.close()
})

test('the playground is paid with an injected wallet: a real signature, settled once on the chain', async () => {
  const { page, open, problems, wallet, close } = await openWithWallet({ usdc: 1, name: `Wallet ${HTML_INJECTION}` })
  await open('playground')
  await askForPrice({ page })
  await page.getByRole('radio', { name: /^Wallet <img/ }).check()
  await consent(page).check()
  await payButton(page).click()
  await waitForText(page, 'The receipt is valid, and is about this task, output and payment.')
  await shoot(page, 'injected')
  expect(wallet.methods().filter((method) => method === 'eth_signTypedData_v4')).toHaveLength(1)
  const typedData = JSON.parse(
    String(wallet.requests.find(({ method }) => method === 'eth_signTypedData_v4')!.params[1]),
  )
  expect(typedData).toMatchObject({
    primaryType: 'TransferWithAuthorization',
    domain: { chainId: 8453 },
    message: { from: wallet.account.address, value: '10000' },
  })
  expect(await service.balance(wallet.account.address)).toBe(1_000_000n - PRICE_MICRO)
  expect(await isInjected(page)).toBe(false)
  expect(unexpected(problems)).toEqual([])
  await close()
})

test('an organisation’s wallet is filled with an injected wallet', async () => {
  const tenant = await service.onboard('Acme')
  const { wallet, ...testPage } = await openWithWallet({ usdc: 1 })
  const { page, open } = testPage
  await service.post('/api/wallets', { name: 'Main' }, tenant.headers)
  await signIn(testPage, tenant.apiKey)
  await open('start')
  await page.getByLabel('From').selectOption({ label: 'Test Wallet' })
  await page.getByLabel('Amount (USDC)').fill('0.25')
  await consent(page).check()
  await page.getByRole('button', { name: 'Fill the wallet' }).click()
  await waitForText(page, '0.25 USDC paid in.')
  expect((await service.get('/api/wallets', tenant.headers)).body.wallets).toMatchObject([
    { balance_usdc: { available: 0.25 } },
  ])
  expect(await service.balance(wallet.account.address)).toBe(750_000n)
  await testPage.close()
})

const refusals: [name: string, behaviour: WalletBehaviour & { usdc?: number }, message: RegExp, signed: number][] = [
  ['on another network', { usdc: 1, chainId: 1 }, /on another network \(chain 1\).*Nothing was charged\. Switch/, 0],
  ['that declines the signature', { usdc: 1, declinesSignature: true }, /You declined.*Nothing was charged\. Press/, 1],
  ['that declines the connection', { usdc: 1, declinesConnection: true }, /not connected.*Nothing was charged/, 0],
  ['without enough money', {}, /has 0 USDC, and 0\.01 are needed\. Nothing was charged\. Get test USDC/, 0],
]
for (const [name, behaviour, message, signed] of refusals)
  test(`a browser wallet ${name} says what to do next, and nothing is charged`, async () => {
    const { page, open, wallet, close } = await openWithWallet(behaviour)
    const sent: string[] = []
    page.on('request', (request) => {
      if (request.headers()['payment-signature']) sent.push(request.url())
    })
    await open('playground')
    await askForPrice({ page })
    await page.getByRole('radio', { name: /^Test Wallet/ }).check()
    await consent(page).check()
    await payButton(page).click()
    await page.getByRole('alert').filter({ hasText: message }).waitFor()
    expect(wallet.methods().filter((method) => method === 'eth_signTypedData_v4')).toHaveLength(signed)
    expect(sent).toEqual([])
    expect(await service.balance(wallet.account.address)).toBe(BigInt((behaviour.usdc ?? 0) * 1e6))
    if (name === 'without enough money') {
      await shoot(page, 'too-little')
      await page.getByRole('button', { name: 'Get 1 test USDC for this account' }).click()
      await waitForText(page, 'Press the button again.')
      await payButton(page).click()
      await waitForText(page, 'The receipt is valid, and is about this task, output and payment.')
      expect(await service.balance(wallet.account.address)).toBe(1_000_000n - PRICE_MICRO)
    }
    await close()
  })

test('without the consent that a development chain needs, the wallet is not even asked', async () => {
  const { page, open, wallet, close } = await openWithWallet({ usdc: 1 })
  await open('playground')
  await askForPrice({ page })
  await page.getByRole('radio', { name: /^Test Wallet/ }).check()
  await payButton(page).click()
  expect(await consent(page).evaluate((element) => (element as HTMLInputElement).validity.valueMissing)).toBe(true)
  expect(wallet.requests).toEqual([])
  await close()
})

test('a wallet with too little money says where to fill it, and what was refused is not paid for once it is filled', async () => {
  const tenant = await service.onboard('Acme')
  const { body: wallet } = await service.post('/api/wallets', { name: 'Empty' }, tenant.headers)
  const testPage = await openPage(browser, service.url)
  const { page, open } = testPage
  await signIn(testPage, tenant.apiKey)
  await open('playground')
  await askForPrice({ page })
  await page.getByRole('radio', { name: /^Empty, 0 USDC available/ }).check()
  await payButton(page).click()
  await page.getByRole('alert').filter({ hasText: 'Nothing was charged. Fill the wallet' }).waitFor()
  await page.getByRole('link', { name: 'Fill the wallet' }).click()
  await page.getByRole('button', { name: 'Fill the wallet' }).waitFor()
  const readBalance = async () => (await service.get('/api/wallets', tenant.headers)).body.wallets[0]
  expect(await readBalance()).toMatchObject({
    wallet_id: wallet.wallet_id,
    balance_usdc: { available: 0, reserved: 0 },
  })

  await page.getByRole('button', { name: 'Fill the wallet' }).click()
  await waitForText(page, '1 USDC paid in.')
  const sent: string[] = []
  page.on('request', (request) => sent.push(request.postData() ?? ''))
  await open('playground')
  await page.reload()
  await askForPrice({ page })
  expect(sent.filter((body) => body.includes(wallet.wallet_id))).toEqual([])
  expect(await readBalance()).toMatchObject({ balance_usdc: { available: 1, reserved: 0 } })
  await testPage.close()
})

test('in production there is no faucet: no button for test money, and the page says how to pay', async () => {
  const testPage = await openPage(browser, productionService.url)
  const { page, open, problems } = testPage
  await page.goto(`${productionService.url}/`)
  await open('playground')
  await askForPrice({ page })
  await waitForText(page, 'a wallet that holds USDC on Base')
  expect(await page.content()).not.toMatch(/faucet|test account|test USDC/i)
  const tenant = await productionService.onboard('Acme')
  await signIn(testPage, tenant.apiKey)
  await open('start')
  await page.getByRole('button', { name: 'Create a wallet', exact: true }).click()
  await waitForText(page, 'To fill it, open this page in a browser with a wallet')
  expect(await page.content()).not.toMatch(/faucet|test USDC/i)
  expect(unexpected(problems)).toEqual([])
  await testPage.close()
})

test('a page that is closed while the payment is on its way finds the answer again, and it was paid once', async () => {
  const { page, open, wallet, close } = await openWithWallet({ usdc: 1 })
  await open('playground')
  await askForPrice({ page })
  await page.getByRole('radio', { name: /^Test Wallet/ }).check()
  await consent(page).check()
  // The payment reaches the service; its answer does not reach the page.
  const delivered = new Promise<void>((resolve) => {
    void page.route('**/api/run', async (route) => {
      if (!route.request().headers()['payment-signature']) return route.continue()
      await route.fetch()
      resolve()
    })
  })
  await payButton(page).click()
  await delivered
  await page.unroute('**/api/run')
  await page.reload()
  await page.getByRole('heading', { name: 'Finished since you were here' }).waitFor()
  await page.getByRole('link', { name: 'Open the receipt' }).click()
  await waitForText(page, 'The receipt is valid.')
  expect(wallet.methods().filter((method) => method === 'eth_signTypedData_v4')).toHaveLength(1)
  expect(await service.balance(wallet.account.address)).toBe(1_000_000n - PRICE_MICRO)
  await close()
})

test('an unknown address says so, and a page that fails leaves the others usable', async () => {
  const testPage = await openPage(browser, service.url)
  const { page, open } = testPage
  await open(`nowhere/${encodeURIComponent(HTML_INJECTION)}`)
  await page.getByRole('heading', { level: 1, name: 'Page not found' }).waitFor()
  expect(await page.locator('main img, main script').count()).toBe(0)
  await page.route('**/api/agents', (route) => route.fulfill({ json: { agents: 'not a list' } }))
  await open('overview')
  await page.getByRole('heading', { level: 1, name: 'This page failed' }).waitFor()
  await page.getByRole('link', { name: 'Verify', exact: true }).click()
  await page.getByRole('heading', { level: 1, name: 'Verify' }).waitFor()
  await testPage.close()
})

test('the theme is chosen, kept and applied against the system’s', async () => {
  const testPage = await openPage(browser, service.url, { colorScheme: 'light' })
  const { page, open } = testPage
  const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor)
  await open('')
  const light = await background()
  await page.getByLabel('Theme').selectOption('dark')
  await expect.poll(background).not.toBe(light)
  await page.reload()
  await expect.poll(background).not.toBe(light)
  await page.getByLabel('Theme').selectOption('system')
  await expect.poll(background).toBe(light)
  await testPage.close()
})

test('on a phone the navigation is one line until it is opened, and every page can be reached through it', async () => {
  const testPage = await openPage(browser, service.url, { viewport: PHONE })
  const { page, open } = testPage
  await open('')
  const header = page.getByRole('banner')
  await expect.poll(async () => (await header.boundingBox())!.height).toBeLessThan(80)
  await page.getByRole('button', { name: 'Menu' }).click()
  await shoot(page, 'menu')
  await header.getByRole('link', { name: 'Receipts' }).click()
  await page.getByRole('heading', { level: 1, name: 'Receipts' }).waitFor()
  await expect.poll(async () => (await header.boundingBox())!.height).toBeLessThan(80)
  await testPage.close()
})

test('the first page loads at most 170 kB of compressed script, and nothing for payments', async () => {
  const testPage = await openPage(browser, service.url)
  const { page, open } = testPage
  const scripts: Promise<Buffer>[] = []
  page.on('response', (response) => {
    if (response.url().endsWith('.js')) scripts.push(response.body())
  })
  await open('')
  await page.getByRole('button', { name: 'Create', exact: true }).waitFor()
  const bodies = await Promise.all(scripts)
  expect(bodies.length).toBeGreaterThan(0)
  expect(bodies.reduce((sum, body) => sum + gzipSync(body).length, 0)).toBeLessThan(170_000)
  expect(bodies.some((body) => body.includes('TransferWithAuthorization'))).toBe(false)
  await testPage.close()
})
