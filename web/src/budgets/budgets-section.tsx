import type { Budget } from '@countersign/sdk'
import { useQuery } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { mayControl } from '../account/permissions.ts'
import type { SectionProps } from '../account/section-props.ts'
import { ACCOUNT_KEY, api } from '../api.ts'
import { useAction } from '../components/action-button.tsx'
import { Field, Select } from '../components/form-fields.tsx'
import { QueryResult } from '../components/query-result.tsx'
import { type Column, Table } from '../components/table.tsx'
import { Card, ErrorMessage, Timestamp } from '../components/ui.tsx'
import { formatUsdc, NO_VALUE } from '../format.ts'
import { type BudgetScope, type BudgetUpdate, toBudgetUpdate } from './budget-update.ts'

const scopes = ['tenant', 'agent', 'session', 'mandate'] as const satisfies readonly BudgetScope[]
const windows = ['day', 'week', 'month', 'total', 'run'] as const satisfies readonly BudgetUpdate['window'][]
const breachActions = ['block', 'downgrade', 'review'] as const satisfies readonly BudgetUpdate['on_breach'][]

export function BudgetsSection({ me }: SectionProps) {
  const budgets = useQuery({ queryKey: [ACCOUNT_KEY, 'budgets'], queryFn: () => api.get('/api/budgets') })
  return (
    <Card title="Budgets">
      <QueryResult query={budgets}>
        {({ budgets: budgetList }) => (
          <>
            <Table
              label="Budgets"
              columns={columns}
              rows={budgetList}
              rowKey={({ budget_id }) => budget_id}
              empty={`There are no budgets: spending by your API keys is not limited.${mayControl(me) ? ' Create one below.' : ''}`}
            />
            {mayControl(me) && <BudgetForm />}
          </>
        )}
      </QueryResult>
    </Card>
  )
}

const columns: Column<Budget>[] = [
  { name: 'Budget', render: ({ budget_id }) => budget_id },
  { name: 'For', render: ({ scope }) => `${scope.type} ${scope.type === 'tenant' ? '' : scope.id}`, wide: true },
  { name: 'Window', render: ({ window }) => window },
  {
    name: 'Used',
    render: ({ budget_id, limit_usdc, spent_usdc, reserved_usdc }) => (
      <meter
        aria-label={`Used of ${budget_id}`}
        min={0}
        max={Math.max(limit_usdc, 1e-6)}
        high={limit_usdc * 0.8}
        low={limit_usdc * 0.5}
        optimum={0}
        value={spent_usdc + reserved_usdc}
      />
    ),
  },
  { name: 'Spent', render: ({ spent_usdc }) => formatUsdc(spent_usdc), numeric: true },
  { name: 'Reserved', render: ({ reserved_usdc }) => formatUsdc(reserved_usdc), numeric: true },
  { name: 'Limit', render: ({ limit_usdc }) => formatUsdc(limit_usdc), numeric: true },
  { name: 'On breach', render: ({ on_breach }) => on_breach },
  { name: 'Resets', render: ({ resets_at }) => (resets_at ? <Timestamp at={resets_at} /> : NO_VALUE) },
]

function BudgetForm() {
  const [scope, setScope] = useState<string>('tenant')
  const saveBudget = useAction((body: BudgetUpdate) => api.post('/api/budgets', { body }))
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const form = event.currentTarget
    saveBudget.mutate(toBudgetUpdate(new FormData(form)), {
      onSuccess: () => {
        form.reset()
        setScope('tenant')
      },
    })
  }
  return (
    <details>
      <summary>Create or update a budget</summary>
      <form className="filters" onSubmit={submit} aria-label="Budget">
        <Field label="Name">
          {(id) => <input id={id} name="budget_id" pattern="[A-Za-z0-9_.:\-]{1,80}" required placeholder="monthly" />}
        </Field>
        <Select label="For" name="scope" value={scope} options={scopes} onSelect={setScope} />
        {scope !== 'tenant' && (
          <Field label={`Which ${scope}`}>{(id) => <input id={id} name="scope_id" maxLength={200} required />}</Field>
        )}
        <Select label="Window" name="window" value="month" options={windows} />
        <Field label="Limit (USDC)">
          {(id) => <input id={id} name="limit_usdc" type="number" min="0" step="any" required />}
        </Field>
        <Select label="On breach" name="on_breach" value="block" options={breachActions} />
        <button type="submit" disabled={saveBudget.isPending}>
          Save
        </button>
        {saveBudget.error && <ErrorMessage>{saveBudget.error.message}</ErrorMessage>}
      </form>
    </details>
  )
}
