import { mkdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { BrowserContextOptions } from 'playwright-core'
import { expect, test } from 'vitest'
import { createDemoWorld } from '../../../server/src/commands/demo-world.ts'
import { startService } from '../../../server/test/harness.ts'
import { launchBrowser, openPage, signIn, untilLoaded } from './browser.ts'
import { buildDashboardIfStale } from './build-dashboard.ts'
import { listAddresses } from './dashboard-pages.ts'

/** `npm run demo:screenshots` sets it; without it there is nothing to do. */
const folder = process.env.SCREENSHOT_FOLDER

const looks: Record<string, BrowserContextOptions> = {
  light: { viewport: { width: 1280, height: 860 } },
  dark: { viewport: { width: 1280, height: 860 }, colorScheme: 'dark' },
  phone: { viewport: { width: 390, height: 844 } },
}

test.runIf(folder)(
  'every page of the seeded world is photographed, light, dark and on a phone',
  async () => {
    await buildDashboardIfStale()
    const [service, browser] = await Promise.all([startService(), launchBrowser()])
    const world = await createDemoWorld({ url: service.url, adminKey: service.service.adminKey })
    const target = resolve(import.meta.dirname, '../../..', folder!)
    mkdirSync(target, { recursive: true })
    for (const [look, options] of Object.entries(looks)) {
      const testPage = await openPage(browser, service.url, options)
      const { page, open, problems } = testPage
      await signIn(testPage, world.apiKey)
      for (const address of listAddresses(world)) {
        await open(address)
        await untilLoaded(page)
        await page.screenshot({ path: join(target, `${toName(address)}-${look}.png`) })
      }
      expect(problems).toEqual([])
      await testPage.close()
    }
    writeFileSync(join(target, 'README.md'), describeGallery(listAddresses(world).map(toName)))
    await browser.close()
    await service.close()
  },
  600_000,
)

/** `account/runs/run_1` is the page of one run. */
function toName(address: string): string {
  const [page, section, thing] = address.split('/')
  if (page !== 'account') return section ? `${page}-one` : page!
  return thing ? `${section}-one` : section!
}

function describeGallery(names: string[]): string {
  const cell = (name: string, look: string) => `![${name}, ${look}](${name}-${look}.png)`
  const rows = names.map(
    (name) =>
      `| ${name} | ${Object.keys(looks)
        .map((look) => cell(name, look))
        .join(' | ')} |`,
  )
  return `# Every page of the dashboard

The organisation is the one of \`npm run demo:seed\`; \`npm run demo:screenshots\` takes these pictures again.

| Page | ${Object.keys(looks).join(' | ')} |
|---|---|---|---|
${rows.join('\n')}
`
}
