import type { ApiRequest, Budget } from '@countersign/sdk'
import { type FormEvent, useState } from 'react'
import { api } from '../api.ts'
import { useAction } from '../components/action-button.tsx'
import { Field } from '../components/form-fields.tsx'
import { ErrorMessage, MutedText } from '../components/ui.tsx'
import { NumberInput } from '../components/value-inputs.tsx'
import { AMOUNT_HELP, isAmount, readAmount, toInputText } from '../money-text.ts'
import { navigate, routeHref } from '../route.ts'
import { literalsOf } from '../schema/json-schema.ts'
import { requestSchemas } from '../schema/request-schemas.ts'
import { describeBreach, describeWindow } from './budget-tree.ts'

export type BudgetUpdate = ApiRequest<'/api/budgets', 'post'>['body']

const { properties } = requestSchemas.BudgetUpdateRequest!
const optionsOf = (schema: (typeof properties & object)[string]) =>
  (literalsOf(requestSchemas, schema) ?? []).map(String)
const scopes = optionsOf(properties!.scope!.properties!.type!)
const windows = optionsOf(properties!.window!)
const breachActions = optionsOf(properties!.on_breach!)
const kinds = optionsOf(properties!.applies_to!.items!)
const defaultKinds = ['runs', 'payments', 'spend']

type Draft = {
  budget_id: string
  scope: string
  scopeId: string
  window: string
  parent: string
  limit: unknown
  softLimit: unknown
  onBreach: string
  thresholds: string
  kinds: string[]
}

const toDraft = (budget: Budget | undefined, limit: string | undefined): Draft => ({
  budget_id: budget?.budget_id ?? '',
  scope: budget?.scope.type ?? 'tenant',
  scopeId: budget?.scope.id ?? '',
  window: budget?.window ?? 'month',
  parent: budget?.parent_id ?? '',
  limit: limit === undefined ? (budget?.limit_usdc ?? '') : readAmount(limit),
  softLimit: budget?.soft_limit_usdc ?? '',
  onBreach: budget?.on_breach ?? 'block',
  thresholds: budget?.alert_thresholds.map(toInputText).join(', ') ?? '',
  kinds: budget?.applies_to ?? defaultKinds,
})

/** The request of the form; scope, window and parent are sent only for a new budget, because they cannot be changed. */
export function toBudgetUpdate(draft: Draft, isNew: boolean): BudgetUpdate {
  const thresholds = draft.thresholds.split(',').flatMap((share) => (share.trim() ? [Number(share.trim())] : []))
  return {
    budget_id: draft.budget_id.trim(),
    limit_usdc: draft.limit as number,
    soft_limit_usdc: draft.softLimit === '' ? null : (draft.softLimit as number),
    on_breach: draft.onBreach,
    alert_thresholds: thresholds,
    applies_to: draft.kinds,
    ...(isNew && {
      scope: { type: draft.scope, ...(draft.scope !== 'tenant' && { id: draft.scopeId.trim() }) },
      window: draft.window,
      ...(draft.parent && { parent_id: draft.parent }),
    }),
  } as BudgetUpdate
}

export function BudgetForm({
  budget,
  budgets,
  limit,
}: {
  budget?: Budget
  budgets: Budget[]
  limit?: string | undefined
}) {
  const [draft, setDraft] = useState(() => toDraft(budget, limit))
  const set = (change: Partial<Draft>) => setDraft((current) => ({ ...current, ...change }))
  const save = useAction((body: BudgetUpdate) => api.post('/api/budgets', { body }))
  const isReady =
    isAmount(draft.limit) && (draft.softLimit === '' || isAmount(draft.softLimit)) && draft.kinds.length > 0
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    save.mutate(toBudgetUpdate(draft, !budget), {
      onSuccess: () => {
        if (budget) navigate(routeHref(['account', 'budgets']))
        else setDraft(toDraft(undefined, undefined))
      },
    })
  }
  const amountField = (label: string, name: 'limit' | 'softLimit', isOptional: boolean) => {
    const value = draft[name]
    const isWrong = value !== '' && !isAmount(value)
    return (
      <Field label={label} {...(isWrong && { problem: `${AMOUNT_HELP}.` })}>
        {(id, describedBy) => (
          <NumberInput
            id={id}
            describedBy={describedBy}
            value={value}
            required={!isOptional}
            onChange={(next) => set({ [name]: next })}
          />
        )}
      </Field>
    )
  }
  const choice = (
    label: string,
    name: 'scope' | 'window' | 'onBreach' | 'parent',
    options: string[],
    words = (option: string) => option,
  ) => (
    <Field label={label}>
      {(id) => (
        <select id={id} value={draft[name]} onChange={({ target }) => set({ [name]: target.value })}>
          {options.map((option) => (
            <option key={option} value={option}>
              {words(option)}
            </option>
          ))}
        </select>
      )}
    </Field>
  )
  return (
    <form className="filters" onSubmit={submit} aria-label={budget ? `Change ${budget.budget_id}` : 'Budget'}>
      {!budget && (
        <>
          <Field label="Name">
            {(id) => (
              <input
                id={id}
                pattern="[A-Za-z0-9_.:\-]{1,80}"
                required
                placeholder="monthly"
                value={draft.budget_id}
                onChange={({ target }) => set({ budget_id: target.value })}
              />
            )}
          </Field>
          {choice('For', 'scope', scopes, (scope) => (scope === 'tenant' ? 'the whole organisation' : scope))}
          {draft.scope !== 'tenant' && (
            <Field label={`Which ${draft.scope}`}>
              {(id) => (
                <input
                  id={id}
                  maxLength={300}
                  required
                  placeholder={draft.scope === 'tag' ? 'project=apollo' : ''}
                  value={draft.scopeId}
                  onChange={({ target }) => set({ scopeId: target.value })}
                />
              )}
            </Field>
          )}
          {choice('Window', 'window', windows, describeWindow)}
          {budgets.length > 0 &&
            choice(
              'Part of',
              'parent',
              ['', ...budgets.map(({ budget_id }) => budget_id)],
              (id) => id || 'no other budget',
            )}
        </>
      )}
      {amountField('Limit (USDC)', 'limit', false)}
      {amountField('Warn above (USDC, optional)', 'softLimit', true)}
      {choice('At the limit', 'onBreach', breachActions, describeBreach)}
      <Field label="Announce at (shares, optional)">
        {(id) => (
          <input
            id={id}
            pattern="[0-9., ]*"
            placeholder="0.5, 0.8"
            value={draft.thresholds}
            onChange={({ target }) => set({ thresholds: target.value })}
          />
        )}
      </Field>
      <fieldset className="choices">
        <legend className="visually-hidden">What counts</legend>
        {kinds.map((kind) => (
          <label key={kind}>
            <input
              type="checkbox"
              checked={draft.kinds.includes(kind)}
              onChange={({ target }) =>
                set({ kinds: kinds.filter((other) => (other === kind ? target.checked : draft.kinds.includes(other))) })
              }
            />
            {kind}
          </label>
        ))}
      </fieldset>
      <button type="submit" disabled={save.isPending || !isReady}>
        Save
      </button>
      {budget && (
        <MutedText>Whom it is for, its window and its parent are fixed; make another budget to change them.</MutedText>
      )}
      {save.error && <ErrorMessage>{save.error.message}</ErrorMessage>}
    </form>
  )
}
