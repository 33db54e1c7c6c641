import type { ComponentType } from 'react'
import { type LazyComponent, lazyComponent } from '../lazy-component.ts'
import type { SectionProps } from './section-props.ts'

export type Section = { name: string; title: string; Section: LazyComponent<SectionProps> }

/** The pages of an account by what they are for. Each is loaded when it is first opened. */
export const sectionGroups: { title: string; sections: Section[] }[] = [
  {
    title: 'Watch',
    sections: [
      section(
        'tower',
        'Control tower',
        async () => (await import('../tower/control-tower-section.tsx')).ControlTowerSection,
      ),
      section('runs', 'Runs', async () => (await import('../runs/runs-section.tsx')).RunsSection),
      section(
        'approvals',
        'Approvals',
        async () => (await import('../approvals/approvals-section.tsx')).ApprovalsSection,
      ),
      section(
        'preauths',
        'Pre-authorisations',
        async () => (await import('../tower/preauths-section.tsx')).PreauthsSection,
      ),
      section('decisions', 'Refusals', async () => (await import('../tower/decisions-section.tsx')).DecisionsSection),
      section('trades', 'Trades', async () => (await import('../trades/trades-section.tsx')).TradesSection),
      section('alerts', 'Alerts', async () => (await import('../tower/alerts-section.tsx')).AlertsSection),
    ],
  },
  {
    title: 'Govern',
    sections: [
      section('policies', 'Policies', async () => (await import('../policies/policies-section.tsx')).PoliciesSection),
      section('budgets', 'Budgets', async () => (await import('../budgets/budgets-section.tsx')).BudgetsSection),
      section('mandates', 'Mandates', async () => (await import('../mandates/mandates-section.tsx')).MandatesSection),
    ],
  },
  {
    title: 'Money',
    sections: [
      section('wallets', 'Wallets', async () => (await import('../money/wallets-section.tsx')).WalletsSection),
      section('spend', 'Spend', async () => (await import('../money/spend-section.tsx')).SpendSection),
      section('analytics', 'Analytics', async () => (await import('../money/analytics-section.tsx')).AnalyticsSection),
      section(
        'settlements',
        'Settlements',
        async () => (await import('../money/settlements-section.tsx')).SettlementsSection,
      ),
      section('escrow', 'Escrow', async () => (await import('../money/escrow-section.tsx')).EscrowSection),
      section('ledger', 'Ledger', async () => (await import('../money/ledger-section.tsx')).LedgerSection),
    ],
  },
  {
    title: 'Developers',
    sections: [
      section('keys', 'Keys', async () => (await import('../developers/keys-section.tsx')).KeysSection),
      section('webhooks', 'Webhooks', async () => (await import('../developers/webhooks-section.tsx')).WebhooksSection),
      section(
        'channels',
        'Approval channels',
        async () => (await import('../developers/channels-section.tsx')).ChannelsSection,
      ),
      section('settings', 'Settings', async () => (await import('../developers/settings-section.tsx')).SettingsSection),
    ],
  },
  {
    title: 'Evidence',
    sections: [section('audit', 'Audit', async () => (await import('../evidence/audit-section.tsx')).AuditSection)],
  },
]

export const sections = sectionGroups.flatMap((group) => group.sections)

function section(name: string, title: string, load: () => Promise<ComponentType<SectionProps>>): Section {
  return { name, title, Section: lazyComponent(load) }
}
