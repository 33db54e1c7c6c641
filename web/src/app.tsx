import { type ComponentType, useEffect, useRef } from 'react'
import { AccountPage } from './account/account-page.tsx'
import { BasisPage } from './basis/basis-page.tsx'
import { OverviewPage } from './overview/overview-page.tsx'
import { Unreachable } from './parts/unreachable.tsx'
import { ReceiptsPage } from './receipts/receipts-page.tsx'
import { VerifyPage } from './receipts/verify-page.tsx'
import { link, type Route, readRoute, useHash } from './route.ts'

const pages: { name: string; title: string; Page: ComponentType<{ route: Route }> }[] = [
  { name: 'overview', title: 'Overview', Page: OverviewPage },
  { name: 'receipts', title: 'Receipts', Page: ReceiptsPage },
  { name: 'verify', title: 'Verify', Page: VerifyPage },
  { name: 'basis', title: 'Basis', Page: BasisPage },
  { name: 'account', title: 'Account', Page: AccountPage },
]

export function App() {
  const route = readRoute(useHash())
  const { name: current, title, Page } = pages.find(({ name }) => name === route.page) ?? pages[0]!
  const place = [current, ...route.rest].join('/')
  const main = useRef<HTMLElement>(null)
  const shown = useRef(place)
  useEffect(() => {
    document.title = `${route.rest[0] ? `${route.rest[0]} · ` : ''}${title} · Countersign`
    // A new page is read from its top; a reload leaves the reader where the browser puts them.
    if (shown.current === place) return
    shown.current = place
    main.current?.focus({ preventScroll: true })
    scrollTo(0, 0)
  }, [place, title, route.rest[0]])

  return (
    <>
      <button type="button" className="skip" onClick={() => main.current?.focus()}>
        Skip to the content
      </button>
      <header className="top">
        <a className="brand" href={link(['overview'])}>
          <img src={`${import.meta.env.BASE_URL}icon.svg`} alt="" width="24" height="24" />
          Countersign
        </a>
        <nav aria-label="Pages">
          {pages.map(({ name, title: text }) => (
            <a key={name} href={link([name])} aria-current={name === current ? 'page' : undefined}>
              {text}
            </a>
          ))}
          <a href="/docs">API</a>
        </nav>
      </header>
      <Unreachable />
      <main ref={main} tabIndex={-1}>
        <Page route={route} />
      </main>
    </>
  )
}
