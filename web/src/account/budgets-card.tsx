import type { Answer, Ask } from '@countersign/sdk'
import { useQuery } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { useAction } from '../parts/action.tsx'
import { Choice, Field } from '../parts/fields.tsx'
import { NONE, usdc } from '../parts/format.ts'
import { Loaded } from '../parts/loaded.tsx'
import { Bad, Card, When } from '../parts/parts.tsx'
import { type Column, Table } from '../parts/table.tsx'
import { ACCOUNT, service } from '../service.ts'
import { mayControl } from './account-page.tsx'
import type { Me } from './sign-in.ts'

type Budget = Answer<'/api/budgets', 'get'>['budgets'][number]
type BudgetUpdate = Ask<'/api/budgets', 'post'>['body']
type Scope = NonNullable<BudgetUpdate['scope']>['type']

const scopes = ['tenant', 'agent', 'session', 'mandate'] as const satisfies readonly Scope[]
const windows = ['day', 'week', 'month', 'total', 'run'] as const satisfies readonly BudgetUpdate['window'][]
const breaches = ['block', 'downgrade', 'review'] as const satisfies readonly BudgetUpdate['on_breach'][]

export function BudgetsCard({ me }: { me: Me }) {
  const budgets = useQuery({ queryKey: [ACCOUNT, 'budgets'], queryFn: () => service.get('/api/budgets') })
  return (
    <Card title="Budgets">
      <Loaded query={budgets}>
        {({ budgets: list }) => (
          <>
            <Table
              label="Budgets"
              columns={columns}
              rows={list}
              rowKey={({ budget_id }) => budget_id}
              empty="There are no budgets: nothing limits what your keys may spend."
            />
            {mayControl(me) && <BudgetForm />}
          </>
        )}
      </Loaded>
    </Card>
  )
}

const columns: Column<Budget>[] = [
  { name: 'Budget', show: ({ budget_id }) => budget_id },
  { name: 'For', show: ({ scope }) => `${scope.type} ${scope.type === 'tenant' ? '' : scope.id}`, wide: true },
  { name: 'Window', show: ({ window }) => window },
  {
    name: 'Used',
    show: ({ budget_id, limit_usdc, spent_usdc, reserved_usdc }) => (
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
  { name: 'Spent', show: ({ spent_usdc }) => usdc(spent_usdc), number: true },
  { name: 'Reserved', show: ({ reserved_usdc }) => usdc(reserved_usdc), number: true },
  { name: 'Limit', show: ({ limit_usdc }) => usdc(limit_usdc), number: true },
  { name: 'On breach', show: ({ on_breach }) => on_breach },
  { name: 'Resets', show: ({ resets_at }) => (resets_at ? <When at={resets_at} /> : NONE) },
]

function BudgetForm() {
  const [scope, setScope] = useState<string>('tenant')
  const put = useAction((body: BudgetUpdate) => service.post('/api/budgets', { body }))
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const form = event.currentTarget
    put.mutate(readBudget(new FormData(form)), {
      onSuccess: () => {
        form.reset()
        setScope('tenant')
      },
    })
  }
  return (
    <details>
      <summary>Make a budget, or change the limit of one</summary>
      <form className="filters" onSubmit={submit} aria-label="Budget">
        <Field label="Name">
          {(id) => <input id={id} name="budget_id" pattern="[A-Za-z0-9_.:\-]{1,80}" required placeholder="monthly" />}
        </Field>
        <Choice label="For" name="scope" value={scope} options={scopes} onPick={setScope} />
        {scope !== 'tenant' && (
          <Field label={`Which ${scope}`}>{(id) => <input id={id} name="scope_id" maxLength={200} required />}</Field>
        )}
        <Choice label="Window" name="window" value="month" options={windows} />
        <Field label="Limit (USDC)">
          {(id) => <input id={id} name="limit_usdc" type="number" min="0" step="any" required />}
        </Field>
        <Choice label="On breach" name="on_breach" value="block" options={breaches} />
        <button type="submit" disabled={put.isPending}>
          Save
        </button>
        {put.error && <Bad>{put.error.message}</Bad>}
      </form>
    </details>
  )
}

function readBudget(data: FormData): BudgetUpdate {
  const text = (name: string) => String(data.get(name) ?? '').trim()
  const scopeId = text('scope_id')
  return {
    budget_id: text('budget_id'),
    scope: { type: text('scope') as Scope, ...(scopeId && { id: scopeId }) },
    window: text('window') as BudgetUpdate['window'],
    limit_usdc: Number(text('limit_usdc')),
    on_breach: text('on_breach') as BudgetUpdate['on_breach'],
  }
}
