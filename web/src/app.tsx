import { type ComponentType, lazy, Suspense, useEffect, useRef, useState } from 'react'
import { ErrorBoundary } from './components/error-boundary.tsx'
import { NotFoundPage } from './components/not-found.tsx'
import { ThemeSelect } from './components/theme-select.tsx'
import { MutedText } from './components/ui.tsx'
import { UnreachableBanner } from './components/unreachable-banner.tsx'
import { parseRoute, type Route, routeHref, useHash } from './route.ts'
import { StartPage } from './start/start-page.tsx'

type Page = { name: string; title: string; Page: ComponentType<{ route: Route }> }

/** They come together: evidence that was opened can be verified when the service is gone. */
const loadEvidencePages = () =>
  Promise.all([
    import('./overview/overview-page.tsx'),
    import('./receipts/receipts-page.tsx'),
    import('./receipts/verify-page.tsx'),
  ])

/** The first page is part of the first script; every other page is loaded when it is opened. */
const startPage: Page = { name: 'start', title: 'Start', Page: StartPage }
const pages: Page[] = [
  startPage,
  {
    name: 'playground',
    title: 'Playground',
    Page: lazy(async () => ({ default: (await import('./playground/playground-page.tsx')).PlaygroundPage })),
  },
  {
    name: 'overview',
    title: 'Overview',
    Page: lazy(async () => ({ default: (await loadEvidencePages())[0].OverviewPage })),
  },
  {
    name: 'receipts',
    title: 'Receipts',
    Page: lazy(async () => ({ default: (await loadEvidencePages())[1].ReceiptsPage })),
  },
  {
    name: 'verify',
    title: 'Verify',
    Page: lazy(async () => ({ default: (await loadEvidencePages())[2].VerifyPage })),
  },
  {
    name: 'basis',
    title: 'Basis',
    Page: lazy(async () => ({ default: (await import('./basis/basis-page.tsx')).BasisPage })),
  },
  {
    name: 'account',
    title: 'Account',
    Page: lazy(async () => ({ default: (await import('./account/account-page.tsx')).AccountPage })),
  },
]

export function App() {
  const hash = useHash()
  const route = parseRoute(hash)
  const current = route.page === '' ? startPage : pages.find(({ name }) => name === route.page)
  const location = [current?.name ?? route.page, ...route.segments].join('/')
  const title = current?.title ?? 'Page not found'
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
      {/* A new address closes the menu of narrow screens. */}
      <PageHeader key={hash} current={current?.name} />
      <UnreachableBanner />
      <main ref={mainRef} tabIndex={-1}>
        <ErrorBoundary key={location}>
          <Suspense fallback={<MutedText>Loading…</MutedText>}>
            {current ? <current.Page route={route} /> : <NotFoundPage address={location} />}
          </Suspense>
        </ErrorBoundary>
      </main>
    </>
  )
}

function PageHeader({ current }: { current: string | undefined }) {
  const [isMenuOpen, setMenuOpen] = useState(false)
  return (
    <header className="page-header">
      <a className="brand" href={routeHref(['start'])}>
        <img src={`${import.meta.env.BASE_URL}icon.svg`} alt="" width="24" height="24" />
        Countersign
      </a>
      <button
        type="button"
        className="secondary menu-button"
        aria-expanded={isMenuOpen}
        aria-controls="menu"
        onClick={() => setMenuOpen(!isMenuOpen)}
      >
        Menu
      </button>
      <div id="menu" className="menu" data-open={isMenuOpen}>
        <nav aria-label="Pages">
          {pages.map(({ name, title }) => (
            <a key={name} href={routeHref([name])} aria-current={name === current ? 'page' : undefined}>
              {title}
            </a>
          ))}
          <a href="/docs">Docs</a>
        </nav>
        <ThemeSelect />
      </div>
    </header>
  )
}
