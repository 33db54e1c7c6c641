import { type Brief, topicOf } from './brief.ts'
import type { Report, Section } from './report.ts'
import { correlation, outliersOf, summarise, trendOf } from './statistics.ts'
import { type Column, readTable, type Table } from './tables.ts'
import { clip, formatNumber, formatPercent } from './text.ts'

const METHOD = 'Offline analyst: arithmetic over the numbers in your task, no language model, no outside data.'
const MAX_SERIES = 8

/** Statistics, trends, outliers, groups and correlations of the numbers in the task. */
export function analyse(brief: Brief): Report {
  const table = readTable(brief)
  if (!table) return nothingToMeasure(brief)
  const series = table.columns.filter((column) => column.values.length >= 2 && !isAxis(column)).slice(0, MAX_SERIES)
  const measured = series.length > 0 ? series : table.columns.filter((column) => column.values.length > 0).slice(0, 1)
  const label = table.columns.find((column) => column.labels.length > 0)
  const findings = measured.flatMap((column) => findingsOf(column, label))
  return {
    lane: 'analyst',
    title: clip(`Analysis of ${table.rows} rows (${table.source}): ${topicOf(brief)}`, 140),
    summary: headline(measured[0]!),
    sections: [
      { heading: 'Statistics', table: statisticsTable(measured) },
      { heading: 'Findings', lines: findings },
      ...groupSections(table, measured),
      ...correlationSections(measured),
      { heading: 'Reading notes', lines: notes(table, measured) },
    ],
    method: METHOD,
  }
}

