import { useQuery } from '@tanstack/react-query'
import { type ChangeEvent, useEffect, useState } from 'react'
import { api, useJwks } from '../api.ts'
import { Field, Select } from '../components/form-fields.tsx'
import { Card, ErrorMessage, MutedText, PageTitle } from '../components/ui.tsx'
import type { Route } from '../route.ts'
import { PASTED_KEYS, SERVICE_KEYS, selectTrustedKeys } from './trusted-keys.ts'
import { VerificationResultView } from './verification-result.tsx'
import { type VerificationResult, verifyEvidenceText } from './verify-evidence.ts'

/** Verification runs in this browser with public keys alone; the evidence is not sent anywhere. */
export function VerifyPage({ route }: { route: Route }) {
  const [text, setText] = useState('')
  const [keyText, setKeyText] = useState('')
  const [keySource, setKeySource] = useState(SERVICE_KEYS)
  const [result, setResult] = useState<VerificationResult>()
  const jwksQuery = useJwks()
  const linkedEvidence = useLinkedEvidence(route)

  useEffect(() => {
    if (linkedEvidence.text === undefined) return
    setText(linkedEvidence.text)
    setResult(undefined)
  }, [linkedEvidence.text])

  const changeText = (value: string) => {
    setText(value)
    setResult(undefined)
  }
  const readFile = async (event: ChangeEvent<HTMLInputElement>, onText: (text: string) => void) => {
    const file = event.target.files?.[0]
    if (file) onText(await file.text())
    setResult(undefined)
  }
  const verify = () => {
    const keySet = selectTrustedKeys(keySource, keyText, jwksQuery.data)
    setResult(
      'error' in keySet ? { error: `Keys: ${keySet.error}` } : verifyEvidenceText(text, keySet.jwks, new Date()),
    )
  }

  return (
    <>
      <PageTitle>Verify</PageTitle>
      <MutedText>
        Paste a receipt, the response of a run, or an attestation. It is verified in this browser with public keys
        alone: nothing is sent anywhere, and it works without the service.
      </MutedText>
      <Card title="Evidence">
        {linkedEvidence.error && <ErrorMessage>{linkedEvidence.error.message}</ErrorMessage>}
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
                onChange={(event) => changeText(event.target.value)}
              />
            )}
          </Field>
          <Field label="Or from a file">
            {(id) => (
              <input
                id={id}
                type="file"
                accept=".json,application/json"
                onChange={(event) => void readFile(event, changeText)}
              />
            )}
          </Field>
          <Select
            label="Trusted keys"
            name="keys"
            value={keySource}
            options={[SERVICE_KEYS, PASTED_KEYS]}
            onSelect={(choice) => {
              setKeySource(choice)
              setResult(undefined)
            }}
          />
          {keySource === PASTED_KEYS && (
            <Field label="Key set (JWKS)">
              {(id) => (
                <textarea
                  id={id}
                  rows={6}
                  spellCheck={false}
                  value={keyText}
                  onChange={(event) => {
                    setKeyText(event.target.value)
                    setResult(undefined)
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
      {result && (
        <Card title="Result">
          <VerificationResultView result={result} />
        </Card>
      )}
    </>
  )
}

/** Loads the evidence named in the URL: `#/verify?receipt=…` or `#/verify?attestation=…`. */
function useLinkedEvidence({ query }: Route) {
  const receipt = query.get('receipt')
  const symbol = query.get('attestation')
  const chain = query.get('chain') ?? undefined
  const evidence = useQuery({
    queryKey: ['evidence', receipt, symbol, chain],
    enabled: Boolean(receipt ?? symbol),
    refetchInterval: false,
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: async () => {
      const value = receipt
        ? await api.get('/api/receipts/{id}', { path: { id: receipt } })
        : await api.get('/api/basis/v1/attestation/{symbol}', { path: { symbol: symbol! }, query: { chain } })
      return JSON.stringify(value, null, 2)
    },
  })
  return { text: evidence.data, error: evidence.error }
}
