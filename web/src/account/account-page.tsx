import { useMutation } from '@tanstack/react-query'
import { Suspense } from 'react'
import { CopyButton } from '../components/copy-button.tsx'
import { NotFoundCard } from '../components/not-found.tsx'
import { QueryResult } from '../components/query-result.tsx'
import { Badge, Card, ErrorMessage, Id, MutedText, PageTitle } from '../components/ui.tsx'
import { type Route, routeHref } from '../route.ts'
import type { SectionProps } from './section-props.ts'
import { sections } from './sections.ts'
import { signOut, useSession } from './sign-in.ts'
import { SignInForm } from './sign-in-form.tsx'

export function AccountPage({ route }: { route: Route }) {
  const session = useSession()
  return <QueryResult query={session}>{(me) => (me ? <SignedIn me={me} route={route} /> : <SignIn />)}</QueryResult>
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

function SignedIn({ me, route }: SectionProps) {
  const signOutMutation = useMutation({ mutationFn: signOut })
  const [sectionName = sections[0]!.name] = route.segments
  const section = sections.find(({ name }) => name === sectionName)
  return (
    <>
      <PageTitle
        aside={
          <button
            type="button"
            className="secondary"
            disabled={signOutMutation.isPending}
            onClick={() => signOutMutation.mutate()}
          >
            Sign out
          </button>
        }
      >
        {me.org_name}
      </PageTitle>
      <p className="account-summary muted">
        <span>{me.email}</span>
        <Badge tone="neutral">plan {me.plan}</Badge>
        <span>
          <Id value={me.tenant_id} /> <CopyButton text={me.tenant_id} label="the tenant id" />
        </span>
      </p>
      {signOutMutation.error && <ErrorMessage>You are still signed in: {signOutMutation.error.message}</ErrorMessage>}
      <nav className="tabs" aria-label="Account">
        {sections.map(({ name, title }) => (
          <a key={name} href={routeHref(['account', name])} aria-current={name === sectionName ? 'page' : undefined}>
            {title}
          </a>
        ))}
      </nav>
      <Suspense fallback={<MutedText>Loading…</MutedText>}>
        {section ? <section.Section me={me} route={route} /> : <NotFoundCard address={`account/${sectionName}`} />}
      </Suspense>
    </>
  )
}
