import type { ComponentType } from 'react'
import { type LazyComponent, lazyComponent } from './lazy-component.ts'
import type { Route } from './route.ts'
import { StartPage } from './start/start-page.tsx'

export type PageProps = { route: Route }
export type Page = { name: string; title: string; Page: LazyComponent<PageProps> }

/** They come together: evidence that was opened can be verified when the service is gone. */
const loadEvidencePages = () =>
  Promise.all([
    import('./overview/overview-page.tsx'),
    import('./receipts/receipts-page.tsx'),
    import('./receipts/verify-page.tsx'),
  ])

/** The pages that anybody can open. The first is part of the first script; the others are loaded when they are opened. */
export const pageGroups: { title: string; pages: Page[] }[] = [
  {
    title: 'Begin',
    pages: [
      { name: 'start', title: 'Start', Page: StartPage },
      page('playground', 'Playground', async () => (await import('./playground/playground-page.tsx')).PlaygroundPage),
    ],
  },
  {
    title: 'Evidence',
    pages: [
      page('receipts', 'Receipts', async () => (await loadEvidencePages())[1].ReceiptsPage),
      page('verify', 'Verify', async () => (await loadEvidencePages())[2].VerifyPage),
      page('overview', 'Overview', async () => (await loadEvidencePages())[0].OverviewPage),
    ],
  },
  {
    title: 'Markets',
    pages: [page('basis', 'Basis', async () => (await import('./basis/basis-page.tsx')).BasisPage)],
  },
]

export const pages = pageGroups.flatMap((group) => group.pages)

function page(name: string, title: string, load: () => Promise<ComponentType<PageProps>>): Page {
  return { name, title, Page: lazyComponent(load) }
}
