import { hashReceipt, type Jwks } from '@countersign/proof'
import { useQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import { api, hasStatus, useJwks } from '../api.ts'
import { QueryResult } from '../components/query-result.tsx'
import { SaveButton } from '../components/save-button.tsx'
import { Card, DescriptionList, Id, PageTitle } from '../components/ui.tsx'
import { routeHref } from '../route.ts'
import { describeReceipt, type Receipt } from './describe-receipt.tsx'
import { VerificationResultView } from './verification-result.tsx'
import { verifyEvidence } from './verify-evidence.ts'

export function ReceiptPage({ id }: { id: string }) {
  const receipt = useQuery({
    queryKey: ['receipt', id],
    queryFn: () => api.get('/api/receipts/{id}', { path: { id } }),
    // A receipt changes once, when it is added to the log.
    refetchInterval: ({ state }) => (state.data?.log ? false : 2_000),
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
            There is no receipt <Id value={id} full />.
          </p>
        </Card>
      ) : (
        <QueryResult query={receipt}>
          {(data) => (
            <QueryResult query={jwksQuery}>{(jwks) => <ReceiptDetails receipt={data} jwks={jwks} />}</QueryResult>
          )}
        </QueryResult>
      )}
    </>
  )
}

function ReceiptDetails({ receipt, jwks }: { receipt: Receipt; jwks: Jwks }) {
  const { receipt_id, run_id } = receipt
  const runReceipts = useQuery({
    queryKey: ['receipts-of-run', run_id],
    queryFn: () => api.get('/api/receipts', { query: { run_id, limit: 50 } }),
  })
  const otherReceipts = (runReceipts.data?.receipts ?? []).filter((other) => other.receipt_id !== receipt_id)
  const previousReceipt = otherReceipts.find(
    (other) => receipt.prev_hash !== null && tryHashReceipt(other) === receipt.prev_hash,
  )
  const result = useMemo(
    () => verifyEvidence(receipt, jwks, new Date(), previousReceipt),
    [receipt, jwks, previousReceipt],
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
        <p className="muted">
          With both files anyone can verify it offline:{' '}
          <code>countersign verify {receipt_id}.json --jwks jwks.json</code>
        </p>
      </Card>
      <Card title="JSON">
        <pre className="json">{JSON.stringify(receipt, null, 2)}</pre>
      </Card>
    </>
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
