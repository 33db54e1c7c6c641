import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import type { SectionProps } from '../account/section-props.ts'
import { ACCOUNT_KEY, api } from '../api.ts'
import { Chart } from '../components/chart.tsx'
import { CsvButton } from '../components/csv-button.tsx'
import { QueryResult } from '../components/query-result.tsx'
import { Badge, Card, ErrorMessage, MutedText, StatList } from '../components/ui.tsx'
import { readAllPages } from '../components/use-cursor-pages.ts'
import { formatUsdc } from '../format.ts'
import { routeHref } from '../route.ts'
import { formatChange, formatDifference, formatMicroUsdc, sumMicro } from '../usdc-sum.ts'
import {
  compareDays,
  compareGroups,
  describePeriod,
  type Period,
  type SpendGroup,
  toRange,
} from './spend-comparison.ts'
import { SpendFilters } from './spend-filters.tsx'
import { readQuestion, type SpendQuestion } from './spend-question.ts'
import { SpendTable, toSpendCsv } from './spend-table.tsx'

const PAGE_SIZE = 1_000
const MAX_GROUPS = 20_000
type Report = { groups: SpendGroup[]; totalMicro: bigint }
const NO_REPORT: Report = { groups: [], totalMicro: 0n }

/** The groups of a period by name and rail, because the rail tells what was paid for runs. */
async function readReport({ grouping, tag }: SpendQuestion, period: Period | undefined): Promise<Report> {
  if (period === undefined) return NO_REPORT
  const query = {
    ...toRange(period),
    group_by: `${grouping},rail`,
    tag: grouping === 'tag' ? tag : undefined,
    time_zone: period.isUtc ? 'UTC' : Intl.DateTimeFormat().resolvedOptions().timeZone,
    format: 'json' as const,
    limit: PAGE_SIZE,
  }
  let totalMicro = 0n
  const groups = await readAllPages(
    async (cursor) => {
      const page = await api.get('/api/spend', { query: { ...query, cursor } })
      totalMicro = BigInt(page.totals.amount)
      return page
    },
    (page) => page.groups,
    MAX_GROUPS,
  )
  return { groups, totalMicro }
}

const useReports = (question: SpendQuestion) =>
  useQuery({
    queryKey: [ACCOUNT_KEY, 'spend', question],
    queryFn: async () => {
      const [now, before] = await Promise.all([
        readReport(question, question.now),
        readReport(question, question.before),
      ])
      return { question, now, before }
    },
    placeholderData: keepPreviousData,
  })

export function SpendSection({ route }: SectionProps) {
  const search = route.query.toString()
  const question = useMemo(() => readQuestion(new URLSearchParams(search), new Date()), [search])
  const reports = useReports(question)
  return (
    <>
      <Card title="Spend" note={<a href={routeHref(['account', 'analytics'])}>Runs, latency and margin over time</a>}>
        <SpendFilters key={search} question={question} query={route.query} />
        <QueryResult query={reports}>
          {(data) => <Result question={data.question} now={data.now} before={data.before} />}
        </QueryResult>
      </Card>
      <DaysCard question={question} />
    </>
  )
}

function Result({ question, now, before }: { question: SpendQuestion; now: Report; before: Report }) {
  const { grouping } = question
  const rows =
    grouping === 'day'
      ? compareDays(question.now, now.groups, question.before, before.groups)
      : compareGroups(grouping, now.groups, before.groups)
  const sum = sumMicro(rows.map(({ nowMicro }) => nowMicro))
  const isWhole = sum === now.totalMicro
  return (
    <>
      <StatList
        stats={[
          { name: describePeriod(question.now), value: formatMicroUsdc(now.totalMicro) },
          ...(question.before
            ? [
                { name: describePeriod(question.before), value: formatMicroUsdc(before.totalMicro) },
                { name: 'Difference', value: formatDifference(now.totalMicro - before.totalMicro) },
                { name: 'Change', value: formatChange(before.totalMicro, now.totalMicro) ?? 'nothing before' },
              ]
            : []),
        ]}
      />
      {isWhole ? (
        <p role="status">
          <Badge tone="success">Adds up</Badge> The rows below sum up to the total of the service,{' '}
          {formatMicroUsdc(sum)}.
        </p>
      ) : (
        <ErrorMessage>
          The rows below sum up to {formatMicroUsdc(sum)}, and the total of the service is{' '}
          {formatMicroUsdc(now.totalMicro)}.
        </ErrorMessage>
      )}
      <div className="row">
        <CsvButton name={`spend-by-${grouping}.csv`} readCsv={() => toSpendCsv(question, rows)} />
      </div>
      <SpendTable question={question} rows={rows} />
      <MutedText>
        Runs, loops, pre-authorised payments and purchases, each once, when they are settled. The notional of trades is
        not money spent.
      </MutedText>
    </>
  )
}

/** The same periods day by day, whatever the rows are grouped by. */
function DaysCard({ question }: { question: SpendQuestion }) {
  const reports = useReports({ ...question, grouping: 'day' })
  return (
    <Card title="Day by day" note="Days of your calendar">
      <QueryResult query={reports}>
        {({ question: { now, before }, ...data }) => (
          <DaysChart
            rows={compareDays(now, data.now.groups, before, data.before.groups).reverse()}
            isCompared={before !== undefined}
          />
        )}
      </QueryResult>
    </Card>
  )
}

function DaysChart({ rows, isCompared }: { rows: ReturnType<typeof compareDays>; isCompared: boolean }) {
  const times = useMemo(() => rows.map(({ name }) => `${name}T00:00:00Z`), [rows])
  const lines = useMemo(
    () => [
      {
        label: 'This period',
        values: rows.map(({ nowMicro }) => Number(nowMicro) / 1e6),
        colour: 'accent' as const,
        unit: 'USDC',
        bars: true,
        format: formatUsdc,
      },
      ...(isCompared
        ? [
            {
              label: 'Compared with',
              values: rows.map(({ beforeMicro }) => Number(beforeMicro) / 1e6),
              colour: 'second' as const,
              unit: 'USDC',
              format: formatUsdc,
            },
          ]
        : []),
    ],
    [rows, isCompared],
  )
  return (
    <>
      <Chart label="Spend day by day" times={times} lines={lines} isByDay />
      <MutedText>Choose “day” under “Group by” for the same figures as a table.</MutedText>
    </>
  )
}
