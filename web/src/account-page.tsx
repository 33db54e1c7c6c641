import { CountersignError } from '@countersign/sdk'
import { useQuery } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { Card, Loaded, Mark, Table, time, usdc } from './parts.tsx'
import { service, signIn, signOut } from './service.ts'

export function AccountPage() {
  const me = useQuery({
    queryKey: ['me'],
    retry: false,
    queryFn: async () => {
      try {
        return await service.get('/api/me')
      } catch (error) {
        if (error instanceof CountersignError && error.status === 401) return null
        throw error
      }
    },
  })
  return <Loaded query={me}>{(who) => (who ? <Signed who={who} /> : <SignIn />)}</Loaded>
}

function SignIn() {
  const [problem, setProblem] = useState('')
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const apiKey = String(new FormData(event.currentTarget).get('api_key'))
    await signIn(apiKey).catch((error: Error) => setProblem(error.message))
  }
  return (
    <Card title="Sign in with an API key">
      <form onSubmit={(event) => void submit(event)}>
        <input name="api_key" type="password" autoComplete="off" aria-label="API key" placeholder="csk_…" required />
        <button type="submit">Sign in</button>
      </form>
      {problem && <p className="bad">{problem}</p>}
      <p className="soft">The key is exchanged for a session cookie and kept nowhere in this page.</p>
    </Card>
  )
}

function Signed({ who }: { who: { orgId: string; email: string; plan: string } }) {
  const runs = useQuery({ queryKey: ['runs'], queryFn: () => service.get('/api/runs', { query: { limit: 50 } }) })
  return (
    <>
      <Card title={who.orgId}>
        <p>
          {who.email}, plan <Mark good="neutral">{who.plan}</Mark>{' '}
          <button type="button" onClick={() => void signOut()}>
            Sign out
          </button>
        </p>
      </Card>
      <Card title="Runs">
        <Loaded query={runs}>
          {({ runs: list }) => (
            <Table
              head={['Run', 'Outcome', 'Lane', 'Price', 'When']}
              empty="No runs yet."
              rows={list.map((run) => ({
                key: run.run_id,
                cells: [
                  <code key="id">{run.run_id}</code>,
                  <Mark
                    key="outcome"
                    good={
                      run.outcome === 'completed'
                        ? true
                        : ['failed', 'blocked', 'escalated'].includes(run.outcome)
                          ? false
                          : 'neutral'
                    }
                  >
                    {run.outcome}
                  </Mark>,
                  run.agent_id,
                  usdc(run.price_usdc),
                  time(run.created_at),
                ],
              }))}
            />
          )}
        </Loaded>
      </Card>
    </>
  )
}
