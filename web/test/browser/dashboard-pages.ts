import { fileURLToPath } from 'node:url'
import { createServer } from 'vite'
import type { createDemoWorld } from '../../../server/src/commands/demo-world.ts'

/** The pages are TSX, which Node does not load. */
async function loadPages() {
  const root = fileURLToPath(new URL('../..', import.meta.url))
  const server = { middlewareMode: true, ws: false, watch: null } as const
  const vite = await createServer({
    root,
    server,
    appType: 'custom',
    logLevel: 'error',
    optimizeDeps: { noDiscovery: true },
  })
  try {
    const { pages } = (await vite.ssrLoadModule('/src/pages.ts')) as typeof import('../../src/pages.ts')
    const { sections } = (await vite.ssrLoadModule(
      '/src/account/sections.ts',
    )) as typeof import('../../src/account/sections.ts')
    return { pages, sections }
  } finally {
    await vite.close()
  }
}

const { pages, sections } = await loadPages()

export type DemoWorld = Awaited<ReturnType<typeof createDemoWorld>>

/** Every address of the dashboard, and of one thing on each page that shows a single one. */
export function listAddresses({ ids }: Pick<DemoWorld, 'ids'>): string[] {
  const things: Record<string, string> = {
    runs: ids.run,
    policies: ids.policy,
    approvals: ids.approval,
    mandates: ids.mandate,
    preauths: ids.preauth,
    trades: ids.trade,
    escrow: ids.escrow,
    wallets: ids.wallet,
    webhooks: ids.webhook,
  }
  return [
    ...pages.map(({ name }) => name),
    'basis/AAPLx',
    'nowhere',
    ...sections.flatMap(({ name }) => [
      `account/${name}`,
      ...(things[name] ? [`account/${name}/${things[name]}`] : []),
    ]),
  ]
}
