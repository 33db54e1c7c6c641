import { parseJson, verifyReceipt } from '@countersign/proof'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Card, Loaded, Mark, Table, time } from './parts.tsx'
import { service } from './service.ts'

type Verdict = ReturnType<typeof verifyReceipt>

/** Verification runs in this browser, with public keys alone: the server is asked for nothing but the keys. */
export function ReceiptsPage() {
  const [text, setText] = useState('')
  const [verdict, setVerdict] = useState<Verdict | { refused: string }>()
  const list = useQuery({
    queryKey: ['receipts'],
    queryFn: () => service.get('/api/receipts', { query: { limit: 20 } }),
  })
  const keys = useQuery({
    queryKey: ['jwks'],
    queryFn: () => service.get('/.well-known/jwks.json'),
    refetchInterval: false,
  })

  const open = async (id: string) => {
    const receipt = await service.get('/api/receipts/{id}', { path: { id } })
    setText(JSON.stringify(receipt, null, 2))
    setVerdict(undefined)
  }
  const verify = () => {
    try {
      setVerdict(verifyReceipt(parseJson(text), { jwks: keys.data as never }))
    } catch (error) {
      setVerdict({ refused: (error as Error).message })
    }
  }

  return (
    <>
      <Card title="Receipts">
        <Loaded query={list}>
          {({ receipts }) => (
            <Table
              head={['Receipt', 'Kind', 'Lane', 'Issued', 'Log']}
              empty="No receipts yet."
              rows={(receipts as ReceiptRow[]).map((receipt) => ({
                key: receipt.receipt_id,
                cells: [
                  <button key="open" type="button" className="link" onClick={() => void open(receipt.receipt_id)}>
                    {receipt.receipt_id}
                  </button>,
                  receipt.kind,
                  receipt.agent_id ?? '–',
                  time(receipt.issued_at),
                  receipt.log ? `#${receipt.log.index}` : 'waiting',
                ],
              }))}
            />
          )}
        </Loaded>
      </Card>
      <Card title="Verify a receipt in this browser">
        <textarea
          aria-label="Receipt"
          rows={14}
          value={text}
          onChange={(event) => setText(event.target.value)}
          placeholder="Paste a receipt, or pick one above"
        />
        <p>
          <button type="button" onClick={verify} disabled={text.trim() === '' || !keys.data}>
            Verify
          </button>
        </p>
        {verdict && <VerdictView verdict={verdict} />}
      </Card>
    </>
  )
}

type ReceiptRow = {
  receipt_id: string
  kind: string
  agent_id: string | null
  issued_at: string
  log: { index: number } | null
}

function VerdictView({ verdict }: { verdict: Verdict | { refused: string } }) {
  if ('refused' in verdict) return <p className="bad">{verdict.refused}</p>
  return (
    <div data-verdict={verdict.ok ? 'holds' : 'fails'}>
      <p>
        <Mark good={verdict.ok}>{verdict.ok ? 'The receipt holds.' : 'The receipt does not hold.'}</Mark>
      </p>
      <ul className="checks">
        {verdict.checks.map((check) => (
          <li key={check.name}>
            <Mark good={check.ok === 'skipped' ? 'neutral' : check.ok}>
              {check.ok === true ? 'ok' : check.ok === false ? 'failed' : 'skipped'}
            </Mark>{' '}
            {check.name}: {check.reason}
          </li>
        ))}
      </ul>
      <p className="soft">What it does not prove: {verdict.does_not_prove.join(' ')}</p>
    </div>
  )
}