/** A row number, a year or a month is where a value stands, not a measurement. */
function isAxis(column: Column): boolean {
  const whole = column.values.every((value) => Number.isInteger(value) && value >= 0 && value < 3000)
  return whole && /^(?:id|#|no|nr|row|index|year|quarter|month|week|day|hour|period)$/i.test(column.name.trim())
}

function headline(column: Column): string {
  const summary = summarise(column.values)
  const trend = trendOf(column.values)
  const movement = trend
    ? ` The series is ${trend.direction}${trend.direction === 'flat' ? '' : ` by about ${formatNumber(Math.abs(trend.slope))} a step`}.`
    : ''
  return `${named(column)} has ${summary.count} values from ${formatNumber(summary.min)} to ${formatNumber(summary.max)}, mean ${formatNumber(summary.mean)}, median ${formatNumber(summary.median)}.${movement}`
}

const named = (column: Column) => (column.name === 'value' ? 'The data' : `“${clip(column.name, 40)}”`)

function statisticsTable(columns: readonly Column[]): NonNullable<Section['table']> {
  return {
    columns: ['series', 'n', 'sum', 'mean', 'median', 'std dev', 'min', 'max', 'Q1', 'Q3'],
    rows: columns.map((column) => {
      const s = summarise(column.values)
      const figures = [s.count, s.sum, s.mean, s.median, s.deviation, s.min, s.max, s.lowerQuartile, s.upperQuartile]
      return [clip(column.name, 40), ...figures.map(formatNumber)]
    }),
  }
}

function findingsOf(column: Column, label: Column | undefined): string[] {
  const { values } = column
  const at = (position: number) =>
    label?.labels[position] ? ` (${clip(label.labels[position]!, 40)})` : ` (position ${position + 1})`
  const lines: string[] = []
  const trend = trendOf(values)
  if (trend) {
    lines.push(
      `${named(column)}: ${trend.direction} trend, slope ${formatNumber(trend.slope)} a step, explaining ${formatPercent(trend.fit)} of the movement.`,
    )
  }
  const first = values[0]!
  const last = values.at(-1)!
  if (values.length >= 2 && first !== 0) {
    lines.push(
      `From first to last: ${formatNumber(first)} → ${formatNumber(last)}, a change of ${formatPercent((last - first) / Math.abs(first))}.`,
    )
  }
  const steps = values.slice(1).map((value, index) => value - values[index]!)
  if (steps.length >= 2) {
    const biggest = steps.reduce((best, step, index) => (Math.abs(step) > Math.abs(steps[best]!) ? index : best), 0)
    lines.push(
      `Largest single move: ${formatNumber(steps[biggest]!)} into ${formatNumber(values[biggest + 1]!)}${at(biggest + 1)}.`,
    )
  }
  const outliers = outliersOf(values)
  lines.push(
    outliers.length > 0
      ? `Outliers: ${outliers
          .slice(0, 8)
          .map((position) => `${formatNumber(values[position]!)}${at(position)}`)
          .join(', ')}. Without them the mean is ${formatNumber(meanWithout(values, outliers))}.`
      : values.length >= 5
        ? 'No outliers: every value lies within 3.5 robust deviations of the median.'
        : 'Too few values to call any of them an outlier.',
  )
  return lines
}

function meanWithout(values: readonly number[], positions: readonly number[]): number {
  const kept = values.filter((_, at) => !positions.includes(at))
  return kept.reduce((total, value) => total + value, 0) / kept.length
}

/** Sums by category, when a label column repeats its values. */
function groupSections(table: Table, series: readonly Column[]): Section[] {
  const label = table.columns.find((column) => {
    const kinds = new Set(column.labels.filter(Boolean))
    return column.labels.length === table.rows && kinds.size >= 2 && kinds.size <= 12 && kinds.size < table.rows
  })
  const measure = series.find((column) => column.values.length === table.rows)
  if (!label || !measure) return []
  const groups = new Map<string, { sum: number; count: number }>()
  label.labels.forEach((name, at) => {
    const group = groups.get(name) ?? { sum: 0, count: 0 }
    groups.set(name, { sum: group.sum + measure.values[at]!, count: group.count + 1 })
  })
  const total = measure.values.reduce((sum, value) => sum + value, 0)
  const rows = [...groups]
    .sort((a, b) => b[1].sum - a[1].sum)
    .map(([name, group]) => [
      clip(name || '(empty)', 40),
      String(group.count),
      formatNumber(group.sum),
      formatNumber(group.sum / group.count),
      total > 0 ? formatPercent(group.sum / total) : 'n/a',
    ])
  return [
    {
      heading: `${measure.name} by ${label.name}`,
      table: { columns: [label.name, 'n', 'sum', 'mean', 'share'], rows },
    },
  ]
}

function correlationSections(series: readonly Column[]): Section[] {
  const lines: string[] = []
  for (const [at, left] of series.entries()) {
    for (const right of series.slice(at + 1)) {
      if (left.values.length !== right.values.length) continue
      const r = correlation(left.values, right.values)
      if (r === undefined) continue
      const strength = Math.abs(r) >= 0.8 ? 'strong' : Math.abs(r) >= 0.5 ? 'moderate' : 'weak'
      lines.push(
        `${clip(left.name, 40)} and ${clip(right.name, 40)}: r = ${formatNumber(r)} (${strength}). Correlation is not cause.`,
      )
    }
  }
  return lines.length > 0 ? [{ heading: 'Correlations', lines: lines.slice(0, 10) }] : []
}

function notes(table: Table, series: readonly Column[]): string[] {
  const small = series.some((column) => column.values.length < 8)
  return [
    `Read as ${table.source}: ${table.rows} rows, ${table.columns.length} ${table.columns.length === 1 ? 'column' : 'columns'}.`,
    ...(table.skipped > 0 ? [`${table.skipped} cells were empty or not numbers and were left out.`] : []),
    ...(small ? ['Fewer than 8 values in a series: treat the trend as a hint.'] : []),
  ]
}

function nothingToMeasure(brief: Brief): Report {
  return {
    lane: 'analyst',
    title: clip(`No data to analyse: ${topicOf(brief)}`, 120),
    summary: 'The task has no numbers, table or JSON that could be measured, so there is no figure to report.',
    sections: [
      {
        heading: 'What to send',
        lines: [
          'A CSV or a Markdown table with a header row, one record a line.',
          'A JSON array of numbers, or of records with numeric fields.',
          'Labelled numbers, for example Jan 120, Feb 131, Mar 128.',
        ],
      },
      {
        heading: 'What comes back',
        lines: [
          'Count, sum, mean, median, deviation and quartiles of every numeric column.',
          'Trend, largest move and outliers, with and without them.',
          'Sums by category and correlations between columns.',
        ],
      },
    ],
    method: METHOD,
  }
}
