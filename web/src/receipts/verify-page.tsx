import { type FormEvent, useEffect, useMemo, useState } from 'react'
import { useJwks } from '../api.ts'
import { Field, Select } from '../components/form-fields.tsx'
import { Card, ErrorMessage, MutedText, PageTitle } from '../components/ui.tsx'
import { navigate, type Route, routeHref } from '../route.ts'
import { useLinkedEvidence } from './linked-evidence.ts'
import { PASTED_KEYS, SERVICE_KEYS, selectTrustedKeys } from './trusted-keys.ts'
import { useFileDrop } from './use-file-drop.ts'
import { VerificationResultView } from './verification-result.tsx'
import { MAX_LENGTH, type VerifiedItem, verifyItems } from './verify-evidence.ts'

/** A text to verify, and where it comes from. */
type Source = { name: string; text: string }

const PASTED = 'The text'
const MAX_FILES = 50

/** Verification runs in this browser with public keys alone; the evidence is not sent anywhere. */
export function VerifyPage({ route }: { route: Route }) {
  const [text, setText] = useState('')
  const [keyText, setKeyText] = useState('')
  const [keySource, setKeySource] = useState(SERVICE_KEYS)
  const [sources, setSources] = useState<Source[]>([])
  const jwksQuery = useJwks()
  const { name: linkedName, text: linkedText, error: linkError } = useLinkedEvidence(route)

  useEffect(() => {
    if (linkedText === undefined) return
    setText(linkedText)
    setSources([{ name: linkedName, text: linkedText }])
  }, [linkedText, linkedName])

  const changeText = (value: string) => {
    setText(value)
    setSources([])
  }
  const readFiles = async (files: readonly File[]) => {
    const fileSources = await Promise.all(
      files.slice(0, MAX_FILES).map(async (file) => ({ name: file.name, text: await file.text() })),
    )
    const [only] = fileSources
    if (fileSources.length === 1 && only!.text.length <= MAX_LENGTH) setText(only!.text)
    setSources(fileSources)
  }
  const isDropping = useFileDrop((files) => void readFiles(files))
  const items = useMemo((): VerifiedItem[] => {
    if (sources.length === 0) return []
    const keySet = selectTrustedKeys(keySource, keyText, jwksQuery.data)
    if ('error' in keySet) return [{ name: sources[0]!.name, result: { error: `Keys: ${keySet.error}` } }]
    const now = new Date()
    return sources.flatMap((source) => verifyItems(source.name, source.text, keySet.jwks, now))
  }, [sources, keySource, keyText, jwksQuery.data])

  return (
    <>
      <PageTitle>Verify</PageTitle>
      <MutedText>
        A receipt, the response of a run, an attestation, a log proof or an audit export. It is verified in this browser
        with public keys alone: nothing is sent anywhere, and it works without the service.
      </MutedText>
      <Card title="Evidence" note="Drop files anywhere on this page">
        <IdForm />
        {linkError && <ErrorMessage>{linkError.message}</ErrorMessage>}
        <Field label="From files">
          {(id) => (
            <input
              id={id}
              type="file"
              multiple
              accept=".json,.ndjson,.jsonl,.tlog-proof,.txt,application/json"
              onChange={(event) => void readFiles([...(event.target.files ?? [])])}
            />
          )}
        </Field>
        <form
          aria-label="Text to verify"
          onSubmit={(event) => {
            event.preventDefault()
            setSources([{ name: PASTED, text }])
          }}
        >
          <Field label="Receipt or attestation, as JSON">
            {(id) => (
              <textarea
                id={id}
                rows={12}
                spellCheck={false}
                value={text}
                onChange={(event) => changeText(event.target.value)}
              />
            )}
          </Field>
          <Select
            label="Trusted keys"
            name="keys"
            value={keySource}
            options={[SERVICE_KEYS, PASTED_KEYS]}
            onSelect={setKeySource}
          />
          {keySource === PASTED_KEYS && (
            <Field label="Key set (JWKS)">
              {(id) => (
                <textarea
                  id={id}
                  rows={6}
                  spellCheck={false}
                  value={keyText}
                  onChange={(event) => setKeyText(event.target.value)}
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
      <Results items={items} />
      {isDropping && <div className="drop-zone">Drop the files to verify them. They stay in this browser.</div>}
    </>
  )
}

function IdForm() {
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const id = String(new FormData(event.currentTarget).get('id')).trim()
    navigate(routeHref(['verify'], id.startsWith('run_') ? { run: id } : { receipt: id }))
  }
  return (
    <form className="filters" onSubmit={submit} aria-label="Verify by id">
      <Field label="By id">
        {(id) => <input id={id} name="id" placeholder="rcpt_… or run_…" maxLength={100} required spellCheck={false} />}
      </Field>
      <button type="submit" className="secondary">
        Look up
      </button>
    </form>
  )
}

function Results({ items }: { items: VerifiedItem[] }) {
  const [first] = items
  if (!first) return null
  if (items.length === 1)
    return (
      <Card title="Result" note={first.name !== PASTED && <span className="wrap">{first.name}</span>}>
        <ItemView item={first} />
      </Card>
    )
  return (
    <>
      <p role="status">
        {items.filter(({ result }) => 'verdict' in result && result.verdict === 'valid').length} of {items.length} are
        valid.
      </p>
      {items.map((item, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: two files may have one name, and the list is replaced as a whole
        <Card key={index} title={item.name}>
          <ItemView item={item} />
        </Card>
      ))}
    </>
  )
}

const ItemView = ({ item: { result } }: { item: VerifiedItem }) => (
  <>
    <VerificationResultView result={result} />
    {'verification' in result && result.verification.checks.some(({ name, ok }) => name === 'key' && ok === false) && (
      <MutedText>
        It may be of another service: choose “{PASTED_KEYS}” and paste the key set of that service, from its
        /.well-known/jwks.json.
      </MutedText>
    )}
  </>
)
