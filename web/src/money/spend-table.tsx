import { type Column, Table } from '../components/table.tsx'
import { toCsv } from '../csv.ts'
import { formatCount, NO_VALUE } from '../format.ts'
import { routeHref } from '../route.ts'
import { formatChange, formatDifference, formatMicroUsdc, toDecimal } from '../usdc-sum.ts'
import { describePeriod, runsHref, type SpendRow } from './spend-comparison.ts'
import type { SpendQuestion } from './spend-question.ts'

const titles = { spender: 'Spender', team: 'Team', lane: 'Lane', merchant: 'Merchant', tag: 'Tag', day: 'Day' } as const

export function SpendTable({ question, rows }: { question: SpendQuestion; rows: SpendRow[] }) {
  return (
    <Table
      label="Spend by group"
      columns={columnsOf(question, rows)}
      rows={rows}
      rowKey={({ name }) => (name === null ? 'none' : `name ${name}`)}
      empty={
        <>
          Nothing was spent in these periods. Choose a longer one, or{' '}
          <a href={routeHref(['playground'])}>pay for a run in the playground</a>.
        </>
      }
    />
  )
}

const columnsOf = ({ grouping, tag, now, before }: SpendQuestion, rows: readonly SpendRow[]): Column<SpendRow>[] => [
  {
    name: grouping === 'tag' ? `${titles.tag} ${tag}` : titles[grouping],
    render: ({ name }) => name ?? <span className="muted">none</span>,
    wide: true,
  },
  { name: 'This period', render: ({ nowMicro }) => formatMicroUsdc(nowMicro), numeric: true },
  ...(before
    ? [
        {
          name: 'Compared with',
          render: ({ beforeMicro }: SpendRow) => formatMicroUsdc(beforeMicro),
          numeric: true,
        },
        {
          name: 'Difference',
          render: ({ nowMicro, beforeMicro }: SpendRow) => formatDifference(nowMicro - beforeMicro),
          numeric: true,
        },
        {
          name: 'Change',
          render: ({ nowMicro, beforeMicro }: SpendRow) => formatChange(beforeMicro, nowMicro) ?? NO_VALUE,
          numeric: true,
        },
      ]
    : []),
  {
    name: 'Of which runs',
    render: (row) => <RunsLink row={row} href={runsHref(row, grouping, tag, now)} />,
  },
  ...(rows.some(({ reportedMicro }) => reportedMicro !== 0n)
    ? [
        {
          name: 'Only reported',
          render: ({ reportedMicro }: SpendRow) => (reportedMicro === 0n ? NO_VALUE : formatMicroUsdc(reportedMicro)),
          numeric: true,
        },
      ]
    : []),
]

function RunsLink({ row: { runs, runsMicro }, href }: { row: SpendRow; href: string | undefined }) {
  if (runs === 0) return NO_VALUE
  const text = `${formatCount(runs)} ${runs === 1 ? 'run' : 'runs'}, ${formatMicroUsdc(runsMicro)}`
  return href === undefined ? text : <a href={href}>{text}</a>
}

export const toSpendCsv = ({ grouping, now, before }: SpendQuestion, rows: readonly SpendRow[]) =>
  toCsv(
    [
      grouping,
      `usdc ${describePeriod(now)}`,
      ...(before ? [`usdc ${describePeriod(before)}`, 'difference_usdc'] : []),
      'runs',
      'runs_usdc',
      'reported_usdc',
    ],
    rows.map((row) => [
      row.name,
      Number(toDecimal(row.nowMicro)),
      ...(before ? [Number(toDecimal(row.beforeMicro)), Number(toDecimal(row.nowMicro - row.beforeMicro))] : []),
      row.runs,
      Number(toDecimal(row.runsMicro)),
      Number(toDecimal(row.reportedMicro)),
    ]),
  )
