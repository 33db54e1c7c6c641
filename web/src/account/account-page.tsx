import { useMutation } from '@tanstack/react-query'
import { type ComponentType, type FormEvent, useState } from 'react'
import { Field } from '../parts/fields.tsx'
import { Loaded } from '../parts/loaded.tsx'
import { Bad, Card, Id, Mark, Soft, Title } from '../parts/parts.tsx'
import { link, type Route } from '../route.ts'
import { AlertsPart } from './alerts-part.tsx'
import { AnalyticsPart } from './analytics-part.tsx'
import { ApprovalsPart } from './approvals-part.tsx'
import { LimitsPart } from './limits-part.tsx'
import { RunsPart } from './runs-part.tsx'
import { type Me, signIn, signOut, useSession } from './sign-in.ts'
import { TowerPart } from './tower-part.tsx'
import { WebhooksPart } from './webhooks-part.tsx'

export type PartProps = { me: Me; route: Route }

const parts: { name: string; title: string; Part: ComponentType<PartProps> }[] = [
  { name: 'tower', title: 'Control tower', Part: TowerPart },
  { name: 'runs', title: 'Runs', Part: RunsPart },
  { name: 'approvals', title: 'Approvals', Part: ApprovalsPart },
  { name: 'limits', title: 'Budgets and policies', Part: LimitsPart },
  { name: 'analytics', title: 'Analytics', Part: AnalyticsPart },
  { name: 'webhooks', title: 'Webhooks', Part: WebhooksPart },
  { name: 'alerts', title: 'Alerts', Part: AlertsPart },
]

export function AccountPage({ route }: { route: Route }) {
  const session = useSession()
  return <Loaded query={session}>{(me) => (me ? <SignedIn me={me} route={route} /> : <SignIn />)}</Loaded>
}

function SignIn() {
  const [state, setState] = useState<{ pending: boolean; problem?: string }>({ pending: false })
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const form = event.currentTarget
    const apiKey = String(new FormData(form).get('api_key')).trim()
    // The field is emptied at once and nothing else holds the key: it stays nowhere in the page.
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
      <Title>Account</Title>
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
        {state.problem && <Bad>{state.problem}</Bad>}
        <Soft>
          The key is exchanged for a session cookie that no script can read, and kept nowhere in this page. No key yet?{' '}
          <code>POST /api/onboard</code> gives one; see <a href="/docs#onboard">the API</a>.
        </Soft>
      </Card>
    </>
  )
}

function SignedIn({ me, route }: PartProps) {
  const leave = useMutation({ mutationFn: signOut })
  const { name: current, Part } = parts.find(({ name }) => name === route.rest[0]) ?? parts[0]!
  return (
    <>
      <Title
        aside={
          <button type="button" className="quiet" disabled={leave.isPending} onClick={() => leave.mutate()}>
            Sign out
          </button>
        }
      >
        {me.org_name}
      </Title>
      <p className="who soft">
        <span>{me.email}</span>
        <Mark tone="plain">plan {me.plan}</Mark>
        <Id value={me.tenant_id} />
      </p>
      {leave.error && <Bad>You are still signed in: {leave.error.message}</Bad>}
      <nav className="tabs" aria-label="Account">
        {parts.map(({ name, title }) => (
          <a key={name} href={link(['account', name])} aria-current={name === current ? 'page' : undefined}>
            {title}
          </a>
        ))}
      </nav>
      <Part me={me} route={route} />
    </>
  )
}

/** Whether the key behind the session may change anything. */
export const mayControl = (me: Me): boolean => me.scopes.includes('control') || me.scopes.includes('admin')
