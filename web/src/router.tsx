import {
  createRootRoute,
  createRoute,
  createRouter,
  type RouteComponent,
  type RouterHistory,
  redirect,
} from '@tanstack/react-router'
import { AccountLayout, useMe } from './account/account-layout.tsx'
import { type Section, sections } from './account/sections.ts'
import { NotFoundPage } from './components/not-found.tsx'
import { PageError } from './components/page-error.tsx'
import { MutedText, PageTitle } from './components/ui.tsx'
import { Layout } from './layout/layout.tsx'
import { type Page, pages } from './pages.ts'
import { useRoute } from './route.ts'

/** Addresses of the dashboard before its pages had their own. */
const formerSections: Record<string, string> = { '': 'tower', limits: 'budgets' }

/** Every address below a page belongs to it: what follows its name is its own to read. */
export function createAppRouter(history: RouterHistory) {
  const root = createRootRoute({
    component: Layout,
    notFoundComponent: NotFoundPage,
    // As it stands in the address: what the router decoded no longer tells a slash from an escaped one.
    beforeLoad: ({ location }) => ({ href: location.href }),
  })
  const account = createRoute({ getParentRoute: () => root, path: 'account', component: AccountLayout })
  const pageRoutes = pages.map((page) =>
    createRoute({ getParentRoute: () => root, path: `${page.name}/$`, component: toPageRoute(page) }),
  )
  const sectionRoutes = sections.map((section) =>
    createRoute({ getParentRoute: () => account, path: `${section.name}/$`, component: toSectionRoute(section) }),
  )
  const formerRoutes = Object.entries(formerSections).map(([path, name]) =>
    createRoute({
      getParentRoute: () => account,
      path: path || '/',
      beforeLoad: () => {
        throw redirect({ to: `/account/${name}`, replace: true })
      },
    }),
  )
  const first = createRoute({ getParentRoute: () => root, path: '/', component: toPageRoute(pages[0]!) })
  return createRouter({
    routeTree: root.addChildren([first, ...pageRoutes, account.addChildren([...sectionRoutes, ...formerRoutes])]),
    history,
    // The values of an address are plain text, as people and other programs write them.
    parseSearch: (search) => Object.fromEntries(new URLSearchParams(search)),
    stringifySearch: (search) => {
      const text = new URLSearchParams(search as Record<string, string>).toString()
      return text && `?${text}`
    },
    defaultPreload: 'intent',
    defaultErrorComponent: PageError,
    defaultPendingComponent: () => <MutedText>Loading…</MutedText>,
    scrollRestoration: true,
  })
}

const toPageRoute = ({ Page }: Page): RouteComponent =>
  Object.assign(() => <Page route={useRoute()} />, { preload: Page.preload })

const toSectionRoute = ({ title, Section }: Section): RouteComponent =>
  Object.assign(
    () => (
      <>
        <PageTitle>{title}</PageTitle>
        <Section me={useMe()} route={useRoute()} />
      </>
    ),
    { preload: Section.preload },
  )
