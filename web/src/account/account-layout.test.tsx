import { createMemoryHistory, RouterProvider } from '@tanstack/react-router'
import { beforeEach, expect, test } from 'vitest'
import { renderHtml, renderText } from '../../test/render.tsx'
import { ACCOUNT_KEY, queryClient } from '../api.ts'
import { BudgetsSection } from '../budgets/budgets-section.tsx'
import { parseRoute } from '../route.ts'
import { createAppRouter } from '../router.tsx'
import { AlertsSection } from '../tower/alerts-section.tsx'
import { ControlTowerSection } from '../tower/control-tower-section.tsx'
import type { SectionProps } from './section-props.ts'

const me = { org_name: 'Acme', email: 'a@example.com', plan: 'free', tenant_id: 'ten_1', scopes: ['read'] }
/** The whole page at an address, as a browser first draws it. */
async function renderPage(address: string, session: unknown): Promise<string> {
  queryClient.setQueryData(['session'], session)
  const router = createAppRouter(createMemoryHistory({ initialEntries: [address] }))
  await router.load()
  return renderHtml(<RouterProvider router={router} />)
}
const textOf = (html: string) => html.replace(/<[^>]+>/g, ' ').replace(/\s+/g, ' ')

beforeEach(() => queryClient.clear())

test('without a session every page of the account is the sign-in form', async () => {
  expect(textOf(await renderPage('/account/runs', null))).toContain('Sign in with an API key')
  expect(await renderPage('/account/tower', null)).toContain('type="password"')
})

test('the address selects the page, and an unknown one says so', async () => {
  const currentLink = (html: string) => /aria-current="page"[^>]*>([^<]*)</.exec(html)?.[1]
  expect(currentLink(await renderPage('/account/approvals?status=all', me))).toBe('Approvals')
  expect(currentLink(await renderPage('/account/runs/run_1', me))).toBe('Runs')
  expect(currentLink(await renderPage('/account/tower', me))).toBe('Control tower')
  const unknown = await renderPage('/account/nowhere', me)
  expect(currentLink(unknown)).toBeUndefined()
  expect(textOf(unknown)).toContain('There is no page account/nowhere')
})

test('a key without the control scope sees no form to freeze agents or to change budgets', () => {
  const props = (scopes: string[]) => ({ me: { ...me, scopes }, route: parseRoute('') }) as unknown as SectionProps
  queryClient.setQueryData([ACCOUNT_KEY, 'budgets'], { budgets: [] })
  expect(renderText(<ControlTowerSection {...props(['read'])} />)).toContain('can view but not make changes')
  expect(renderText(<BudgetsSection {...props(['read'])} />)).not.toContain('Create a budget')
  expect(renderText(<ControlTowerSection {...props(['control'])} />)).toContain('Freeze')
  expect(renderText(<BudgetsSection {...props(['control'])} />)).toContain('Create a budget')
  expect(renderHtml(<BudgetsSection {...props(['read'])} />)).not.toContain('<form')
})

test('the list of alerts is only requested when the plan includes it', () => {
  const section = <AlertsSection {...({ me, route: parseRoute('') } as unknown as SectionProps)} />
  queryClient.setQueryData([ACCOUNT_KEY, 'plan'], { plan: 'free', features: { predictive_alerts: false } })
  expect(renderText(section)).toContain('does not include predictive alerts')
  queryClient.setQueryData([ACCOUNT_KEY, 'plan'], { plan: 'builder', features: { predictive_alerts: true } })
  expect(renderText(section)).toContain('Severity')
})
