import { beforeEach, expect, test } from 'vitest'
import { renderHtml, renderText } from '../../test/render.tsx'
import { ACCOUNT_KEY, queryClient } from '../api.ts'
import { BudgetsSection } from '../budgets/budgets-section.tsx'
import { parseRoute } from '../route.ts'
import { AlertsSection } from '../tower/alerts-section.tsx'
import { ControlTowerSection } from '../tower/control-tower-section.tsx'
import { AccountPage } from './account-page.tsx'
import type { SectionProps } from './section-props.ts'

const me = { org_name: 'Acme', email: 'a@example.com', plan: 'free', tenant_id: 'ten_1', scopes: ['read'] }
const page = (hash: string) => <AccountPage route={parseRoute(hash)} />

beforeEach(() => queryClient.clear())

test('without a session the page is the sign-in form, whatever the section', () => {
  queryClient.setQueryData(['session'], null)
  expect(renderText(page('#/account/runs'))).toContain('Sign in with an API key')
  expect(renderHtml(page('#/account'))).toContain('type="password"')
})

test('the URL selects the section, without one it is the control tower, and an unknown one says so', () => {
  queryClient.setQueryData(['session'], me)
  const currentTab = (hash: string) => /aria-current="page"[^>]*>([^<]*)</.exec(renderHtml(page(hash)))?.[1]
  expect(currentTab('#/account/approvals')).toBe('Approvals')
  expect(currentTab('#/account/budgets')).toBe('Budgets')
  expect(currentTab('#/account')).toBe('Control tower')
  expect(currentTab('#/account/nowhere')).toBeUndefined()
  expect(renderText(page('#/account/nowhere'))).toContain('There is no page account/nowhere')
})

test('a key without the control scope sees no form to freeze agents or to change budgets', () => {
  const props = (scopes: string[]) => ({ me: { ...me, scopes }, route: parseRoute('') }) as unknown as SectionProps
  queryClient.setQueryData([ACCOUNT_KEY, 'budgets'], { budgets: [] })
  expect(renderText(<ControlTowerSection {...props(['read'])} />)).toContain('can view but not make changes')
  expect(renderText(<BudgetsSection {...props(['read'])} />)).not.toContain('Create or update a budget')
  expect(renderText(<ControlTowerSection {...props(['control'])} />)).toContain('Freeze')
  expect(renderText(<BudgetsSection {...props(['control'])} />)).toContain('Create or update a budget')
})

test('the list of alerts is only requested when the plan includes it', () => {
  const section = <AlertsSection {...({ me, route: parseRoute('') } as unknown as SectionProps)} />
  queryClient.setQueryData([ACCOUNT_KEY, 'plan'], { plan: 'free', features: { predictive_alerts: false } })
  expect(renderText(section)).toContain('does not include predictive alerts')
  queryClient.setQueryData([ACCOUNT_KEY, 'plan'], { plan: 'builder', features: { predictive_alerts: true } })
  expect(renderText(section)).toContain('Severity')
})
