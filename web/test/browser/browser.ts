import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'

/** Starts Debian's Chromium. */
export const launchBrowser = (): Promise<Browser> =>
  chromium.launch({
    executablePath: process.env.CHROMIUM_PATH ?? '/usr/bin/chromium',
    args: [
      '--headless',
      '--no-sandbox',
      '--disable-gpu',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  })

export type TestPage = {
  page: Page
  /** Console errors and warnings, exceptions, and violations of the content security policy. */
  problems: string[]
  /** URLs requested from other origins. */
  foreignRequests: string[]
  open(hash: string): Promise<void>
  close(): Promise<void>
}

export async function openPage(browser: Browser, url: string, options: BrowserContextOptions = {}): Promise<TestPage> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options })
  const page = await context.newPage()
  const problems: string[] = []
  const foreignRequests: string[] = []
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) problems.push(`${message.text()} ${message.location().url}`)
  })
  page.on('pageerror', (error) => problems.push(error.message))
  page.on('request', (request) => {
    const { origin, protocol } = new URL(request.url())
    if (protocol.startsWith('http') && origin !== url) foreignRequests.push(request.url())
  })
  await page.exposeFunction('reportViolation', (text: string) => problems.push(text))
  await page.addInitScript(() => {
    document.addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) => {
      const report = (globalThis as unknown as { reportViolation(text: string): void }).reportViolation
      report(`violated ${violatedDirective}: ${blockedURI}`)
    })
  })
  return {
    page,
    problems,
    foreignRequests,
    open: async (hash) => {
      await page.goto(`${url}/dashboard#/${hash}`)
    },
    close: () => context.close(),
  }
}

export async function signIn({ page, open }: TestPage, apiKey: string): Promise<void> {
  await open('account')
  await page.getByLabel('API key', { exact: true }).fill(apiKey)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('heading', { level: 1, name: 'Control tower' }).waitFor()
}

/** Waits until the text is visible; options of a closed select do not count. */
export const waitForText = (page: Page, text: string | RegExp): Promise<void> =>
  page.locator('main').getByText(text).filter({ visible: true }).first().waitFor()

/** Waits until the page of a new address is there and nothing on it is loading. */
export async function untilLoaded(page: Page): Promise<void> {
  // The router notices a new address a moment later.
  await page.waitForTimeout(50)
  await page.locator('main[aria-busy=false] h1').waitFor()
  await page.waitForFunction(() => !document.querySelector('main')!.innerText.includes('Loading…'))
}
