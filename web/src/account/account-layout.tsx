import { Outlet } from '@tanstack/react-router'
import { createContext, useContext } from 'react'
import { WaitingWatch } from '../approvals/waiting.tsx'
import { LiveBadge } from '../components/live-badge.tsx'
import { QueryResult } from '../components/query-result.tsx'
import { Card, MutedText, PageTitle } from '../components/ui.tsx'
import { useLiveUpdates } from '../live.ts'
import { routeHref } from '../route.ts'
import { type Me, useSession } from './sign-in.ts'
import { SignInForm } from './sign-in-form.tsx'

const MeContext = createContext<Me | undefined>(undefined)

/** The signed-in tenant; only a page of the account may ask. */
export function useMe(): Me {
  const me = useContext(MeContext)
  if (!me) throw new Error('Nobody is signed in.')
  return me
}

/** Around every page of the account: without a session it is the sign-in form, whatever the address. */
export function AccountLayout() {
  const session = useSession()
  return (
    <QueryResult query={session}>
      {(me) =>
        me ? (
          <MeContext value={me}>
            <LiveUpdates />
            <WaitingWatch />
            <Outlet />
          </MeContext>
        ) : (
          <SignIn />
        )
      }
    </QueryResult>
  )
}

/** Mounted for as long as somebody is signed in. */
function LiveUpdates() {
  useLiveUpdates()
  return <LiveBadge />
}

const SignIn = () => (
  <>
    <PageTitle>Account</PageTitle>
    <Card title="Sign in with an API key">
      <SignInForm />
      <MutedText>
        The key is exchanged for a session cookie that scripts cannot read, and is not stored in this page. No key yet?{' '}
        <a href={routeHref(['start'])}>Create an organisation</a>.
      </MutedText>
    </Card>
  </>
)
