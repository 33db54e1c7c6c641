import { useMutation } from '@tanstack/react-query'
import { type ComponentType, type FormEvent, useState } from 'react'
import { Field } from '../components/form-fields.tsx'
import { QueryResult } from '../components/query-result.tsx'
import { Badge, Card, ErrorMessage, Id, MutedText, PageTitle } from '../components/ui.tsx'
import { type Route, routeHref } from '../route.ts'
import { AlertsSection } from './alerts-section.tsx'
import { AnalyticsSection } from './analytics-section.tsx'
import { ApprovalsSection } from './approvals-section.tsx'
import { ControlTowerSection } from './control-tower-section.tsx'
import { LimitsSection } from './limits-section.tsx'
import { RunsSection } from './runs-section.tsx'
import type { SectionProps } from './section-props.ts'
import { signIn, signOut, useSession } from './sign-in.ts'
import { WebhooksSection } from './webhooks-section.tsx'

const sections: { name: string; title: string; Section: ComponentType<SectionProps> }[] = [
  { name: 'tower', title: 'Control tower', Section: ControlTowerSection },
  { name: 'runs', title: 'Runs', Section: RunsSection },
  { name: 'approvals', title: 'Approvals', Section: ApprovalsSection },
  { name: 'limits', title: 'Budgets and policies', Section: LimitsSection },
  { name: 'analytics', title: 'Analytics', Section: AnalyticsSection },
  { name: 'webhooks', title: 'Webhooks', Section: WebhooksSection },
  { name: 'alerts', title: 'Alerts', Section: AlertsSection },
]

export function AccountPage({ route }: { route: Route }) {
  const session = useSession()
  return <QueryResult query={session}>{(me) => (me ? <SignedIn me={me} route={route} /> : <SignIn />)}</QueryResult>
}

function SignIn() {
  const [state, setState] = useState<{ pending: boolean; problem?: string }>({ pending: false })
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const form = event.currentTarget
    const apiKey = String(new FormData(form).get('api_key')).trim()
    // Clear the field at once: the key must not stay anywhere in the page.
    form.reset()
    setState({ pending: true })
    try {
      await signIn(apiKey)
    } catch (error) {
      setState({ pending: false, problem: (error as Error).message })
    }
  }
  return (
    <>
      <PageTitle>Account</PageTitle>
      <Card title="Sign in with an API key">
        <form onSubmit={(event) => void submit(event)} className="filters">
          <Field label="API key">
            {(id) => (
              <input
                id={id}
                name="api_key"
                type="password"
                autoComplete="off"
                placeholder="csk_…"
                maxLength={200}
                required
              />
            )}
          </Field>
          <button type="submit" disabled={state.pending}>
            Sign in
          </button>
        </form>
        {state.problem && <ErrorMessage>{state.problem}</ErrorMessage>}
        <MutedText>
          The key is exchanged for a session cookie that scripts cannot read, and is not stored in this page. No key
          yet? Get one with <code>POST /api/onboard</code>; see <a href="/docs/operations/onboard">the API</a>.
        </MutedText>
      </Card>
    </>
  )
}

function SignedIn({ me, route }: SectionProps) {
  const signOutMutation = useMutation({ mutationFn: signOut })
  const { name: current, Section } = sections.find(({ name }) => name === route.segments[0]) ?? sections[0]!
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
        <Id value={me.tenant_id} />
      </p>
      {signOutMutation.error && <ErrorMessage>You are still signed in: {signOutMutation.error.message}</ErrorMessage>}
      <nav className="tabs" aria-label="Account">
        {sections.map(({ name, title }) => (
          <a key={name} href={routeHref(['account', name])} aria-current={name === current ? 'page' : undefined}>
            {title}
          </a>
        ))}
      </nav>
      <Section me={me} route={route} />
    </>
  )
}
