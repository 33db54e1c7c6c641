import type { Policy } from '@countersign/sdk'
import { useMutation } from '@tanstack/react-query'
import { useEffect, useRef, useState } from 'react'
import { api } from '../api.ts'
import { useAction } from '../components/action-button.tsx'
import { ConfirmButton } from '../components/confirm-button.tsx'
import { Field } from '../components/form-fields.tsx'
import { Card, ErrorMessage, MutedText } from '../components/ui.tsx'
import { navigate, routeHref } from '../route.ts'
import { isObject } from '../schema/json-schema.ts'
import { parseJsonText } from '../schema/json-text.ts'
import { requestSchemas } from '../schema/request-schemas.ts'
import { JsonEditor, ProblemList, toText } from './json-editor.tsx'
import {
  findDraftProblems,
  type PolicyCreate,
  type PolicyDraft,
  type PolicyUpdate,
  toDraft,
  toSimulatedPolicy,
} from './policy-draft.ts'
import { PolicyForm } from './policy-form.tsx'
import { describeIdentity } from './policy-list.tsx'
import { describeSimulation, SimulationReport } from './simulation-card.tsx'
import { type DraftState, useDraft } from './use-draft.ts'
import { compareSimulations, describeEffect } from './version-effect.ts'

type EditorProps = {
  /** Under which the draft is kept while other pages are looked at. */
  name: string
  /** Absent for a new policy. */
  policy?: Policy
  initial: () => DraftState
  /** What was changed before the editor opened: it is simulated at once, and saving it asks. */
  purpose?: { title: string; words: string }
  note?: string
}

/** One draft, edited as a form or as JSON, tried on past runs and then saved. */
export function PolicyEditor({ name, policy, initial, purpose, note }: EditorProps) {
  const { state, update, discard, forget } = useDraft(name, initial)
  const [view, setView] = useState<'form' | 'json'>('form')
  const { draft } = state
  const text = state.text ?? toText(draft)
  const hasBadText = state.text !== undefined
  const problems = findDraftProblems(draft, !policy)
  const setDraft = (next: PolicyDraft) => update({ draft: next, text: undefined })
  const setText = (next: string) => {
    const parsed = parseJsonText(next)
    if ('value' in parsed && isObject(parsed.value))
      update({ draft: parsed.value, text: next === toText(parsed.value) ? undefined : next })
    else update({ text: next })
  }
  const isJson = !('error' in parseJsonText(text))
  return (
    <>
      <Card
        title={purpose?.title ?? (policy ? `Change ${policy.name}` : 'New policy')}
        note={
          <a href={routeHref(['account', 'policies', ...(policy ? [policy.id] : [])])} className="muted">
            {policy ? 'Back to the policy' : 'All policies'}
          </a>
        }
      >
        {policy && (
          <MutedText>
            {policy.name}, version {policy.version}, for {describeIdentity(policy)}. Whom it is for cannot be changed;
            make another policy for that.
          </MutedText>
        )}
        {purpose && <p>{purpose.words}</p>}
        {note && <p className="warning-text">{note}</p>}
        {policy && state.baseVersion !== undefined && policy.version !== state.baseVersion && (
          <ErrorMessage>
            The policy has changed since this draft was begun: version {state.baseVersion} then, {policy.version} now.
            Saving replaces that change.
          </ErrorMessage>
        )}
        <fieldset className="row">
          <legend className="visually-hidden">View of the draft</legend>
          <button
            type="button"
            className="secondary"
            aria-pressed={view === 'form'}
            disabled={!isJson}
            onClick={() => setView('form')}
          >
            Form
          </button>
          <button type="button" className="secondary" aria-pressed={view === 'json'} onClick={() => setView('json')}>
            JSON
          </button>
          {!isJson && <span className="error">Mend the JSON to go back to the form.</span>}
        </fieldset>
        {view === 'form' && isJson ? (
          <PolicyForm draft={draft} problems={problems} onChange={setDraft} isNew={!policy} />
        ) : (
          <JsonEditor
            schema={requestSchemas[policy ? 'PolicyUpdate' : 'PolicyCreate']!}
            text={text}
            problems={problems}
            onText={setText}
          />
        )}
      </Card>
      <SaveCard
        policy={policy}
        state={state}
        update={update}
        discard={discard}
        forget={forget}
        problems={hasBadText && !isJson ? [{ path: '', message: 'The text is not JSON.' }] : problems}
        purpose={purpose}
      />
    </>
  )
}

const periods = [
  { label: 'the newest 1,000', days: undefined, limit: 1_000 },
  { label: 'the newest 5,000', days: undefined, limit: 5_000 },
  { label: 'the last day', days: 1, limit: 5_000 },
  { label: 'the last 30 days', days: 30, limit: 5_000 },
]

