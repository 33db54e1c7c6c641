import { useQuery } from '@tanstack/react-query'
import type { Me } from '../account/sign-in.ts'
import { ACCOUNT_KEY, api, hasStatus } from '../api.ts'
import { CopyButton } from '../components/copy-button.tsx'
import { QueryResult } from '../components/query-result.tsx'
import { Badge, Card, DescriptionList, Id, MutedText, TextBlock, Timestamp } from '../components/ui.tsx'
import { formatUsdc } from '../format.ts'
import { RefusalCard } from '../policies/refusal-changes.tsx'
import { routeHref } from '../route.ts'
import { outcomeTones } from './run-outcomes.ts'
import { type Run, type TimelineStep, toTimeline } from './run-timeline.ts'

const OPEN_OUTCOMES = ['pending', 'approved']
const REFUSED_OUTCOMES = ['blocked', 'escalated', 'failed']

/** One run: what was decided at each step, when, and what came out. */
export function RunPage({ me, id }: { me: Me; id: string }) {
  const run = useQuery({
    queryKey: [ACCOUNT_KEY, 'run', id],
    queryFn: () => api.get('/api/runs/{id}', { path: { id } }),
    refetchInterval: ({ state }) => (!state.data || OPEN_OUTCOMES.includes(state.data.outcome) ? 1_000 : 15_000),
  })
  if (hasStatus(run.error, 404) && !run.data)
    return (
      <Card title="Not found">
        <MutedText>
          There is no run {id} in this organisation. <a href={routeHref(['account', 'runs'])}>All runs</a>
        </MutedText>
      </Card>
    )
  return <QueryResult query={run}>{(data) => <RunDetails me={me} run={data} />}</QueryResult>
}

function RunDetails({ me, run }: { me: Me; run: Run }) {
  const receiptId = run.receipt_url?.split('/').at(-1)
  const settlements = useQuery({
    queryKey: [ACCOUNT_KEY, 'settlements-of-run', run.run_id],
    queryFn: () => api.get('/api/settlements', { query: { run_id: run.run_id } }),
  })
  const receipt = useQuery({
    queryKey: ['receipt-of-run', receiptId],
    queryFn: () => api.get('/api/receipts/{id}', { path: { id: receiptId! } }),
    enabled: receiptId !== undefined,
    refetchInterval: ({ state }) => (state.data?.log ? false : 2_000),
  })
  const answer = run.answer?.body as { output?: string; evidence?: { salt?: string } } | undefined
  const json = JSON.stringify(run.answer?.body ?? null, null, 2)
  return (
    <>
      <Card
        title="Run"
        note={
          <a href={routeHref(['account', 'runs'])} className="muted">
            All runs
          </a>
        }
      >
        <p>
          <Badge tone={outcomeTones[run.outcome] ?? 'neutral'}>{run.outcome}</Badge>{' '}
          <strong>
            {run.action} on {run.agent_id}, {formatUsdc(run.price_usdc)}
          </strong>
        </p>
        <DescriptionList
          items={[
            [
              'Run',
              <span key="run">
                <Id value={run.run_id} full /> <CopyButton text={run.run_id} label="the run id" />
              </span>,
            ],
            ['Spender', run.spender],
            ['Team', run.team],
            ['Tags', describeTags(run.tags)],
            ['Asked', <Timestamp key="at" at={run.created_at} />],
            ['Ended', run.finished_at && <Timestamp key="end" at={run.finished_at} />],
          ]}
        />
      </Card>
      <Card title="Timeline">
        <Timeline
          steps={toTimeline(run, settlements.data?.settlements[0], receipt.data)}
          startedAt={Date.parse(run.created_at)}
        />
      </Card>
      {REFUSED_OUTCOMES.includes(run.outcome) && <RefusalCard me={me} runId={run.run_id} />}
      {answer?.output !== undefined && (
        <Card title="Output" note={<CopyButton text={answer.output} label="the output" />}>
          <TextBlock label="Text of the output">{answer.output}</TextBlock>
          <MutedText>The task is not kept: the receipt has its hash, which whoever has the task can check.</MutedText>
        </Card>
      )}
      {run.answer && (
        <Card title="Answer" note={<CopyButton text={json} label="the answer" />}>
          <MutedText>What the caller got, with status {run.answer.status}.</MutedText>
          <TextBlock label="The answer as JSON">{json}</TextBlock>
        </Card>
      )}
    </>
  )
}

const describeTags = (tags: Run['tags']) =>
  tags &&
  Object.entries(tags)
    .map(([name, value]) => `${name}: ${value}`)
    .join(', ')

export const Timeline = ({ steps, startedAt }: { steps: TimelineStep[]; startedAt: number }) => (
  <ol className="timeline" aria-label="Timeline">
    {steps.map(({ name, tone, text, at, facts, link }) => (
      <li key={name}>
        <div className="timeline-head">
          <strong>{name}</strong> <Badge tone={tone}>{text}</Badge>{' '}
          {at && (
            <time className="muted" dateTime={at} title={at}>
              {describeOffset(Date.parse(at) - startedAt)}
            </time>
          )}{' '}
          {link && <a href={link.href}>{link.text}</a>}
        </div>
        {facts.length > 0 && (
          <ul>
            {facts.map((fact) => (
              <li key={fact}>{fact}</li>
            ))}
          </ul>
        )}
      </li>
    ))}
  </ol>
)

const describeOffset = (ms: number) => (ms < 1_000 ? `+${Math.max(0, ms)} ms` : `+${(ms / 1_000).toFixed(1)} s`)
