import type { createDemoWorld } from '../../../server/src/commands/demo-world.ts'
import { sections } from '../../src/account/sections.ts'
import { pages } from '../../src/pages.ts'

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
