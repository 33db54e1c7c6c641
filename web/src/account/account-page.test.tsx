import { beforeEach, expect, test, vi } from 'vitest'
import { renderHtml, renderText } from '../../test/render.tsx'
import { ACCOUNT_KEY, queryClient } from '../api.ts'
import { parseRoute } from '../route.ts'

// The chart asks for the colour scheme when it is loaded.
vi.stubGlobal('matchMedia', () => ({ matches: false, addEventListener() {}, removeEventListener() {} }))
const { AccountPage } = await import('./account-page.tsx')

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
  expect(currentTab('#/account/limits')).toBe('Budgets and policies')
  expect(currentTab('#/account')).toBe('Control tower')
  expect(currentTab('#/account/nowhere')).toBeUndefined()
  expect(renderText(page('#/account/nowhere'))).toContain('There is no page account/nowhere')
})

test('a key without the control scope sees no form to freeze agents or to change budgets', () => {
  const show = (scopes: string[], hash: string) => {
    queryClient.setQueryData(['session'], { ...me, scopes })
    return renderText(page(hash))
  }
  queryClient.setQueryData([ACCOUNT_KEY, 'budgets'], { budgets: [] })
  expect(show(['read'], '#/account/tower')).toContain('can view but not make changes')
  expect(show(['read'], '#/account/limits')).not.toContain('Create or update a budget')
  expect(show(['control'], '#/account/tower')).toContain('Freeze')
  expect(show(['control'], '#/account/limits')).toContain('Create or update a budget')
})

test('the list of alerts is only requested when the plan includes it', () => {
  queryClient.setQueryData(['session'], me)
  queryClient.setQueryData([ACCOUNT_KEY, 'plan'], { plan: 'free', features: { predictive_alerts: false } })
  expect(renderText(page('#/account/alerts'))).toContain('does not include predictive alerts')
  queryClient.setQueryData([ACCOUNT_KEY, 'plan'], { plan: 'builder', features: { predictive_alerts: true } })
  expect(renderText(page('#/account/alerts'))).toContain('Severity')
})
