import type { Browser, Locator, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startService, type TestService } from '../../../server/test/harness.ts'
import { openReceiver, type Receiver } from '../../../server/test/webhooks/receiver.ts'
import { verifyDelivery } from '../../../server/test/webhooks/standard-webhooks.ts'
import { overflows } from './accessibility.ts'
import { type Axe, installAxe } from './axe.ts'
import { launchBrowser, openPage, signIn, waitForText } from './browser.ts'
import { buildDashboardIfStale } from './build-dashboard.ts'

const CANARY = '<img src=x onerror="globalThis.pwned=1">'

let service: TestService
let browser: Browser
let axe: Axe
let receiver: Receiver
let answerStatus = 500
beforeAll(async () => {
  await buildDashboardIfStale()
  ;[service, browser, axe, receiver] = await Promise.all([
    startService(),
    launchBrowser(),
    installAxe(),
    openReceiver((_received, response) => {
      response.statusCode = answerStatus
      response.end(answerStatus === 500 ? `out of order ${CANARY}` : '')
    }),
  ])
})
afterAll(async () => {
  await browser?.close()
  await service?.close()
  await receiver?.close()
  axe?.remove()
})

const statusOf = async (apiKey: string) => (await service.get('/api/me', { 'x-api-key': apiKey })).status

/** The secret that the page shows, which is gone from the page once it is dismissed. */
async function takeSecret(page: Page): Promise<string> {
  const secret = await page.locator('code.secret').innerText()
  await page.getByRole('button', { name: 'I have stored it' }).click()
  await page.locator('code.secret').waitFor({ state: 'detached' })
  const state = await page.evaluate(() => document.documentElement.outerHTML + JSON.stringify({ ...localStorage }))
  expect(state).not.toContain(secret)
  return secret
}

/** A badge begins with a symbol. */
const badge = (place: Locator, text: string) => place.locator('.badge').filter({ hasText: new RegExp(`${text}$`) })

const hasRunCanary = (page: Page) => page.evaluate(() => 'pwned' in globalThis)

