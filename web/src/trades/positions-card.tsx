import type { ApiResponse } from '@countersign/sdk'
import { useQuery } from '@tanstack/react-query'
import { ACCOUNT_KEY, api } from '../api.ts'
import { QueryResult } from '../components/query-result.tsx'
import { type Column, Table } from '../components/table.tsx'
import { Card, StatList, Timestamp } from '../components/ui.tsx'
import { formatUsdc, NO_VALUE } from '../format.ts'
import { formatUsd } from './trade-facts.ts'

type Account = ApiResponse<'/api/rh/positions', 'get'>['accounts'][number]
type Position = Account['positions'][number]

/** Cash and positions at each broker. */
export function PositionsCard() {
  const positions = useQuery({
    queryKey: [ACCOUNT_KEY, 'trades', 'positions'],
    queryFn: () => api.get('/api/rh/positions'),
  })
  return (
    <Card title="Positions" note={positions.data && <Timestamp at={positions.data.as_of} />}>
      <QueryResult query={positions}>
        {({ accounts }) =>
          accounts.map((account) => (
            <section key={account.broker} aria-label={`Account at ${account.broker}`}>
              <h3>
                {account.broker} ({account.mode})
              </h3>
              <StatList
                stats={[
                  { name: 'Equity', value: formatCents(account.equity_usdc) },
                  { name: 'Buying power', value: formatCents(account.buying_power_usdc) },
                  { name: 'Cash', value: formatCents(account.cash_usdc) },
                  { name: 'Held or unsettled', value: formatCents(account.held_usdc + account.unsettled_usdc) },
                ]}
              />
              <Table
                label={`Positions at ${account.broker}`}
                columns={columns}
                rows={account.positions}
                rowKey={({ symbol }) => symbol}
                empty="No positions."
              />
            </section>
          ))
        }
      </QueryResult>
    </Card>
  )
}

const formatCents = (amount: number) => formatUsdc(Math.round(amount * 100) / 100)

const columns: Column<Position>[] = [
  { name: 'Symbol', render: ({ symbol, instrument_type }) => `${symbol} (${instrument_type})` },
  { name: 'Quantity', render: ({ quantity }) => quantity, numeric: true },
  { name: 'Average price', render: ({ avg_price }) => formatUsd(avg_price), numeric: true },
  { name: 'Cost', render: ({ cost_usdc }) => formatUsdc(cost_usdc), numeric: true },
  { name: 'Leverage', render: ({ leverage }) => (leverage === null ? NO_VALUE : `${leverage}×`), numeric: true },
  {
    name: 'Liquidation price',
    render: ({ liquidation_price }) => (liquidation_price === null ? NO_VALUE : formatUsd(liquidation_price)),
    numeric: true,
  },
  {
    name: 'Locked until',
    render: ({ locked_until }) => (locked_until ? <Timestamp at={locked_until} /> : NO_VALUE),
  },
]
