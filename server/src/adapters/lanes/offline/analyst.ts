import { type Brief, topicOf } from './brief.ts'
import type { Report, Section } from './report.ts'
import { correlation, outliersOf, quantile, sharesApart, summarise, trendOf } from './statistics.ts'
import { type Column, figuresIn, readTable, type Table } from './tables.ts'
import { clip, counted, formatNumber, formatPercent, round } from './text.ts'

const METHOD = 'Offline analyst: arithmetic over the numbers in your task, no language model, no outside data.'
const MAX_SERIES = 8

/** Statistics, trends, outliers, groups and correlations of the numbers in the task. */
export function analyse(brief: Brief): Report {
  const table = readTable(brief)
  if (!table) return figuresIn(brief.task).length >= 2 ? strewnFigures(brief) : nothingToMeasure(brief)
  const series = table.columns.filter((column) => column.values.length >= 2 && !isAxis(column)).slice(0, MAX_SERIES)
  const measured = series.length > 0 ? series : table.columns.filter((column) => column.values.length > 0).slice(0, 1)
  const label = table.columns.find((column) => column.labels.length > 0)
  const inTime = !label || isInTime(label)
  const findings = [
    ...changesOf(table, label),
    ...measured.flatMap((column) => (inTime ? findingsOf(column, label) : standingsOf(column, label))),
  ]
  return {
    lane: 'analyst',
    title: clip(`Analysis of ${table.rows} rows (${table.source}): ${topicOf(brief)}`, 140),
    summary: `${headline(measured[0]!, inTime)}${changesOf(table, label)[0] ? ` ${changesOf(table, label)[0]}` : ''}`,
    sections: [
      { heading: 'Statistics', table: statisticsTable(measured) },
      { heading: 'Findings', lines: findings },
      ...groupSections(table, measured),
      ...percentileSections(brief, measured),
      ...correlationSections(measured),
      { heading: 'Reading notes', lines: notes(table, measured, inTime) },
    ],
    method: METHOD,
  }
}