test('a key is made with the form, used, rotated and revoked', async () => {
  const tenant = await service.onboard('Key Org')
  const testPage = await openPage(browser, service.url)
  const { page, open, problems } = testPage
  await signIn(testPage, tenant.apiKey)
  await open('account/keys')
  const row = page.getByRole('row').filter({ hasText: 'Fleet' })
  const form = page.getByRole('form', { name: 'New key' })
  await form.getByLabel('Name').fill(`Fleet ${CANARY}`)
  await form.getByLabel('Spender (optional)').fill('fleet-7')
  await form.getByLabel('Team (optional)').fill('maps')
  expect(await form.getByRole('checkbox', { name: 'admin' }).isDisabled()).toBe(true)
  await form.getByRole('checkbox', { name: /^run / }).check()
  await form.getByRole('button', { name: 'Create key' }).click()
  const apiKey = await takeSecret(page)
  expect(apiKey).toMatch(/^csk_/)
  await row.getByText('fleet-7').waitFor()
  expect(await row.getByRole('cell').nth(2).innerText()).toBe('never')

  const me = await service.get('/api/me', { 'x-api-key': apiKey })
  expect(me.body).toMatchObject({ scopes: ['read', 'run'], spender: 'fleet-7', team: 'maps' })
  await page.reload()
  await row.getByText('just now').waitFor()

  await row.getByRole('button', { name: 'Rotate' }).click()
  await page.getByRole('dialog').getByLabel('The old key stays valid for').selectOption('1 hour')
  await page.getByRole('dialog').getByRole('button', { name: 'Rotate key' }).click()
  const newKey = await takeSecret(page)
  expect([await statusOf(apiKey), await statusOf(newKey)]).toEqual([200, 200])
  await page.getByText('replaced, still valid').waitFor()

  const oldRow = row.filter({ hasText: 'replaced' })
  await oldRow.getByRole('button', { name: 'Revoke' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click()
  expect(await statusOf(apiKey)).toBe(200)
  await oldRow.getByRole('button', { name: 'Revoke' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke key' }).click()
  await row.getByText('revoked').waitFor()
  expect([await statusOf(apiKey), await statusOf(newKey)]).toEqual([401, 200])
  expect(await hasRunCanary(page)).toBe(false)
  expect(problems).toEqual([])
  await testPage.close()
})

test('revoking the key behind the session says so, and signs out', async () => {
  const tenant = await service.onboard('Leaving Org')
  const testPage = await openPage(browser, service.url)
  const { page, open } = testPage
  await signIn(testPage, tenant.apiKey)
  await open('account/keys')
  await page.getByRole('row').filter({ hasText: 'this session' }).getByRole('button', { name: 'Revoke' }).click()
  await page.getByRole('dialog').getByText('you are signed out at once').waitFor()
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke key' }).click()
  await waitForText(page, 'Sign in with an API key')
  expect(await statusOf(tenant.apiKey)).toBe(401)
  await testPage.close()
})

test('a webhook fails, is repaired and replayed; what was sent verifies, and both secrets sign after a rotation', async () => {
  const tenant = await service.onboard('Hook Org')
  const testPage = await openPage(browser, service.url)
  const { page, open, problems } = testPage
  await signIn(testPage, tenant.apiKey)
  await open('account/webhooks')
  const form = page.getByRole('form', { name: 'New webhook' })
  const url = `${receiver.url}?${encodeURIComponent(CANARY)}`
  await form.getByLabel('Address (https)').fill(url)
  await form.getByRole('button', { name: 'Create webhook' }).click()
  await form.getByText('Choose at least one event.').waitFor()
  await form.getByRole('checkbox', { name: 'policy.created' }).check()
  await form.getByRole('button', { name: 'Create webhook' }).click()
  const secret = await takeSecret(page)
  await page.getByRole('table', { name: 'Webhooks' }).getByRole('link').click()

  answerStatus = 500
  await page.getByRole('button', { name: 'Send a test' }).click()
  const outcome = page.getByRole('region', { name: 'Test' })
  await outcome.getByText('out of order').waitFor()
  await outcome.getByText('500', { exact: true }).waitFor()
  await outcome.getByRole('link', { name: 'What was sent' }).click()

  const request = page.getByRole('region', { name: 'Request' })
  const [body, headerText] = [
    await request.getByRole('region', { name: 'Body' }).innerText(),
    await request.getByRole('region', { name: 'Headers' }).innerText(),
  ]
  const headers = Object.fromEntries(headerText.split('\n').map((line) => line.split(': ') as [string, string]))
  expect(receiver.received.map((received) => received.body)).toContain(body)
  expect(headers['user-agent']).toContain('Countersign')
  expect(verifyDelivery(secret, body, headers)).toMatchObject({ type: 'webhook.test' })
  expect(() => verifyDelivery(secret, body.replace('works', 'breaks'), headers)).toThrow()
  const attempts = page.getByRole('table', { name: 'Attempts' })
  await attempts.getByText('out of order').first().waitFor()

  answerStatus = 204
  await page.getByRole('button', { name: 'Replay' }).click()
  await badge(page.getByRole('region', { name: /^Delivery/ }), 'delivered').waitFor()
  await attempts.getByText('204').waitFor()
  expect(new Set(receiver.received.map((received) => received.headers['webhook-id'])).size).toBe(1)

  await page.getByRole('link', { name: 'The webhook and its deliveries' }).click()
  await page.getByRole('button', { name: 'Rotate secret' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Rotate secret' }).click()
  const newSecret = await takeSecret(page)
  await page.getByRole('button', { name: 'Send a test' }).click()
  await badge(outcome, 'delivered').waitFor()
  const last = receiver.received.at(-1)!
  for (const signingSecret of [secret, newSecret])
    expect(verifyDelivery(signingSecret, last.body, last.headers)).toMatchObject({ type: 'webhook.test' })
  expect(await hasRunCanary(page)).toBe(false)
  expect(await page.locator('main img').count()).toBe(0)
  expect(problems).toEqual([])
  await testPage.close()
})

test('all failed deliveries since a time are replayed, and a webhook is changed, switched off and deleted', async () => {
  const tenant = await service.onboard('Replay Org')
  answerStatus = 410
  const { body: webhook } = await service.post(
    '/api/webhooks',
    { url: receiver.url, events: ['policy.created'] },
    tenant.headers,
  )
  const testPage = await openPage(browser, service.url)
  const { page, open, problems } = testPage
  await signIn(testPage, tenant.apiKey)
  await open(`account/webhooks/${webhook.id}`)
  await page.getByRole('button', { name: 'Send a test' }).click()
  await page.getByRole('region', { name: 'Webhook' }).getByText('off: gone').waitFor()
  await waitForText(page, 'Switch the webhook on to test it.')
  answerStatus = 200
  await page.getByRole('button', { name: 'Switch on' }).click()
  const replay = page.getByRole('form', { name: 'Replay failed deliveries' })
  await replay.getByLabel(/since/).fill('2020-01-01T00:00')
  await replay.getByRole('button', { name: 'Replay failed' }).click()
  await replay.getByText('1 deliveries are sent again.').waitFor()
  await page.getByRole('table', { name: 'Deliveries' }).getByText('delivered').waitFor()
  await replay.getByRole('button', { name: 'Replay failed' }).click()
  await replay.getByText('No delivery has failed since then.').waitFor()

  await page.getByRole('button', { name: 'Change' }).click()
  const form = page.getByRole('form', { name: 'Change webhook' })
  expect(await form.getByRole('checkbox', { name: 'policy.created' }).isChecked()).toBe(true)
  await form.getByRole('checkbox', { name: 'run.failed' }).check()
  await form.getByRole('button', { name: 'Save changes' }).click()
  await waitForText(page, 'run.failed, policy.created')
  await page.getByRole('button', { name: 'Delete' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Delete webhook' }).click()
  await waitForText(page, 'There are no webhooks.')
  // The page of the deleted webhook may have asked for it once more.
  expect(problems.filter((problem) => !problem.includes('404'))).toEqual([])
  await testPage.close()
})

test('an approval channel is added and tested, and settings are changed', async () => {
  const tenant = await service.onboard('Channel Org')
  answerStatus = 200
  const testPage = await openPage(browser, service.url)
  const { page, open, problems } = testPage
  await signIn(testPage, tenant.apiKey)
  await open('account/channels')
  const form = page.getByRole('form', { name: 'New channel' })
  await form.getByLabel('Type').selectOption('webhook')
  await form.getByLabel('Name (optional)').fill(`On call ${CANARY}`)
  await form.getByLabel('Address (https)').fill(receiver.url)
  await form.getByRole('button', { name: 'Add channel' }).click()
  const secret = await takeSecret(page)
  await page.getByRole('table', { name: 'Approval channels' }).getByRole('link').click()
  await page.getByRole('button', { name: 'Send a test' }).click()
  await badge(page.getByRole('table', { name: 'Messages' }), 'sent').waitFor()
  const last = receiver.received.at(-1)!
  verifyDelivery(secret, last.body, last.headers)

  await open('account/settings')
  await page.getByRole('radio', { name: 'never' }).check()
  await page.getByRole('button', { name: 'Save settings' }).click()
  await page.getByText('Saved.').waitFor()
  expect((await service.get('/api/settings', tenant.headers)).body).toEqual({ self_approval: 'never' })
  expect(await hasRunCanary(page)).toBe(false)
  expect(problems).toEqual([])
  await testPage.close()
})

test('a key that only reads sees why it has no forms, and another tenant sees nothing', async () => {
  const tenant = await service.onboard('Reading Org')
  const { body: webhook } = await service.post('/api/webhooks', { url: receiver.url, events: ['*'] }, tenant.headers)
  const { body: reader } = await service.post('/api/keys', { name: 'Reader', scopes: ['read'] }, tenant.headers)
  const testPage = await openPage(browser, service.url)
  const { page, open, problems } = testPage
  await signIn(testPage, reader.api_key)
  const pages = [
    ['keys', 'lacks the scope keys'],
    ['webhooks', 'lacks the scope control'],
    [`webhooks/${webhook.id}`, 'lacks the scope control'],
    ['channels', 'lacks the scope control'],
    ['settings', 'lacks the scope control'],
  ] as const
  for (const [part, reason] of pages) {
    await open(`account/${part}`)
    await waitForText(page, reason)
    const buttons = page.getByRole('button', { name: /create|rotate|revoke|delete|switch|send|save|add|replay/i })
    expect(await buttons.count(), part).toBe(0)
  }
  expect(problems).toEqual([])
  await testPage.close()

  const stranger = await service.onboard('Stranger Org')
  const strangerPage = await openPage(browser, service.url)
  await signIn(strangerPage, stranger.apiKey)
  await strangerPage.open(`account/webhooks/${webhook.id}`)
  await waitForText(strangerPage.page, 'There is no webhook')
  await strangerPage.open('account/keys')
  await waitForText(strangerPage.page, 'onboarding')
  expect(await strangerPage.page.getByRole('table', { name: 'Keys' }).getByRole('row').count()).toBe(2)
  expect(await strangerPage.page.content()).not.toContain('Reader')
  await strangerPage.close()
})

for (const [colorScheme, width] of [
  ['light', 1280],
  ['dark', 390],
] as const)
  test(`the pages of developers are accessible, ${colorScheme}, ${width} wide`, async () => {
    const tenant = await service.onboard(`Axe Org ${colorScheme} ${width}`)
    answerStatus = 500
    const { body: webhook } = await service.post('/api/webhooks', { url: receiver.url, events: ['*'] }, tenant.headers)
    await service.post(`/api/webhooks/${webhook.id}/test`, {}, tenant.headers)
    const { body: channel } = await service.post(
      '/api/approval-channels',
      { type: 'webhook', url: receiver.url, name: 'On call' },
      tenant.headers,
    )
    const readDelivery = async () =>
      (await service.get(`/api/webhooks/${webhook.id}/deliveries`, tenant.headers)).body.deliveries[0]
    await expect.poll(async () => (await readDelivery())?.attempts, { timeout: 60_000 }).toBeGreaterThan(0)
    const testPage = await openPage(browser, service.url, { colorScheme, viewport: { width, height: 844 } })
    const { page, open, problems } = testPage
    await signIn(testPage, tenant.apiKey)
    const pages = [
      ['keys', 'onboarding'],
      ['webhooks', 'Runs'],
      [`webhooks/${webhook.id}`, 'failed, tried again'],
      [`webhooks/${webhook.id}/${(await readDelivery()).id}`, 'out of order'],
      ['channels', 'On call'],
      [`channels/${channel.id}`, 'No messages yet.'],
      ['settings', 'Features'],
    ] as const
    for (const [part, text] of pages) {
      await open(`account/${part}`)
      await waitForText(page, text)
      expect(await axe.findIssues(page), part).toEqual([])
      expect(await overflows(page), `${part} is wider than the screen`).toBe(false)
    }
    expect(problems).toEqual([])
    await testPage.close()
  })
