import type { Budget } from '@countersign/sdk'
import { useQuery } from '@tanstack/react-query'
import { mayControl } from '../account/permissions.ts'
import type { SectionProps } from '../account/section-props.ts'
import { ACCOUNT_KEY, api } from '../api.ts'
import { ConfirmButton } from '../components/confirm-button.tsx'
import { QueryResult } from '../components/query-result.tsx'
import { Badge, Card, MutedText, Timestamp } from '../components/ui.tsx'
import { formatUsdc } from '../format.ts'
import { navigate, routeHref } from '../route.ts'
import { ForecastText } from '../tower/budget-outlooks.tsx'
import type { Outlook } from '../tower/budget-prospect.ts'
import { BudgetForm } from './budget-form.tsx'
import { type BudgetNode, describeBreach, describeWindow, runsHref, toBudgetTree, toShares } from './budget-tree.ts'

/** Budgets as a tree; `budgets/<id>` opens the form of one, with `?limit=` already in it. */
export function BudgetsSection({ me, route }: SectionProps) {
  const budgets = useQuery({ queryKey: [ACCOUNT_KEY, 'budgets'], queryFn: () => api.get('/api/budgets') })
  const outlooks = useQuery({
    queryKey: [ACCOUNT_KEY, 'budgets', 'outlooks', false],
    queryFn: () => api.get('/api/control-tower/budgets', { query: {} }),
  })
  const outlookById = new Map((outlooks.data?.budgets ?? []).map((outlook) => [outlook.budget_id, outlook]))
  const [, editedId] = route.segments
  return (
    <QueryResult query={budgets}>
      {({ budgets: list }) => {
        const edited = list.find(({ budget_id }) => budget_id === editedId)
        return (
          <>
            {editedId !== undefined && !edited && (
              <MutedText>There is no budget {editedId} in this organisation.</MutedText>
            )}
            {mayControl(me) && edited && (
              <Card
                title={`Change ${edited.budget_id}`}
                note={
                  <a className="muted" href={routeHref(['account', 'budgets'])}>
                    Back to all budgets
                  </a>
                }
              >
                {route.query.has('decision') && (
                  <p>
                    The limit goes from {edited.limit_usdc} to {route.query.get('limit')} USDC, the smallest with which
                    the refused payment would have passed. Nothing is changed until it is saved.
                  </p>
                )}
                <BudgetForm
                  key={`${edited.budget_id} ${route.query}`}
                  budget={edited}
                  budgets={list}
                  limit={route.query.get('limit') ?? undefined}
                />
              </Card>
            )}
            <Card title="Budgets" note="What is counted in a budget is counted in those above it">
              <Legend />
              {list.length === 0 ? (
                <p className="muted empty">
                  There are no budgets: spending by your API keys is not limited.
                  {mayControl(me) && ' Create one below.'}
                </p>
              ) : (
                <BudgetTree me={me} nodes={toBudgetTree(list)} outlooks={outlookById} />
              )}
              {mayControl(me) ? (
                <details open={list.length === 0}>
                  <summary>Create a budget</summary>
                  <BudgetForm budgets={list} />
                </details>
              ) : (
                <MutedText>This API key can view but not make changes.</MutedText>
              )}
            </Card>
          </>
        )
      }}
    </QueryResult>
  )
}

const Legend = () => (
  <p className="budget-legend muted">
    <span className="swatch spent" /> spent <span className="swatch reserved" /> reserved{' '}
    <span className="swatch free" /> free
  </p>
)

type TreeProps = { me: SectionProps['me']; nodes: BudgetNode[]; outlooks: ReadonlyMap<string, Outlook> }

const BudgetTree = ({ me, nodes, outlooks }: TreeProps) => (
  <ul className="budget-tree">
    {nodes.map((node) => (
      <li key={node.budget.budget_id} aria-label={`Budget ${node.budget.budget_id}`}>
        <BudgetItem me={me} node={node} outlook={outlooks.get(node.budget.budget_id)} />
        {node.children.length > 0 && <BudgetTree me={me} nodes={node.children} outlooks={outlooks} />}
      </li>
    ))}
  </ul>
)

function BudgetItem({
  me,
  node: { budget, isSmallerThanChildren },
  outlook,
}: {
  me: SectionProps['me']
  node: BudgetNode
  outlook: Outlook | undefined
}) {
  const { budget_id, scope, window, resets_at, on_breach, soft_limit_usdc } = budget
  const runs = runsHref(budget)
  return (
    <>
      <div className="budget-head">
        <strong>{budget_id}</strong>
        <span>
          {scope.type === 'tenant' ? 'the whole organisation' : `${scope.type} ${scope.id}`},{' '}
          {formatUsdc(budget.limit_usdc)} {describeWindow(window)}
        </span>
        {isSmallerThanChildren && <Badge tone="warning">smaller than those below it together</Badge>}
      </div>
      {window !== 'run' && <BudgetBar budget={budget} />}
      {window !== 'run' && outlook && (
        <div className="budget-facts">
          <ForecastText outlook={outlook} />
        </div>
      )}
      <div className="budget-facts muted">
        {resets_at && (
          <span>
            resets <Timestamp at={resets_at} />
          </span>
        )}
        {soft_limit_usdc !== null && <span>warns above {formatUsdc(soft_limit_usdc)}</span>}
        <span>at the limit {describeBreach(on_breach)}</span>
        {runs && <a href={runs}>Its runs</a>}
        {mayControl(me) && (
          <>
            <a href={routeHref(['account', 'budgets', budget_id])}>Change</a>
            <ConfirmButton
              action={async () => {
                await api.delete('/api/budgets/{budget_id}', { path: { budget_id } })
                navigate(routeHref(['account', 'budgets']))
              }}
              className="danger small"
              title={`Delete the budget ${budget_id}?`}
              text={<p>Spending is no longer limited by it. What it has counted is lost; a new one begins at zero.</p>}
              confirmLabel="Delete the budget"
            >
              Delete
            </ConfirmButton>
          </>
        )}
      </div>
    </>
  )
}

/** Spent, reserved and free, as a bar and in words. */
function BudgetBar({ budget }: { budget: Budget }) {
  const { spent, reserved } = toShares(budget)
  const words = `${formatUsdc(budget.spent_usdc)} spent, ${formatUsdc(budget.reserved_usdc)} reserved, ${formatUsdc(budget.remaining_usdc)} free`
  return (
    <div className="budget-line">
      <span className="budget-bar" aria-hidden="true">
        <span className="spent" style={{ width: `${spent}%` }} />
        <span className="reserved" style={{ width: `${reserved}%` }} />
      </span>
      <span>{words}</span>
    </div>
  )
}
