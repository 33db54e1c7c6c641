import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startService, type TestService } from '../../../server/test/harness.ts'
import { type MailServer, openMailServer } from '../../../server/test/mail-server.ts'
import { findAccessibilityIssues, overflows } from './accessibility.ts'
import { launchBrowser, openPage } from './browser.ts'

let service: TestService
let mail: MailServer
let browser: Browser
let headers: Record<string, string>

beforeAll(async () => {
  mail = await openMailServer()
  ;[service, browser] = await Promise.all([
    startService({ env: { SMTP_URL: mail.url, SMTP_FROM: 'Countersign <approvals@example.com>' } }),
    launchBrowser(),
  ])
  headers = (await service.onboard('Acme')).headers
  const recipients = [{ email: 'boss@acme.example', name: 'Ada' }]
  await service.post('/api/approval-channels', { type: 'email', name: 'Finance', recipients }, headers)
  await service.post(
    '/api/policies',
    {
      name: 'Finance looks first',
      identity_type: 'agent',
      agent_id: 'fleet-7',
      constraints: { require_approval_above_usdc: 0.25 },
    },
    headers,
  )
})
afterAll(async () => {
  await browser?.close()
  await service?.close()
  await mail?.close()
})

/** Asks for a payment that needs an approval, and reads the link out of the e-mail that follows. */
async function requestApproval(merchant: string): Promise<{ approvalId: string; link: string }> {
  const { body } = await service.post(
    '/api/pre-auth',
    { agent_id: 'fleet-7', amount_usdc: 0.5, merchant: { id: merchant }, purpose: 'Maps of the northern routes' },
    headers,
  )
  const findMail = () => mail.received.find(({ text }) => text.includes(merchant))
  await expect.poll(findMail, { timeout: 60_000 }).toBeDefined()
  return { approvalId: body.approval_id, link: /http:\S+\/approve\/\S+/.exec(findMail()!.text)![0] }
}

const statusOf = async (id: string) => (await service.get(`/api/approvals/${id}`, headers)).body.status

for (const colorScheme of ['light', 'dark'] as const)
  for (const width of [1280, 360])
    test(`a person approves from the e-mail without an account or a script, ${colorScheme}, ${width} wide`, async () => {
      const merchant = `maps-${colorScheme}-${width}.example`
      const { approvalId, link } = await requestApproval(merchant)
      const { page, problems, foreignRequests, close } = await openPage(browser, service.url, {
        colorScheme,
        javaScriptEnabled: true,
        viewport: { width, height: 800 },
      })
      await page.goto(link)
      expect(await page.locator('main').innerText()).toContain(merchant)
      expect(await findAccessibilityIssues(page)).toEqual({ unnamed: [], lowContrast: [] })
      expect(await overflows(page)).toBe(false)
      await screenshot(`decision-${colorScheme}-${width}`)
      await page.reload()
      expect(await statusOf(approvalId)).toBe('pending')

      // By keyboard alone: the reason, then the first button.
      await page.getByLabel('Reason').fill('The northern routes are due.')
      await page.keyboard.press('Tab')
      await page.keyboard.press('Enter')
      await page.getByRole('heading', { name: 'Approved' }).waitFor()
      expect(await findAccessibilityIssues(page)).toEqual({ unnamed: [], lowContrast: [] })
      expect(await overflows(page)).toBe(false)
      await screenshot(`approved-${colorScheme}-${width}`)
      expect(await statusOf(approvalId)).toBe('approved')

      await page.goto(link)
      expect(await page.locator('main').innerText()).toContain('You decided this.')
      expect(await page.getByRole('button').count()).toBe(0)
      // The browser reports the status of the last page, which is 410, as a failed load.
      expect(problems.filter((problem) => !problem.includes('410'))).toEqual([])
      expect(foreignRequests).toEqual([])
      await close()

      async function screenshot(name: string) {
        const folder = process.env.SCREENSHOT_FOLDER
        if (folder) await page.screenshot({ path: `${folder}/${name}.png`, fullPage: true })
      }
    })

test('a person without JavaScript rejects with a reason, and a second person sees how it was decided', async () => {
  const { approvalId, link } = await requestApproval('maps-reject.example')
  const [first, second] = await Promise.all(
    [1, 2].map(async () => (await browser.newContext({ javaScriptEnabled: false })).newPage()),
  )
  await Promise.all([first!.goto(link), second!.goto(link)])
  await first!.getByLabel('Reason').fill('Not this month.\n<b>Ask again</b>')
  await first!.getByRole('button', { name: 'Reject' }).click()
  await first!.getByRole('heading', { name: 'Rejected' }).waitFor()
  await second!.getByRole('button', { name: 'Approve' }).click()
  await second!.getByRole('alert').waitFor()
  expect(await second!.locator('main').innerText()).toContain('already resolved: rejected')
  const { body } = await service.get(`/api/approvals/${approvalId}`, headers)
  expect(body).toMatchObject({ status: 'rejected', approvals: [{ reason: 'Not this month.\n<b>Ask again</b>' }] })
  await Promise.all([first!.context().close(), second!.context().close()])
})
