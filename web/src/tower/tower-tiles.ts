import type { ApiResponse } from '@countersign/sdk'
import type { Tone } from '../components/ui.tsx'
import { formatCount, formatDuration, formatUsdc } from '../format.ts'
import { routeHref } from '../route.ts'

export type ControlTower = ApiResponse<'/api/control-tower', 'get'>
export type Tile = { name: string; value: string; note?: string; tone?: Tone | undefined; href: string }

const account = (page: string[], query: Record<string, string | undefined> = {}) =>
  routeHref(['account', ...page], query)

/** The figures of the control tower, each with the page that lists what it counts. Those that need attention are marked above zero. */
export function toTiles(tower: ControlTower): Tile[] {
  const { spend, runs, preauth, webhooks } = tower
  const today = `${tower.as_of.slice(0, 10)}T00:00:00.000Z`
  const month = `${tower.as_of.slice(0, 7)}-01T00:00:00.000Z`
  const decisions = tower.approvals_pending + tower.brokerage_approvals_pending
  const tile = (name: string, count: number, href: string, options: { warn?: boolean; note?: string } = {}): Tile => ({
    name,
    value: formatCount(count),
    href,
    tone: options.warn && count > 0 ? 'warning' : undefined,
    ...(options.note !== undefined && { note: options.note }),
  })
  return [
    {
      name: 'Spent today',
      value: formatUsdc(spend.today_usdc),
      note: 'since midnight UTC',
      href: account(['spend'], { from: today.slice(0, 10), to: today.slice(0, 10), zone: 'utc' }),
    },
    {
      name: 'Spent this month',
      value: formatUsdc(spend.month_usdc),
      href: account(['spend'], { from: month.slice(0, 10), to: today.slice(0, 10), zone: 'utc' }),
    },
    tile('Waiting for a decision', decisions, account(['approvals'], { status: 'pending' }), {
      warn: true,
      note: `${formatCount(tower.approvals_pending)} core, ${formatCount(tower.brokerage_approvals_pending)} brokerage`,
    }),
    tile('Executing', runs.executing, account(['runs'], { progress: 'executing' })),
    tile('Runs today', runs.today, account(['runs'], { since: today })),
    tile('Runs this month', runs.month, account(['runs'], { since: month })),
    tile('Completed today', runs.completed_today, account(['runs'], { outcome: 'completed', since: today })),
    tile('Blocked today', runs.blocked_today, account(['runs'], { outcome: 'blocked', since: today }), { warn: true }),
    tile('Failed today', runs.failed_today, account(['runs'], { outcome: 'failed', since: today }), { warn: true }),
    tile('Escalated', runs.escalated, account(['runs'], { outcome: 'escalated' }), { warn: true }),
    tile('Open pre-authorisations', preauth.open, account(['preauths'], { status: 'active' }), {
      ...(preauth.oldest_age_s !== null && { note: `oldest ${formatDuration(preauth.oldest_age_s)}` }),
    }),
    tile('Escalated pre-authorisations', preauth.escalated, account(['preauths'], { status: 'escalated' }), {
      warn: true,
    }),
    tile('Budgets at risk', tower.budgets_at_risk.length, account(['tower', 'budgets'], { at_risk: 'true' }), {
      warn: true,
    }),
    tile('Unread alerts', tower.alerts_unread, account(['alerts'], { unread: 'true' }), { warn: true }),
    tile('Settlements unknown', tower.settlements_unknown, account(['settlements'], { status: 'unknown' }), {
      warn: true,
    }),
    tile('Active webhooks', webhooks.active, account(['webhooks'], { status: 'active' })),
    tile('Failing webhooks', webhooks.failing, account(['webhooks'], { status: 'failing' }), { warn: true }),
    tile('Waiting deliveries', webhooks.pending_deliveries, account(['tower', 'deliveries']), {
      ...(webhooks.oldest_pending_age_s !== null && {
        note: `oldest ${formatDuration(webhooks.oldest_pending_age_s)}`,
      }),
    }),
    tile('Frozen agents', tower.frozen_agents.length, account(['tower', 'frozen']), { warn: true }),
    tile('Decided by who asked', tower.self_approved_count, account(['tower', 'self-approved']), {
      warn: true,
      note: 'this month',
    }),
  ]
}