function SaveCard({
  policy,
  state,
  update,
  discard,
  forget,
  problems,
  purpose,
}: {
  policy: Policy | undefined
  state: DraftState
  update: (change: Partial<DraftState>) => void
  discard: () => void
  forget: () => void
  problems: ReturnType<typeof findDraftProblems>
  purpose: EditorProps['purpose']
}) {
  const [period, setPeriod] = useState(0)
  const { draft, simulation } = state
  const draftText = JSON.stringify(draft)
  const isSimulated = simulation?.of === draftText
  const isReady = problems.length === 0
  const simulate = useMutation({
    mutationFn: async () => {
      const { days, limit } = periods[period]!
      const since = days && new Date(Date.now() - days * 86_400_000).toISOString()
      const replay = (content: PolicyDraft) =>
        api.post('/api/policies/simulate', {
          body: {
            policy: toSimulatedPolicy(content, policy),
            limit,
            ...(policy && { replaces: policy.id }),
            ...(since && { since }),
          },
        })
      const [result, present] = await Promise.all([
        replay(draft),
        policy?.status === 'active' ? replay(toDraft(policy)) : undefined,
      ])
      const effect = present && describeEffect(compareSimulations(present.results, result.results), policy!.version)
      return { of: draftText, result, effect }
    },
    onSuccess: (next) => update({ simulation: next }),
  })
  const begins = useRef(purpose !== undefined && isReady && !simulation)
  const { mutate } = simulate
  useEffect(() => {
    if (begins.current) mutate()
    begins.current = false
  }, [mutate])
  const save = async () => {
    const saved = policy
      ? await api.patch('/api/policies/{id}', { path: { id: policy.id }, body: draft as PolicyUpdate })
      : await api.post('/api/policies', { body: draft as PolicyCreate })
    forget()
    navigate(routeHref(['account', 'policies', saved.id]))
  }
  return (
    <Card title="Simulate and save" note="The draft is tried on your past runs; nothing is changed by that">
      {!isReady && <ProblemList problems={problems} />}
      <div className="filters">
        <Field label="Try it on">
          {(id) => (
            <select id={id} value={period} onChange={({ target }) => setPeriod(Number(target.value))}>
              {periods.map(({ label }, index) => (
                <option key={label} value={index}>
                  {label}
                </option>
              ))}
            </select>
          )}
        </Field>
        <button
          type="button"
          className={isSimulated ? 'secondary' : undefined}
          disabled={!isReady || simulate.isPending}
          onClick={() => mutate()}
        >
          Simulate
        </button>
        <SaveButton
          isReady={isReady}
          simulation={isSimulated ? simulation : undefined}
          purpose={purpose}
          isNew={!policy}
          save={save}
        />
        <button type="button" className="secondary" onClick={discard}>
          Start again
        </button>
      </div>
      {simulate.error && <ErrorMessage>{simulate.error.message}</ErrorMessage>}
      {simulate.isPending && <MutedText>Replaying past decisions…</MutedText>}
      {simulation && !isSimulated && (
        <MutedText>The draft has changed since it was simulated. These are the figures of the draft before.</MutedText>
      )}
      {simulation && <SimulationReport result={simulation.result} effect={simulation.effect} />}
    </Card>
  )
}

/** Saves at once what was simulated. What was not, and what makes a refused payment pass, asks first. */
function SaveButton({
  isReady,
  simulation,
  purpose,
  isNew,
  save,
}: {
  isReady: boolean
  simulation: DraftState['simulation']
  purpose: EditorProps['purpose']
  isNew: boolean
  save: () => Promise<void>
}) {
  const mutation = useAction<void>(save)
  const label = isNew ? 'Create the policy' : 'Save as a new version'
  if (simulation && !purpose)
    return (
      <>
        <button type="button" disabled={!isReady || mutation.isPending} onClick={() => mutation.mutate()}>
          {label}
        </button>
        {mutation.error && <ErrorMessage>{mutation.error.message}</ErrorMessage>}
      </>
    )
  return (
    <ConfirmButton
      action={save}
      className={simulation ? '' : 'secondary'}
      disabled={!isReady}
      title={simulation ? `${purpose!.title}?` : 'Save without simulating?'}
      text={
        simulation ? (
          <>
            <p>{purpose!.words}</p>
            {simulation.effect && <p>{simulation.effect}</p>}
            <p>{describeSimulation(simulation.result)}</p>
          </>
        ) : (
          <p>This draft has not been tried on past runs. It is in force for everything after it is saved.</p>
        )
      }
      confirmLabel={label}
    >
      {label}
    </ConfirmButton>
  )
}
