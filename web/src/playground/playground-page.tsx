import type { X402PaymentRequiredResponse } from '@countersign/sdk'
import {
  CountersignError,
  type ResumedCall,
  type RouteResponse,
  type RunRequest,
  type RunResult,
} from '@countersign/sdk'
import { useMutation, useQuery } from '@tanstack/react-query'
import { type FormEvent, useRef, useState } from 'react'
import { type Me, useSession } from '../account/sign-in.ts'
import { ACCOUNT_KEY, api, queryClient, useLanes } from '../api.ts'
import { Field } from '../components/form-fields.tsx'
import { QueryResult } from '../components/query-result.tsx'
import { Card, ErrorMessage, Id, MutedText, PageTitle, TextBlock } from '../components/ui.tsx'
import { formatUsdc } from '../format.ts'
import { routeHref } from '../route.ts'
import { describePaymentError, findCause } from '../wallet/describe-payment-error.ts'
import { WalletRefused } from '../wallet/injected-account.ts'
import { useInjectedWallets } from '../wallet/injected-wallets.ts'
import { GUEST, resumeCalls } from '../wallet/paying-client.ts'
import { TestMoneyButton } from '../wallet/test-money-button.tsx'
import { useOnboardingGuide, useWallets } from '../wallet/wallet-queries.ts'
import { CodeSamplesCard } from './code-samples-card.tsx'
import { executePaidRun, type PaymentMethod } from './paid-run.ts'
import { PaymentCard, paymentOptions } from './payment-card.tsx'
import { RouteCard } from './route-card.tsx'
import { addEvent, ResultCards, RunCard, type RunProgress } from './run-card.tsx'
import { readTerms, type Terms } from './terms.ts'

const EXAMPLE_TASK = 'Write a limerick about a clock that runs late.'

export function PlaygroundPage() {
  const session = useSession()
  return (
    <>
      <PageTitle>Playground</PageTitle>
      <MutedText>
        One task from question to receipt: which lane takes it and why, what it costs, the payment, the run as it
        happens, and the proof.
      </MutedText>
      <QueryResult query={session}>{(me) => <Playground key={me?.tenant_id ?? GUEST} me={me} />}</QueryResult>
    </>
  )
}

type Offer = { request: RunRequest; route: RouteResponse; terms: Terms }

/** What a task costs: the route with its reasons, and the 402 that the run itself answers as long as nobody pays. */
async function fetchOffer(request: { task: string; agent_id?: string }): Promise<Offer> {
  const [route, challenge] = await Promise.all([api.post('/api/route', { body: request }), fetchChallenge(request)])
  return { request, route, terms: readTerms(challenge) }
}

async function fetchChallenge(body: RunRequest): Promise<X402PaymentRequiredResponse> {
  try {
    await api.post('/api/run', { body })
  } catch (error) {
    if (error instanceof CountersignError && error.status === 402)
      return error.body as unknown as X402PaymentRequiredResponse
    throw error
  }
  throw new Error('The service did the run without asking for a payment.')
}

