import { hashReceipt, type Jwks } from '@countersign/proof'
import type { Answer } from '@countersign/sdk'
import { useQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import { usdc } from '../parts/format.ts'
import { Loaded } from '../parts/loaded.tsx'
import { Card, Facts, Id, Title, When } from '../parts/parts.tsx'
import { SaveButton } from '../parts/save.tsx'
import { link } from '../route.ts'
import { isStatus, service, useKeySet } from '../service.ts'
import { examineValue } from './examine.ts'
import { FindingView } from './finding.tsx'

type Receipt = Answer<'/api/receipts/{id}', 'get'>

export function ReceiptPage({ id }: { id: string }) {
  const receipt = useQuery({
    queryKey: ['receipt', id],
    queryFn: () => service.get('/api/receipts/{id}', { path: { id } }),
    // It changes once, when it gets its place in the log.
    refetchInterval: ({ state }) => (state.data?.log ? false : 2_000),
  })
  const keys = useKeySet()
  return (
    <>
      <Title
        aside={
          <a href={link(['receipts'])} className="soft">
            All receipts
          </a>
        }
      >
        Receipt
      </Title>
      {isStatus(receipt.error, 404) && !receipt.data ? (
        <Card title="Not found">
          <p className="soft">
            There is no receipt <Id value={id} full />.
          </p>
        </Card>
      ) : (
        <Loaded query={receipt}>
          {(found) => <Loaded query={keys}>{(jwks) => <Detail receipt={found} jwks={jwks} />}</Loaded>}
        </Loaded>
      )}
    </>
  )
}

function Detail({ receipt, jwks }: { receipt: Receipt; jwks: Jwks }) {
  const { receipt_id, run_id } = receipt
  const ofRun = useQuery({
    queryKey: ['receipts-of-run', run_id],
    queryFn: () => service.get('/api/receipts', { query: { run_id, limit: 50 } }),
  })
  const others = (ofRun.data?.receipts ?? []).filter((other) => other.receipt_id !== receipt_id)
  const before = others.find((other) => receipt.prev_hash !== null && hashOf(other) === receipt.prev_hash)
  const finding = useMemo(() => examineValue(receipt, jwks, new Date(), before), [receipt, jwks, before])
  return (
    <>
      <Card title="What it states">
        <Facts facts={factsOf(receipt)} />
        {others.length > 0 && (
          <p>
            Other receipts of this run:{' '}
            {others.map((other) => (
              <span key={other.receipt_id} className="other">
                {other.kind} <a href={link(['receipts', other.receipt_id])}>{<Id value={other.receipt_id} />}</a>
              </span>
            ))}
          </p>
        )}
      </Card>
      <Card title="Checked in this browser" note="With the public keys alone">
        <FindingView finding={finding} />
        <div className="row">
          <SaveButton name={`${receipt_id}.json`} value={receipt}>
            Save the receipt
          </SaveButton>
          <SaveButton name="jwks.json" value={jwks}>
            Save the keys
          </SaveButton>
          <a href={link(['verify'], { receipt: receipt_id })}>Open it under Verify</a>
        </div>
        <p className="soft">
          With both files anyone can check it again, without us:{' '}
          <code>countersign verify {receipt_id}.json --jwks jwks.json</code>
        </p>
      </Card>
      <Card title="The receipt itself">
        <pre className="json">{JSON.stringify(receipt, null, 2)}</pre>
      </Card>
    </>
  )
}

/** What the signature does not hold together cannot be hashed as a receipt either. */
function hashOf(receipt: Receipt): string | undefined {
  try {
    return hashReceipt(receipt)
  } catch {
    return undefined
  }
}

const text = (object: unknown, name: string): string | undefined => {
  const value = (object as Record<string, unknown> | null | undefined)?.[name]
  return typeof value === 'string' || typeof value === 'number' ? String(value) : undefined
}
const id = (value: string | null | undefined) => (value ? <Id key={value} value={value} full /> : undefined)

function factsOf(receipt: Receipt): [string, React.ReactNode][] {
  const { pricing, settlement, governance, verification, log } = receipt
  const price = text(pricing, 'price_usdc')
  return [
    ['Receipt', id(receipt.receipt_id)],
    ['Run', id(receipt.run_id)],
    ['Kind', receipt.kind],
    ['Issued', <When key="issued" at={receipt.issued_at} />],
    ['Lane', receipt.agent_id],
    ['Price', price && usdc(Number(price))],
    ['Charged', receipt.charged === undefined ? undefined : receipt.charged ? 'yes' : 'no, nothing was charged'],
    ['Paid by', id(text(settlement, 'payer'))],
    ['Settlement', [text(settlement, 'method'), text(settlement, 'status')].filter(Boolean).join(', ')],
    ['Transaction', id(text(settlement, 'transaction'))],
    ['Decision', text(governance, 'decision')],
    ['Mandate', id(text(governance, 'mandate_id'))],
    ['Pre-authorisation', id(text(governance, 'preauth_id'))],
    ['Approval', id(text(governance, 'approval_id'))],
    ['Override', id(text(governance, 'override_id'))],
    ['Output grade', text(verification, 'grade')],
    ['Done by', [text(verification, 'provider'), text(verification, 'model')].filter(Boolean).join(', ')],
    ['Request hash', id(receipt.request_hash)],
    ['Input hash', id(receipt.input_hash)],
    ['Output hash', id(receipt.output_hash)],
    ['Receipt before', id(receipt.prev_hash)],
    ['Signed with', id(receipt.signature.key_id)],
    ['Log entry', log ? `#${log.index} of ${log.origin}` : 'waiting for its place'],
  ]
}
