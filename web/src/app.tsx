import { useEffect, useState } from 'react'
import { AccountPage } from './account-page.tsx'
import { OverviewPage } from './overview-page.tsx'
import { ReceiptsPage } from './receipts-page.tsx'

const pages = { overview: OverviewPage, receipts: ReceiptsPage, account: AccountPage }
type Page = keyof typeof pages

const pageOf = (hash: string): Page => {
  const name = hash.replace(/^#\/?/, '').split('/')[0]!
  return name in pages ? (name as Page) : 'overview'
}

export function App() {
  const [hash, setHash] = useState(location.hash)
  useEffect(() => {
    const follow = () => setHash(location.hash)
    addEventListener('hashchange', follow)
    return () => removeEventListener('hashchange', follow)
  }, [])
  const page = pageOf(hash)
  const Shown = pages[page]
  return (
    <>
      <header>
        <h1>Countersign</h1>
        <nav aria-label="Pages">
          {(Object.keys(pages) as Page[]).map((name) => (
            <a key={name} href={`#/${name}`} aria-current={name === page ? 'page' : undefined}>
              {name[0]!.toUpperCase() + name.slice(1)}
            </a>
          ))}
          <a href="/docs">API</a>
        </nav>
      </header>
      <main>
        <Shown />
      </main>
    </>
  )
}
