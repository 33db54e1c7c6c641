import { hashReceipt, type Jwks } from '@countersign/proof'
import { useQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import { api, hasStatus, useJwks } from '../api.ts'
import { CopyButton } from '../components/copy-button.tsx'
import { QueryResult } from '../components/query-result.tsx'
import { SaveButton } from '../components/save-button.tsx'
import { Card, DescriptionList, Id, PageTitle, TextBlock } from '../components/ui.tsx'
import { routeHref } from '../route.ts'
import { describeReceipt, type Receipt } from './describe-receipt.tsx'
import { type Checkpoints, checkLogMemory, forgetCheckpoint, type LogMemory, readCheckpoints } from './log-memory.ts'
import { VerificationResultView } from './verification-result.tsx'
import { verifyEvidence, withCheck } from './verify-evidence.ts'

export function ReceiptPage({ id }: { id: string }) {
  const receipt = useQuery({
    queryKey: ['receipt', id],
    queryFn: async () => {
      const before = readCheckpoints()
      return { receipt: await api.get('/api/receipts/{id}', { path: { id } }), before }
    },
    // A receipt changes once, when it is added to the log.
    refetchInterval: ({ state }) => (state.data?.receipt.log ? false : 2_000),
  })
  const jwksQuery = useJwks()
  return (
    <>
      <PageTitle
        aside={
          <a href={routeHref(['receipts'])} className="muted">
            All receipts
          </a>
        }
      >
        Receipt
      </PageTitle>
      {hasStatus(receipt.error, 404) && !receipt.data ? (
        <Card title="Not found">
          <p className="muted">
            There is no receipt <Id value={id} full />. Look for it in{' '}
            <a href={routeHref(['receipts'])}>all receipts</a>, or{' '}
            <a href={routeHref(['verify'])}>verify one that you have as a file</a>.
          </p>
        </Card>
      ) : (
        <QueryResult query={receipt}>
          {(data) => (
            <QueryResult query={jwksQuery}>
              {(jwks) => <ReceiptDetails receipt={data.receipt} before={data.before} jwks={jwks} />}
            </QueryResult>
          )}
        </QueryResult>
      )}
    </>
  )
}

function ReceiptDetails({ receipt, before, jwks }: { receipt: Receipt; before: Checkpoints; jwks: Jwks }) {
  const { receipt_id, run_id } = receipt
  const verifyCommand = `countersign verify ${receipt_id}.json --jwks jwks.json`
  const json = JSON.stringify(receipt, null, 2)
  const runReceipts = useQuery({
    queryKey: ['receipts-of-run', run_id],
    queryFn: () => api.get('/api/receipts', { query: { run_id, limit: 50 } }),
  })
  const otherReceipts = (runReceipts.data?.receipts ?? []).filter((other) => other.receipt_id !== receipt_id)
  const previousReceipt = otherReceipts.find(
    (other) => receipt.prev_hash !== null && tryHashReceipt(other) === receipt.prev_hash,
  )
  const memory = useQuery({
    queryKey: ['log-memory', receipt_id, receipt.log],
    queryFn: () => checkLogMemory(receipt, before, jwks, new Date()),
    enabled: receipt.log !== null,
    staleTime: Number.POSITIVE_INFINITY,
    refetchInterval: false,
  })
  const result = useMemo(
    () => withCheck(verifyEvidence(receipt, jwks, new Date(), previousReceipt), memory.data?.check),
    [receipt, jwks, previousReceipt, memory.data],
  )
  return (
    <>
      <Card title="Contents">
        <DescriptionList items={describeReceipt(receipt)} />
        {otherReceipts.length > 0 && (
          <p>
            Other receipts of this run:{' '}
            {otherReceipts.map((other) => (
              <span key={other.receipt_id} className="related-receipt">
                {other.kind} <a href={routeHref(['receipts', other.receipt_id])}>{<Id value={other.receipt_id} />}</a>
              </span>
            ))}
          </p>
        )}
      </Card>
      <Card title="Verification" note="In this browser, with public keys only">
        <VerificationResultView result={result} />
        <div className="row">
          <SaveButton name={`${receipt_id}.json`} value={receipt}>
            Save receipt
          </SaveButton>
          <SaveButton name="jwks.json" value={jwks}>
            Save keys
          </SaveButton>
          <a href={routeHref(['verify'], { receipt: receipt_id })}>Open in Verify</a>
        </div>
        {memory.data?.check.ok === false && <LogObjection memory={memory.data} />}
        <p className="muted">
          With both files anyone can verify it offline: <code>{verifyCommand}</code>{' '}
          <CopyButton text={verifyCommand} label="the command" />
        </p>
      </Card>
      <Card title="JSON" note={<CopyButton text={json} label="the receipt" />}>
        <TextBlock label="The receipt as JSON">{json}</TextBlock>
      </Card>
    </>
  )
}

/** The log contradicts what this browser has seen of it. The evidence proves it to others. */
function LogObjection({ memory: { evidence, origin } }: { memory: LogMemory }) {
  return (
    <div className="row">
      {evidence && (
        <SaveButton name="log-evidence.json" value={evidence}>
          Save evidence
        </SaveButton>
      )}
      <button type="button" className="secondary" onClick={() => forgetCheckpoint(origin)}>
        Forget what was seen of this log
      </button>
    </div>
  )
}

/** Undefined when the value has no canonical form to hash. */
function tryHashReceipt(receipt: Receipt): string | undefined {
  try {
    return hashReceipt(receipt)
  } catch {
    return undefined
  }
}
