import type { ApiResponse } from '@countersign/sdk'
import { useQuery } from '@tanstack/react-query'
import { ACCOUNT_KEY, api } from '../api.ts'
import { Age } from '../components/countdown.tsx'
import { QueryResult } from '../components/query-result.tsx'
import { Table } from '../components/table.tsx'
import { Badge, Card, Timestamp, type Tone } from '../components/ui.tsx'
import { formatUsdc } from '../format.ts'
import { routeHref } from '../route.ts'
import { describeProspect, type Outlook, usedShare } from './budget-prospect.ts'

export type Outlooks = ApiResponse<'/api/control-tower/budgets', 'get'>

const tones: Record<Outlook['prospect'], Tone> = {
  used_up: 'error',
  below_one_run: 'error',
  runs_out: 'error',
  may_run_out: 'warning',
  lasts: 'success',
  no_spending: 'neutral',
  too_little_history: 'neutral',
}

/** Spending against budgets, with the forecast and how sure it is. */
export function BudgetOutlooks({ onlyAtRisk }: { onlyAtRisk: boolean }) {
  const outlooks = useQuery({
    queryKey: [ACCOUNT_KEY, 'budgets', 'outlooks', onlyAtRisk],
    queryFn: () => api.get('/api/control-tower/budgets', { query: onlyAtRisk ? { at_risk: true } : {} }),
  })
  return (
    <Card
      title={onlyAtRisk ? 'Budgets at risk' : 'Spend against budgets'}
      note={<a href={routeHref(['account', 'budgets'])}>All budgets</a>}
    >
      <QueryResult query={outlooks}>
        {({ budgets }) => (
          <Table
            label={onlyAtRisk ? 'Budgets at risk' : 'Budgets'}
            columns={[
              {
                name: 'Budget',
                render: ({ budget_id, scope }) => (
                  <>
                    <a href={routeHref(['account', 'budgets'])}>{budget_id}</a>
                    <div className="forecast-interval">
                      {scope.type === 'tenant' ? 'everything' : `${scope.type} ${scope.id}`}
                    </div>
                  </>
                ),
              },
              { name: 'Used', render: (outlook) => <UseMeter outlook={outlook} /> },
              { name: 'Left', render: ({ remaining_usdc }) => formatUsdc(remaining_usdc), numeric: true },
              {
                name: 'Resets',
                render: ({ resets_at, window }) => (resets_at ? <Age at={resets_at} /> : window.replace('_', ' ')),
              },
              { name: 'Forecast', render: (outlook) => <ForecastText outlook={outlook} />, wide: true },
            ]}
            rows={budgets}
            rowKey={({ budget_id }) => budget_id}
            empty={
              onlyAtRisk ? (
                'No budget is at risk.'
              ) : (
                <>
                  No budgets yet. <a href={routeHref(['account', 'budgets'])}>Set what may be spent</a>.
                </>
              )
            }
          />
        )}
      </QueryResult>
    </Card>
  )
}

const UseMeter = ({ outlook }: { outlook: Outlook }) => (
  <span className="budget-use">
    <meter
      min={0}
      max={100}
      high={80}
      optimum={0}
      value={usedShare(outlook)}
      aria-label={`${outlook.budget_id}: used`}
    />
    {formatUsdc(outlook.spent_usdc)} of {formatUsdc(outlook.limit_usdc)}
    {outlook.reserved_usdc > 0 && <span className="muted"> and {formatUsdc(outlook.reserved_usdc)} reserved</span>}
  </span>
)

/** What can be said of one budget in words. */
export function ForecastText({ outlook }: { outlook: Outlook }) {
  const { label, text, showsInterval } = describeProspect(outlook)
  const { forecast } = outlook
  return (
    <>
      <Badge tone={tones[outlook.prospect]}>{label}</Badge> {text}
      {showsInterval && forecast && (
        <div className="forecast-interval">
          about <Timestamp at={forecast.exhausted_at} />; 9 of 10 such forecasts are between{' '}
          <Timestamp at={forecast.earliest} /> and{' '}
          {forecast.latest ? <Timestamp at={forecast.latest} /> : 'never: it may not happen at all'}
        </div>
      )}
    </>
  )
}
