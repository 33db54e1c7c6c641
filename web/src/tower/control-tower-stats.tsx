import type { ApiResponse } from '@countersign/sdk'
import { formatCount, formatDuration, formatUsdc } from '../format.ts'
import { routeHref } from '../route.ts'

export type ControlTower = ApiResponse<'/api/control-tower', 'get'>

/** The figures of the control tower; those that need attention are marked when they are above zero. */
export function toStats({ spend, runs, approvals_pending, preauth, settlements_unknown, webhooks }: ControlTower) {
  const warnIfPositive = (value: number) => (value > 0 ? ('warning' as const) : undefined)
  return [
    { name: 'Spent today', value: formatUsdc(spend.today_usdc) },
    { name: 'Spent this month', value: formatUsdc(spend.month_usdc) },
    { name: 'Runs today', value: formatCount(runs.today) },
    { name: 'Runs this month', value: formatCount(runs.month) },
    { name: 'Executing', value: formatCount(runs.executing) },
    { name: 'Blocked today', value: formatCount(runs.blocked_today), tone: warnIfPositive(runs.blocked_today) },
    { name: 'Failed today', value: formatCount(runs.failed_today), tone: warnIfPositive(runs.failed_today) },
    { name: 'Escalated', value: formatCount(runs.escalated), tone: warnIfPositive(runs.escalated) },
    {
      name: 'Approvals waiting',
      value: <a href={routeHref(['account', 'approvals'])}>{formatCount(approvals_pending)}</a>,
      tone: warnIfPositive(approvals_pending),
    },
    {
      name: 'Open pre-authorisations',
      value: `${formatCount(preauth.open)}${preauth.oldest_age_s === null ? '' : `, oldest ${formatDuration(preauth.oldest_age_s)}`}`,
      tone: warnIfPositive(preauth.escalated),
    },
    { name: 'Settlements unknown', value: formatCount(settlements_unknown), tone: warnIfPositive(settlements_unknown) },
    {
      name: 'Webhooks',
      value: `${formatCount(webhooks.active)} active, ${formatCount(webhooks.failing)} failing`,
      tone: warnIfPositive(webhooks.failing),
    },
  ]
}
