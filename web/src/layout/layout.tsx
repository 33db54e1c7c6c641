import { Outlet, useLocation, useRouterState } from '@tanstack/react-router'
import { useEffect, useRef } from 'react'
import { sections } from '../account/sections.ts'
import { UnreachableBanner } from '../components/unreachable-banner.tsx'
import { pages } from '../pages.ts'
import { parseRoute } from '../route.ts'
import { Sidebar } from './sidebar.tsx'

/** What surrounds every page: the navigation, one banner while the service is away, and the focus after a navigation. */
export function Layout() {
  const { pathname, href } = useLocation()
  const title = titleOf(pathname)
  const isLoading = useRouterState({ select: (state) => state.isLoading })
  const mainRef = useRef<HTMLElement>(null)
  const focusedPath = useRef(pathname)
  useEffect(() => {
    document.title = `${title} · Countersign`
    // After a navigation a screen reader starts at the new page.
    if (focusedPath.current === pathname) return
    focusedPath.current = pathname
    mainRef.current?.focus({ preventScroll: true })
  }, [pathname, title])
  return (
    <>
      <button type="button" className="skip-link" onClick={() => mainRef.current?.focus()}>
        Skip to content
      </button>
      <div className="layout">
        {/* A new address closes the menu of narrow screens. */}
        <Sidebar key={href} />
        <div className="page">
          <UnreachableBanner />
          <main ref={mainRef} tabIndex={-1} aria-busy={isLoading}>
            <Outlet />
          </main>
        </div>
      </div>
    </>
  )
}

/** The name of the page, after that of the thing it shows. */
export function titleOf(pathname: string): string {
  const { page, segments } = parseRoute(pathname)
  const [name, thing] = page === 'account' ? segments : [page, segments[0]]
  if (page === 'account' && name === undefined) return 'Account'
  const entry =
    page === 'account'
      ? sections.find((section) => section.name === name)
      : pages.find((one) => one.name === (name || 'start'))
  return `${thing ? `${thing} · ` : ''}${entry?.title ?? 'Page not found'}`
}
