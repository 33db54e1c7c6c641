import type { RunEvent, RunResult } from '@countersign/sdk'
import { ActionButton } from '../components/action-button.tsx'
import { CopyButton } from '../components/copy-button.tsx'
import { Badge, Card, DescriptionList, Id, MutedText, TextBlock, type Tone } from '../components/ui.tsx'
import { formatMilliseconds, formatUsdc } from '../format.ts'
import { CheckList } from '../receipts/verification-result.tsx'
import { routeHref } from '../route.ts'

export type RunProgress = {
  startedAtMs: number
  runId?: string
  steps: { text: string; tone: Tone; afterMs: number }[]
  cancel?: () => Promise<unknown>
  isLive: boolean
}

const eventTexts: Record<RunEvent['status'], { text: string; tone: Tone }> = {
  pending: { text: 'Accepted; the lane works and its output is checked', tone: 'neutral' },
  settling: { text: 'Output accepted; the payment is settled', tone: 'neutral' },
  completed: { text: 'Completed', tone: 'success' },
  failed: { text: 'Failed; nothing was charged', tone: 'error' },
  blocked: { text: 'Refused; nothing was charged', tone: 'error' },
}

export const addEvent = (progress: RunProgress, { status }: RunEvent, nowMs: number): RunProgress => ({
  ...progress,
  steps: [...progress.steps, { ...eventTexts[status], afterMs: nowMs - progress.startedAtMs }],
})

/** A run while it goes on and after. */
export const RunCard = ({ progress, result }: { progress: RunProgress; result: RunResult | undefined }) => (
  <Card
    title="Run"
    note={
      <span role="status">
        {result
          ? 'ended'
          : progress.runId === undefined
            ? 'paying…'
            : progress.isLive
              ? 'live'
              : 'waiting for the answer'}
      </span>
    }
  >
    {progress.runId && <DescriptionList items={[['Run', <Id key="run" value={progress.runId} full />]]} />}
    <ol className="steps" aria-label="Progress">
      {progress.steps.map(({ text, tone, afterMs }) => (
        <li key={text}>
          <Badge tone={tone}>{text}</Badge> <span className="muted">after {formatMilliseconds(afterMs)}</span>
        </li>
      ))}
    </ol>
    {!result && progress.cancel && (
      <ActionButton className="danger" action={progress.cancel}>
        Cancel, without charge
      </ActionButton>
    )}
  </Card>
)

export function ResultCards({ result }: { result: RunResult }) {
  const { output, run, receipt } = result
  return (
    <>
      <Card title="Output" note={<CopyButton text={output} label="the output" />}>
        <TextBlock label="Text of the output">{output}</TextBlock>
        <DescriptionList
          items={[
            ['Lane', run.agent_id],
            ['Charged', formatUsdc(run.price_usdc)],
            ['Paid by', <Id key="payer" value={run.settlement.payer} full />],
            [
              'Transaction',
              run.settlement.transaction && <Id key="transaction" value={run.settlement.transaction} full />,
            ],
          ]}
        />
      </Card>
      <Card title="Receipt" note="Verified in this browser">
        <p>
          {receipt.verified ? (
            <Badge tone="success">The receipt is valid, and is about this task, output and payment.</Badge>
          ) : (
            <Badge tone="error">The receipt does not hold.</Badge>
          )}
        </p>
        <CheckList checks={receipt.checks} />
        <p>
          <a href={routeHref(['receipts', receipt.receipt_id])}>Open the receipt</a>{' '}
          <Id value={receipt.receipt_id} full /> <CopyButton text={receipt.receipt_id} label="the receipt id" />
        </p>
        <MutedText>
          The receipt is public and has hashes only. To prove what it is about, keep the salt of this answer:{' '}
          <Id value={run.evidence.salt ?? ''} full /> <CopyButton text={run.evidence.salt ?? ''} label="the salt" />
        </MutedText>
      </Card>
    </>
  )
}
