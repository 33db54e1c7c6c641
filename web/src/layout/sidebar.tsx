import { useMutation } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { sectionGroups } from '../account/sections.ts'
import { type Me, signOut, useSession } from '../account/sign-in.ts'
import { useWaitingCount } from '../approvals/waiting.tsx'
import { ThemeSelect } from '../components/theme-select.tsx'
import { ErrorMessage } from '../components/ui.tsx'
import { pageGroups } from '../pages.ts'
import { routeHref } from '../route.ts'

type NavigationGroup = { title: string; links: { to: string; title: string }[] }

export function Sidebar() {
  const [isMenuOpen, setMenuOpen] = useState(false)
  const { data: me } = useSession()
  return (
    <header className="sidebar">
      <div className="sidebar-head">
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
      </div>
      <div id="menu" className="menu" data-open={isMenuOpen}>
        {me && <p className="organisation">{me.org_name}</p>}
        <nav aria-label="Pages">
          {navigationGroups(Boolean(me)).map(({ title, links }) => (
            <div key={title} className="navigation-group">
              <p className="navigation-title">{title}</p>
              {links.map((link) => (
                <Link key={link.to} to={link.to} activeOptions={{ includeSearch: false }}>
                  {link.title}
                  {link.to === APPROVALS && <WaitingCount />}
                </Link>
              ))}
            </div>
          ))}
          <div className="navigation-group">
            <p className="navigation-title">Read</p>
            <a href="/docs">Docs</a>
          </div>
        </nav>
        <div className="sidebar-foot">
          <ThemeSelect />
          {me ? <SignOutButton me={me} /> : null}
        </div>
      </div>
    </header>
  )
}

const APPROVALS = '/account/approvals'

/** How many decisions wait, beside the link to them. */
function WaitingCount() {
  const count = useWaitingCount()
  if (!count) return null
  return (
    <span className="waiting-count">
      {count}
      <span className="visually-hidden"> waiting</span>
    </span>
  )
}

/** Who is signed in sees the account first; the public pages of a group stand below those of the account. */
export function navigationGroups(isSignedIn: boolean): NavigationGroup[] {
  const publicGroups = pageGroups.map(({ title, pages }) => ({
    title,
    links: pages.map((page) => ({ to: `/${page.name}`, title: page.title })),
  }))
  if (!isSignedIn) return [...publicGroups, { title: 'Account', links: [{ to: '/account', title: 'Sign in' }] }]
  const accountGroups = sectionGroups.map(({ title, sections }) => ({
    title,
    links: [
      ...sections.map((section) => ({ to: `/account/${section.name}`, title: section.title })),
      ...publicGroups.filter((group) => group.title === title).flatMap(({ links }) => links),
    ],
  }))
  return [
    ...accountGroups,
    ...publicGroups.filter(({ title }) => accountGroups.every((group) => group.title !== title)),
  ]
}

function SignOutButton({ me }: { me: Me }) {
  const mutation = useMutation({ mutationFn: signOut })
  return (
    <>
      <button
        type="button"
        className="secondary"
        title={me.email}
        disabled={mutation.isPending}
        onClick={() => mutation.mutate()}
      >
        Sign out
      </button>
      {mutation.error && <ErrorMessage>You are still signed in: {mutation.error.message}</ErrorMessage>}
    </>
  )
}