/** A row number, a year or a month is where a value stands, not a measurement. */
function isAxis(column: Column): boolean {
  const whole = column.values.every((value) => Number.isInteger(value) && value >= 0 && value < 3000)
  return whole && /^(?:id|#|no|nr|row|index|year|quarter|month|week|day|hour|period)$/i.test(column.name.trim())
}

const PERIOD =
  /^(?:(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}\b|(?:mon|tue|wed|thu|fri|sat|sun)[a-z]{0,6}$|[qh][1-4]\b|(?:fy|week|wk|month|day|year|quarter|sprint) ?\d|(?:19|20)\d\d\b|\d{1,4}[-/.]\d{1,2}|before$|after$|(?:last|this|next|previous|current) )/i

/** Rows that follow each other in time have a trend; regions, products and people do not. */
function isInTime(label: Column): boolean {
  const filled = label.labels.filter(Boolean)
  return filled.length > 0 && filled.filter((text) => PERIOD.test(text.trim())).length >= filled.length * 0.8
}

/** When columns are periods, what moved most from the first to the last is what people ask for. */
function changesOf(table: Table, label: Column | undefined): string[] {
  const periods = table.columns.filter(
    (column) => column.values.length === table.rows && PERIOD.test(column.name.trim()),
  )
  if (!label || label.labels.length !== table.rows || isInTime(label) || periods.length < 2) return []
  const [from, to] = [periods[0]!, periods.at(-1)!]
  const moves = label.labels
    .map((name, at) => ({ name, before: from.values[at]!, after: to.values[at]! }))
    .sort((a, b) => b.after - b.before - (a.after - a.before))
  const total = moves.reduce((sum, { before, after }) => sum + after - before, 0)
  const told = ({ name, before, after }: (typeof moves)[number]) => {
    const share = before === 0 ? '' : `, ${formatPercent((after - before) / Math.abs(before))}`
    return `${clip(name, 40)} ${signed(after - before)}${share}`
  }
  return [
    `From ${clip(from.name, 30)} to ${clip(to.name, 30)} the total moved by ${signed(total)}: ${moves.slice(0, 8).map(told).join('; ')}.`,
  ]
}

const signed = (value: number) => `${value > 0 ? '+' : ''}${formatNumber(round(value, 4))}`

function headline(column: Column, inTime: boolean): string {
  const summary = summarise(column.values)
  const trend = inTime ? trendOf(column.values) : undefined
  const movement = trend?.clear
    ? ` The series is ${trend.direction} by about ${formatNumber(Math.abs(trend.slope))} a step.`
    : trend
      ? ' No trend stands out from the scatter.'
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

/** The label of the row that a value stands in: where cells are empty, that is not the value's own place. */
function labelAt(column: Column, label: Column | undefined, position: number): string {
  const row = column.rows?.[position] ?? position
  return clip(label?.labels[row] || `position ${row + 1}`, 40)
}

function findingsOf(column: Column, label: Column | undefined): string[] {
  const { values } = column
  const at = (position: number) => ` (${labelAt(column, label, position)})`
  const lines: string[] = []
  const trend = trendOf(values)
  if (trend) {
    lines.push(
      `${named(column)}: ${trend.direction} trend, slope ${formatNumber(trend.slope)} a step, explaining ${formatPercent(trend.fit)} of the movement; ${
        trend.clear ? 'more than chance at 95 % confidence.' : 'chance alone could have made it.'
      }`,
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
  lines.push(outlierLine(values, at))
  return lines
}

/** Rows without an order are compared with each other, not followed. */
function standingsOf(column: Column, label: Column | undefined): string[] {
  const { values } = column
  const nameAt = (position: number) => labelAt(column, label, position)
  const order = values.map((_, at) => at).sort((a, b) => values[b]! - values[a]! || a - b)
  const [top, bottom] = [order[0]!, order.at(-1)!]
  const total = values.reduce((sum, value) => sum + value, 0)
  const share =
    values.every((value) => value >= 0) && total > 0 ? `, ${formatPercent(values[top]! / total)} of the sum` : ''
  return [
    `${named(column)}: highest ${formatNumber(values[top]!)} (${nameAt(top)}${share}), lowest ${formatNumber(values[bottom]!)} (${nameAt(bottom)}).`,
    outlierLine(values, (position) => ` (${nameAt(position)})`),
  ]
}

function outlierLine(values: readonly number[], at: (position: number) => string): string {
  const outliers = outliersOf(values)
  return outliers.length > 0
    ? `Outliers: ${outliers
        .slice(0, 8)
        .map((position) => `${formatNumber(values[position]!)}${at(position)}`)
        .join(', ')}. Without them the mean is ${formatNumber(meanWithout(values, outliers))}.`
    : values.length >= 5
      ? 'No outliers: every value lies within 3.5 robust deviations of the median.'
      : 'Too few values to call any of them an outlier.'
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

/** "p95" or "the 90th percentile", when it was asked for. */
function percentileSections(brief: Brief, series: readonly Column[]): Section[] {
  const asked = [...brief.task.slice(0, 2000).matchAll(/\bp(\d{2})\b|\b(\d{1,2})(?:st|nd|rd|th)[ -]percentile/gi)]
    .map((match) => Number(match[1] ?? match[2]))
    .slice(0, 5)
  const lines = series.flatMap((column) => {
    const sorted = [...column.values].sort((a, b) => a - b)
    return [...new Set(asked)].map(
      (share) => `${named(column)}: p${share} is ${formatNumber(quantile(sorted, share / 100))}.`,
    )
  })
  return lines.length > 0
    ? [{ heading: 'Percentiles', lines: [...lines, 'Between two values the percentile is interpolated.'] }]
    : []
}

function correlationSections(series: readonly Column[]): Section[] {
  const lines: string[] = []
  for (const [at, left] of series.entries()) {
    for (const right of series.slice(at + 1)) {
      const [one, other] = paired(left, right)
      const r = one.length === other.length ? correlation(one, other) : undefined
      if (r === undefined) continue
      const strength = Math.abs(r) >= 0.8 ? 'strong' : Math.abs(r) >= 0.5 ? 'moderate' : 'weak'
      lines.push(
        `${clip(left.name, 40)} and ${clip(right.name, 40)}: r = ${formatNumber(r)} (${strength}). Correlation is not cause.`,
      )
    }
  }
  return lines.length > 0 ? [{ heading: 'Correlations', lines: lines.slice(0, 10) }] : []
}

/** The values of the rows in which both have one. */
function paired(left: Column, right: Column): [readonly number[], readonly number[]] {
  if (!left.rows && !right.rows) return [left.values, right.values]
  const byRow = (column: Column) => new Map(column.values.map((value, at) => [column.rows?.[at] ?? at, value]))
  const others = byRow(right)
  const both = [...byRow(left)].filter(([row]) => others.has(row))
  return [both.map(([, value]) => value), both.map(([row]) => others.get(row)!)]
}

function notes(table: Table, series: readonly Column[], inTime: boolean): string[] {
  const small = series.some((column) => column.values.length < 8)
  return [
    `Read as ${table.source}: ${table.rows} rows, ${table.columns.length} ${table.columns.length === 1 ? 'column' : 'columns'}.`,
    ...(table.skipped > 0 ? [`${counted(table.skipped, 'cell')} without a number left out.`] : []),
    ...(small && inTime ? ['Fewer than 8 values in a series: treat the trend as a hint.'] : []),
    ...(inTime ? [] : ['The rows have no order in time, so no trend was drawn through them.']),
  ]
}

/** Numbers in sentences are not a series: they are listed with what they belong to, and changes are worked out. */
function strewnFigures(brief: Brief): Report {
  const text = brief.task.replace(/\s+/g, ' ')
  const figures = figuresIn(text)
  const changes = [...text.matchAll(/\bfrom ([$€£]?\d[\d.,]{0,15}\s?%?) to ([$€£]?\d[\d.,]{0,15}\s?%?)/gi)].flatMap(
    (match) => {
      const [before, after] = [figuresIn(match[1]!)[0], figuresIn(match[2]!)[0]]
      return before && after ? [{ before, after, shares: before.text.endsWith('%') && after.text.endsWith('%') }] : []
    },
  )
  const parts = [
    ...text.matchAll(/(\d{1,6}(?:\.\d{1,6})?)\s?(?:%|percent) of ([$€£]?\d[\d,]{0,15}(?:\.\d{1,6})?)/gi),
  ].flatMap((match) => {
    const whole = figuresIn(match[2]!)[0]
    return whole
      ? [`${match[1]}% of ${whole.text} is ${formatNumber(round((Number(match[1]) / 100) * whole.value, 6))}.`]
      : []
  })
  const moves = changes.map(({ before, after, shares }) => {
    const by = `${signed(after.value - before.value)}${shares ? ' percentage points' : ''}`
    const relative =
      before.value === 0
        ? ''
        : `, ${formatPercent((after.value - before.value) / Math.abs(before.value))} of where it began`
    return `${before.text} → ${after.text}: ${by}${relative}.`
  })
  const lines = [...moves, ...parts]
  return {
    lane: 'analyst',
    title: clip(`Figures in the text: ${topicOf(brief)}`, 140),
    summary: lines[0] ?? `The text holds ${figures.length} figures of different things; no series was made of them.`,
    sections: [
      { heading: 'Worked out', lines },
      { heading: 'Is it more than chance?', lines: changes.flatMap((change) => chanceLines(change, figures)) },
      {
        heading: 'Figures and where they stand',
        lines: figures.slice(0, 15).map(({ text: figure, start, end }) => {
          const before = text.slice(Math.max(0, start - 30), start).replace(/^\S* /, '')
          return `${figure}: …${before}${text.slice(start, end)}${text.slice(end, end + 30).replace(/ \S*$/, '')}…`
        }),
      },
      {
        heading: 'For more',
        lines: [
          'List the values one after the other, or send a table: then mean, trend and outliers can be worked out.',
        ],
      },
    ],
    method: METHOD,
  }
}

/** Two shares and one head count: whether the difference could be luck. */
function chanceLines(
  { before, after, shares }: { before: { value: number }; after: { value: number }; shares: boolean },
  figures: readonly { text: string; value: number }[],
): string[] {
  const counts = figures.filter(
    ({ text, value }) => /^[\d,]+$/.test(text) && value >= 30 && !(value > 1900 && value < 2100),
  )
  if (!shares || counts.length !== 1) return []
  const apart = sharesApart(before.value / 100, after.value / 100, counts[0]!.value)
  if (apart === undefined) return []
  const verdict = Math.abs(apart) > 1.96 ? 'more than chance' : 'possibly chance'
  return [
    `If each share was measured over ${counts[0]!.text}, the difference is ${formatNumber(round(Math.abs(apart), 2))} standard errors; 1.96 is the bar at 95 % confidence, so it is ${verdict}.`,
    'A difference that is more than chance still need not come from what changed in between.',
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
