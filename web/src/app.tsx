import { type ComponentType, useEffect, useRef } from 'react'
import { AccountPage } from './account/account-page.tsx'
import { BasisPage } from './basis/basis-page.tsx'
import { UnreachableBanner } from './components/unreachable-banner.tsx'
import { OverviewPage } from './overview/overview-page.tsx'
import { ReceiptsPage } from './receipts/receipts-page.tsx'
import { VerifyPage } from './receipts/verify-page.tsx'
import { parseRoute, type Route, routeHref, useHash } from './route.ts'

const pages: { name: string; title: string; Page: ComponentType<{ route: Route }> }[] = [
  { name: 'overview', title: 'Overview', Page: OverviewPage },
  { name: 'receipts', title: 'Receipts', Page: ReceiptsPage },
  { name: 'verify', title: 'Verify', Page: VerifyPage },
  { name: 'basis', title: 'Basis', Page: BasisPage },
  { name: 'account', title: 'Account', Page: AccountPage },
]

export function App() {
  const route = parseRoute(useHash())
  const { name: current, title, Page } = pages.find(({ name }) => name === route.page) ?? pages[0]!
  const location = [current, ...route.segments].join('/')
  const mainRef = useRef<HTMLElement>(null)
  const focusedLocation = useRef(location)
  useEffect(() => {
    document.title = `${route.segments[0] ? `${route.segments[0]} · ` : ''}${title} · Countersign`
    // Navigation starts at the top of the new page; on a reload the browser restores the scroll position.
    if (focusedLocation.current === location) return
    focusedLocation.current = location
    mainRef.current?.focus({ preventScroll: true })
    scrollTo(0, 0)
  }, [location, title, route.segments[0]])

  return (
    <>
      <button type="button" className="skip-link" onClick={() => mainRef.current?.focus()}>
        Skip to content
      </button>
      <header className="page-header">
        <a className="brand" href={routeHref(['overview'])}>
          <img src={`${import.meta.env.BASE_URL}icon.svg`} alt="" width="24" height="24" />
          Countersign
        </a>
        <nav aria-label="Pages">
          {pages.map(({ name, title: label }) => (
            <a key={name} href={routeHref([name])} aria-current={name === current ? 'page' : undefined}>
              {label}
            </a>
          ))}
          <a href="/docs">API</a>
        </nav>
      </header>
      <UnreachableBanner />
      <main ref={mainRef} tabIndex={-1}>
        <Page route={route} />
      </main>
    </>
  )
}
