import type { Jwks } from '@countersign/proof'
import { useQuery } from '@tanstack/react-query'
import { type ChangeEvent, useEffect, useState } from 'react'
import { Choice, Field } from '../parts/fields.tsx'
import { Bad, Card, Soft, Title } from '../parts/parts.tsx'
import type { Route } from '../route.ts'
import { service, useKeySet } from '../service.ts'
import { examine, type Finding, readKeySet } from './examine.ts'
import { FindingView } from './finding.tsx'

const OURS = 'of this service'
const PASTED = 'I paste them'

/** Verification runs in this browser, with public keys alone; the receipt is sent nowhere. */
export function VerifyPage({ route }: { route: Route }) {
  const [text, setText] = useState('')
  const [keyText, setKeyText] = useState('')
  const [keysFrom, setKeysFrom] = useState(OURS)
  const [finding, setFinding] = useState<Finding>()
  const keys = useKeySet()
  const asked = useAskedEvidence(route)

  useEffect(() => {
    if (asked.text === undefined) return
    setText(asked.text)
    setFinding(undefined)
  }, [asked.text])

  const change = (value: string) => {
    setText(value)
    setFinding(undefined)
  }
  const open = async (event: ChangeEvent<HTMLInputElement>, put: (text: string) => void) => {
    const file = event.target.files?.[0]
    if (file) put(await file.text())
    setFinding(undefined)
  }
  const trusted = (): { jwks: Jwks } | { refused: string } => {
    if (keysFrom === PASTED) return readKeySet(keyText)
    return keys.data ? { jwks: keys.data } : { refused: 'The keys of this service are not loaded: paste them.' }
  }
  const verify = () => {
    const chosen = trusted()
    setFinding(
      'refused' in chosen ? { refused: `The keys: ${chosen.refused}` } : examine(text, chosen.jwks, new Date()),
    )
  }

  return (
    <>
      <Title>Verify</Title>
      <Soft>
        Paste a receipt, the answer of a run, or an attestation. It is checked here, in this browser, with public keys
        alone: nothing is sent anywhere, and it works when the service is gone.
      </Soft>
      <Card title="Evidence">
        {asked.error && <Bad>{asked.error.message}</Bad>}
        <form
          onSubmit={(event) => {
            event.preventDefault()
            verify()
          }}
        >
          <Field label="Receipt or attestation, as JSON">
            {(id) => (
              <textarea
                id={id}
                rows={14}
                spellCheck={false}
                value={text}
                onChange={(event) => change(event.target.value)}
              />
            )}
          </Field>
          <Field label="Or from a file">
            {(id) => (
              <input
                id={id}
                type="file"
                accept=".json,application/json"
                onChange={(event) => void open(event, change)}
              />
            )}
          </Field>
          <Choice
            label="Trusted keys"
            name="keys"
            value={keysFrom}
            options={[OURS, PASTED]}
            onPick={(choice) => {
              setKeysFrom(choice)
              setFinding(undefined)
            }}
          />
          {keysFrom === PASTED && (
            <Field label="Key set (JWKS)">
              {(id) => (
                <textarea
                  id={id}
                  rows={6}
                  spellCheck={false}
                  value={keyText}
                  onChange={(event) => {
                    setKeyText(event.target.value)
                    setFinding(undefined)
                  }}
                />
              )}
            </Field>
          )}
          <div className="row">
            <button type="submit" disabled={text.trim() === ''}>
              Verify
            </button>
          </div>
        </form>
      </Card>
      {finding && (
        <Card title="Finding">
          <FindingView finding={finding} />
        </Card>
      )}
    </>
  )
}

/** `#/verify?receipt=…` and `#/verify?attestation=…` bring the evidence along. */
function useAskedEvidence({ query }: Route) {
  const receipt = query.get('receipt')
  const symbol = query.get('attestation')
  const chain = query.get('chain') ?? undefined
  const found = useQuery({
    queryKey: ['evidence', receipt, symbol, chain],
    enabled: Boolean(receipt ?? symbol),
    refetchInterval: false,
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: async () => {
      const value = receipt
        ? await service.get('/api/receipts/{id}', { path: { id: receipt } })
        : await service.get('/api/basis/v1/attestation/{symbol}', { path: { symbol: symbol! }, query: { chain } })
      return JSON.stringify(value, null, 2)
    },
  })
  return { text: found.data, error: found.error }
}