function Playground({ me }: { me: Me | null }) {
  const owner = me?.tenant_id ?? GUEST
  const wallets = useWallets(me !== null).data?.wallets ?? []
  const hasFaucet = typeof useOnboardingGuide().data?.faucet === 'string'
  const injected = useInjectedWallets()
  const [selected, setSelected] = useState<string>()
  const [progress, setProgress] = useState<RunProgress>()
  const [task, setTask] = useState(EXAMPLE_TASK)
  const [agentId, setAgentId] = useState('')
  /** One key for each way to pay the price that is shown: a repeated attempt is the same call. */
  const keys = useRef(new Map<string, string>())

  const ask = useMutation({
    mutationFn: fetchOffer,
    onMutate: () => {
      keys.current.clear()
      setProgress(undefined)
      pay.reset()
    },
  })
  const pay = useMutation<RunResult, Error, { offer: Offer; option: string; method: PaymentMethod }>({
    mutationFn: async ({ offer: { request, route, terms }, option, method }) => {
      const idempotencyKey = keys.current.get(option) ?? crypto.randomUUID()
      keys.current.set(option, idempotencyKey)
      setProgress({ startedAtMs: Date.now(), steps: [], isLive: true })
      const quote = route.quote ?? undefined
      const update = (change: (progress: RunProgress) => RunProgress) =>
        setProgress((current) => current && change(current))
      return executePaidRun(
        { owner, request, quote, terms, method, hasFaucet, idempotencyKey },
        {
          onStarted: (runId, cancel) => update((current) => ({ ...current, runId, cancel })),
          onEvent: (event) => update((current) => addEvent(current, event, Date.now())),
          onStreamLost: () => update((current) => ({ ...current, isLive: false })),
        },
      )
    },
    onSettled: (result) => {
      // The outcome is known, so another click is another call.
      if (result) keys.current.clear()
      void queryClient.invalidateQueries({ queryKey: [ACCOUNT_KEY] })
    },
    onError: (error) => {
      if (error.name === 'RunFailed') keys.current.clear()
    },
  })
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    ask.mutate({ task: task.trim(), ...(agentId && { agent_id: agentId }) })
  }

  const offer = ask.data
  const [option = paymentOptions(wallets, hasFaucet, injected)[0]] = [selected]
  const poorAddress = findCause(pay.error, WalletRefused)?.address
  return (
    <>
      <OpenCalls owner={owner} />
      <Card title="Task">
        <form onSubmit={submit} aria-label="Task">
          <Field label="What should be done">
            {(id) => (
              <textarea
                id={id}
                rows={4}
                maxLength={32_000}
                required
                value={task}
                onChange={(event) => setTask(event.target.value)}
              />
            )}
          </Field>
          <div className="filters">
            <LaneSelect value={agentId} onSelect={setAgentId} />
            <button type="submit" disabled={ask.isPending || pay.isPending || task.trim() === ''}>
              {ask.isPending ? 'Asking…' : 'See lane and price'}
            </button>
          </div>
        </form>
        {ask.error && <ErrorMessage>{describePaymentError(ask.error)}</ErrorMessage>}
      </Card>
      {offer && (
        <>
          <RouteCard route={offer.route} />
          <PaymentCard
            terms={offer.terms}
            wallets={wallets}
            isSignedIn={me !== null}
            hasFaucet={hasFaucet}
            isPaying={pay.isPending}
            isPaid={pay.isSuccess}
            selected={selected}
            onSelect={setSelected}
            onPay={(chosenOption, method) => pay.mutate({ offer, option: chosenOption, method })}
          />
        </>
      )}
      {pay.error && (
        <Card title="Not run">
          <ErrorMessage>{describePaymentError(pay.error)}</ErrorMessage>
          {hasFaucet && poorAddress && <TestMoneyButton key={poorAddress} address={poorAddress} />}
          {pay.error.name === 'PaymentRequired' && (
            <p>
              <a href={routeHref(['start'])}>Fill the wallet</a>
            </p>
          )}
        </Card>
      )}
      {progress && !pay.error && <RunCard progress={progress} result={pay.data} />}
      {pay.data && <ResultCards result={pay.data} />}
      <CodeSamplesCard
        call={{
          baseUrl: location.origin,
          task: offer?.request.task ?? task,
          agentId: (offer ? offer.request.agent_id : agentId) || undefined,
          walletId: wallets.find(({ wallet_id }) => wallet_id === option)?.wallet_id,
          hasDevelopmentChain: hasFaucet,
        }}
      />
    </>
  )
}

function LaneSelect({ value, onSelect }: { value: string; onSelect: (agentId: string) => void }) {
  const lanes = useLanes()
  return (
    <Field label="Lane">
      {(id) => (
        <select id={id} value={value} onChange={(event) => onSelect(event.target.value)}>
          <option value="">Let the router choose</option>
          {lanes.data?.agents.map(({ agent_id, price_usdc }) => (
            <option key={agent_id} value={agent_id}>
              {agent_id}, {formatUsdc(price_usdc)}
            </option>
          ))}
        </select>
      )}
    </Field>
  )
}

/** Calls that were sent when the page was closed. They are finished with the payment that was signed for them, if any. */
function OpenCalls({ owner }: { owner: string }) {
  const calls = useQuery({
    queryKey: ['open-calls', owner],
    queryFn: () => resumeCalls(owner),
    refetchInterval: false,
    refetchOnMount: 'always',
    refetchOnWindowFocus: false,
    retry: false,
    gcTime: 0,
  })
  if (!calls.data || calls.data.length === 0) return null
  return (
    <Card
      title="Finished since you were here"
      note="These calls were open when the page was closed; each was paid once"
    >
      <ul className="cards">
        {calls.data.map((call) => (
          <li key={call.idempotencyKey}>
            <OpenCall call={call} />
          </li>
        ))}
      </ul>
    </Card>
  )
}

function OpenCall({ call }: { call: ResumedCall }) {
  if ('error' in call) return <ErrorMessage>{describePaymentError(call.error)}</ErrorMessage>
  if (call.kind === 'preauth') return <MutedText>A pre-authorisation was closed.</MutedText>
  const { receipt } = call.result
  return (
    <>
      {'output' in call.result && <TextBlock label={`Output of ${receipt.run_id}`}>{call.result.output}</TextBlock>}
      <p>
        <a href={routeHref(['receipts', receipt.receipt_id])}>Open the receipt</a> <Id value={receipt.receipt_id} />
      </p>
    </>
  )
}
