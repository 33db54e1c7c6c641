import { useMutation } from '@tanstack/react-query'
import { type FormEvent, lazy, Suspense, useRef, useState } from 'react'
import { type Me, signIn, useSession } from '../account/sign-in.ts'
import { SignInForm } from '../account/sign-in-form.tsx'
import { api } from '../api.ts'
import { CopyButton } from '../components/copy-button.tsx'
import { Field } from '../components/form-fields.tsx'
import { Badge, Card, ErrorMessage, MutedText, PageTitle } from '../components/ui.tsx'
import { formatUsdc } from '../format.ts'
import { routeHref } from '../route.ts'
import { useOnboardingGuide, useWallets } from '../wallet/wallet-queries.ts'

// Payments are loaded with the step that needs them.
const WalletFunding = lazy(async () => ({ default: (await import('../wallet/wallet-funding.tsx')).WalletFunding }))

export function StartPage() {
  const session = useSession()
  const [newKey, setNewKey] = useState<string>()
  const key = newKey !== undefined && <NewKey apiKey={newKey} onStored={() => setNewKey(undefined)} />
  if (session.data)
    return (
      <>
        {key}
        <FirstSteps me={session.data} />
      </>
    )
  return (
    <>
      <section className="hero">
        <h1>Let agents spend, and prove what they paid for.</h1>
        <p>
          Countersign takes a task from an agent, checks it against your budgets and policies, is paid in USDC, and does
          and verifies the work. Every run ends with a signed receipt in a public log that anybody can verify, in this
          browser, without trusting us.
        </p>
      </section>
      {key || <EntryCards onCreated={setNewKey} />}
      <PublicPages />
    </>
  )
}

const EntryCards = ({ onCreated }: { onCreated: (apiKey: string) => void }) => (
  <div className="entry-cards">
    <Card title="Create an organisation">
      <OrganisationForm onCreated={onCreated} />
    </Card>
    <Card title="Sign in">
      <SignInForm />
      <MutedText>The key is exchanged for a session cookie that scripts cannot read.</MutedText>
    </Card>
    <Card title="Try it without an account">
      <p>See what a task would cost and why, pay for one run, and verify its receipt.</p>
      <a className="button secondary" href={routeHref(['playground'])}>
        Open the playground
      </a>
    </Card>
  </div>
)

function OrganisationForm({ onCreated }: { onCreated: (apiKey: string) => void }) {
  const guide = useOnboardingGuide()
  const takesInvitation = guide.data?.required.includes('invitation') === true
  const attempt = useRef<{ request: string; idempotencyKey: string }>(undefined)
  const create = useMutation({
    mutationFn: async (body: { org_name: string; email: string; invitation?: string }) => {
      // A repeated attempt is the same request: an organisation whose answer was lost is not made twice.
      const request = JSON.stringify(body)
      if (attempt.current?.request !== request) attempt.current = { request, idempotencyKey: crypto.randomUUID() }
      const { api_key } = await api.post('/api/onboard', {
        body,
        headers: { 'idempotency-key': attempt.current.idempotencyKey },
      })
      onCreated(api_key)
      await signIn(api_key)
    },
  })
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const data = new FormData(event.currentTarget)
    const read = (name: string) => String(data.get(name) ?? '').trim()
    create.mutate({
      org_name: read('org_name'),
      email: read('email'),
      ...(takesInvitation && { invitation: read('invitation') }),
    })
  }
  return (
    <form onSubmit={submit} className="stack" aria-label="Create an organisation">
      <Field label="Name of the organisation">
        {(id) => (
          <input id={id} name="org_name" autoComplete="organization" maxLength={120} pattern=".*\S.*" required />
        )}
      </Field>
      <Field label="E-mail">
        {(id) => <input id={id} name="email" type="email" autoComplete="email" maxLength={254} required />}
      </Field>
      {takesInvitation && (
        <Field label="Invitation from the operator">
          {(id) => <input id={id} name="invitation" autoComplete="off" maxLength={200} required />}
        </Field>
      )}
      <button type="submit" disabled={create.isPending}>
        Create
      </button>
      {create.error && <ErrorMessage>{create.error.message}</ErrorMessage>}
    </form>
  )
}

const NewKey = ({ apiKey, onStored }: { apiKey: string; onStored: () => void }) => (
  <Card title="Your API key" note="Shown once">
    <p>
      Store it now, for example in a password manager: only its hash is kept here. Agents send it as{' '}
      <code>X-API-Key</code>, and you sign in with it. This page is signed in already.
    </p>
    <div className="copy-line">
      <code className="secret" data-testid="api-key">
        {apiKey}
      </code>
      <CopyButton text={apiKey} label="the API key" className="copy" />
    </div>
    <button type="button" className="secondary" onClick={onStored}>
      I have stored it
    </button>
  </Card>
)

/** What a new organisation does first; a step that is done says so. */
function FirstSteps({ me }: { me: Me }) {
  const wallets = useWallets(true)
  const availableUsdc = wallets.data?.wallets.reduce((sum, { balance_usdc }) => sum + balance_usdc.available, 0) ?? 0
  return (
    <>
      <PageTitle
        aside={
          <a className="muted" href={routeHref(['account'])}>
            Control tower
          </a>
        }
      >
        {me.org_name}
      </PageTitle>
      <Card title="1. Organisation" note={<Badge tone="success">done</Badge>}>
        <MutedText>
          You are signed in as {me.email}, plan {me.plan}.
        </MutedText>
      </Card>
      <Card
        title="2. Wallet"
        note={availableUsdc > 0 && <Badge tone="success">{formatUsdc(availableUsdc)} available</Badge>}
      >
        <Suspense fallback={<MutedText>Loading…</MutedText>}>
          <WalletFunding tenantId={me.tenant_id} />
        </Suspense>
      </Card>
      <Card title="3. First task">
        <p>Let the router choose a lane, see the price and its terms, pay, and watch the run until its receipt.</p>
        <a className={availableUsdc > 0 ? 'button' : 'button secondary'} href={routeHref(['playground'])}>
          Open the playground
        </a>
      </Card>
      <PublicPages />
    </>
  )
}

const publicPages: [href: string, title: string, text: string][] = [
  [routeHref(['receipts']), 'Public receipts', 'What was paid for, by hash, and verified in this browser.'],
  [routeHref(['verify']), 'Verify evidence', 'A receipt or an attestation that somebody gave you.'],
  [routeHref(['overview']), 'Log and health', 'The transparency log, followed by this browser, and the lanes.'],
  [routeHref(['basis']), 'Basis board', 'What tokenised equities cost against their underlying.'],
  ['/docs', 'Documentation', 'Guides, and every call with an example.'],
]

const PublicPages = () => (
  <Card title="Open to everybody">
    <ul className="link-cards">
      {publicPages.map(([href, title, text]) => (
        <li key={href}>
          <a className="link-title" href={href}>
            {title}
          </a>
          <span className="muted">{text}</span>
        </li>
      ))}
    </ul>
  </Card>
)
