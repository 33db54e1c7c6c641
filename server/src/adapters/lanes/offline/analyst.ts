import { type Brief, extractTopic } from './brief.ts'
import type { Report, Section } from './report.ts'
import { correlation, findOutliers, fitTrend, proportionZScore, quantile, summarise } from './statistics.ts'
import { describeSum, readSum } from './sums.ts'
import { type Column, findFigures, readTable, type Table } from './tables.ts'
import { clip, formatCount, formatNumber, formatPercent, round } from './text.ts'

const METHOD = 'Offline analyst: arithmetic over the numbers in your task, no language model, no outside data.'
const MAX_SERIES = 8

/** Statistics, trends, outliers, groups and correlations of the numbers in the task. */
export function analyseData(brief: Brief): Report {
  const calculation = reportSum(brief, 'analyst')
  if (calculation) return calculation
  const table = readTable(brief)
  if (!table) return findFigures(brief.task).length >= 2 ? reportScatteredFigures(brief) : reportNoData(brief)
  const series = table.columns.filter((column) => column.values.length >= 2 && !isAxis(column)).slice(0, MAX_SERIES)
  const measuredColumns =
    series.length > 0 ? series : table.columns.filter((column) => column.values.length > 0).slice(0, 1)
  const label = table.columns.find((column) => column.labels.length > 0)
  const isTimeSeries = !label || hasTimeLabels(label)
  const findings = [
    ...describeChanges(table, label),
    ...measuredColumns.flatMap((column) =>
      isTimeSeries ? describeSeries(column, label) : describeRanking(column, label),
    ),
  ]
  return {
    lane: 'analyst',
    title: clip(`Analysis of ${table.rows} rows (${table.source}): ${extractTopic(brief)}`, 140),
    summary: `${describeHeadline(measuredColumns[0]!, isTimeSeries)}${describeChanges(table, label)[0] ? ` ${describeChanges(table, label)[0]}` : ''}`,
    sections: [
      { heading: 'Statistics', table: buildStatisticsTable(measuredColumns) },
      { heading: 'Findings', lines: findings },
      ...buildGroupSections(table, measuredColumns),
      ...buildPercentileSections(brief, measuredColumns),
      ...buildCorrelationSections(measuredColumns),
      { heading: 'Units and rounding', lines: describeUnits(brief, measuredColumns) },
      { heading: 'Reading notes', lines: describeReading(table, measuredColumns, isTimeSeries) },
    ],
    method: METHOD,
  }
}

const UNITS =
  /[$€£%]|\b(?:usdc?|eur|gbp|dollars|euros|pounds|percent|kg|g|lbs?|tonnes?|km|cm|mm|miles|metres|meters|seconds?|minutes?|hours?|days?|weeks?|ms|mb|gb|tb|litres?|units|pieces|points|degrees|°c|°f|kwh|mph|km\/h)\b/i

/** Which unit each series is in, by its name or by the numbers in the task, and how the figures are rounded. */
function describeUnits(brief: Brief, columns: readonly Column[]): string[] {
  const units = columns.map((column) => ({ column, unit: unitOf(column.name) }))
  const unnamed = units.filter(({ unit }) => unit === undefined)
  const taskUnit = unnamed.length > 0 ? findTaskUnit(brief.task.slice(0, 8_000)) : undefined
  return [
    ...units.flatMap(({ column, unit }) => (unit ? [`${formatName(column)} is in ${unit}.`] : [])),
    ...(unnamed.length === 0
      ? []
      : [
          taskUnit
            ? `${unnamed.map(({ column }) => formatName(column)).join(', ')}: in ${taskUnit}, as the task writes it.`
            : `No unit is given for ${unnamed.map(({ column }) => formatName(column).toLowerCase()).join(', ')}: its figures are in the unit of your data.`,
        ]),
    'Sums of whole numbers are exact; means, deviations and shares are rounded, to two decimals from a thousand on, to three from one on and to four below.',
  ]
}

const unitOf = (name: string) =>
  /\(([^()]{1,12})\)/.exec(name)?.[1] ??
  /(?:_|\b)(usd|eur|gbp|pct|percent|kg|km|ms|seconds|minutes|hours|days)$/i.exec(name)?.[1]

/** The unit that stands at a number of the task. */
const findTaskUnit = (text: string) =>
  UNITS.exec((text.match(/[$€£]\s?\d|\d\s?(?:%|\p{L}{1,8}(?:\/h)?)/gu) ?? []).slice(0, 40).join(' '))?.[0]

/** Row numbers, years and months are positions, not measurements. */
function isAxis(column: Column): boolean {
  const isWhole = column.values.every((value) => Number.isInteger(value) && value >= 0 && value < 3000)
  return isWhole && /^(?:id|#|no|nr|row|index|year|quarter|month|week|day|hour|period)$/i.test(column.name.trim())
}

const PERIOD =
  /^(?:(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}\b|(?:mon|tue|wed|thu|fri|sat|sun)[a-z]{0,6}$|[qh][1-4]\b|(?:fy|week|wk|month|day|year|quarter|sprint) ?\d|(?:19|20)\d\d\b|\d{1,4}[-/.]\d{1,2}|before$|after$|(?:last|this|next|previous|current) )/i

/** Whether the row labels are periods. Only rows in time order have a trend. */
function hasTimeLabels(label: Column): boolean {
  const filledLabels = label.labels.filter(Boolean)
  return (
    filledLabels.length > 0 &&
    filledLabels.filter((text) => PERIOD.test(text.trim())).length >= filledLabels.length * 0.8
  )
}

/** When the columns are periods: the change of each row from the first to the last period. */
function describeChanges(table: Table, label: Column | undefined): string[] {
  const periods = table.columns.filter(
    (column) => column.values.length === table.rows && PERIOD.test(column.name.trim()),
  )
  if (!label || label.labels.length !== table.rows || hasTimeLabels(label) || periods.length < 2) return []
  const [firstPeriod, lastPeriod] = [periods[0]!, periods.at(-1)!]
  const moves = label.labels
    .map((name, i) => ({ name, before: firstPeriod.values[i]!, after: lastPeriod.values[i]! }))
    .sort((a, b) => b.after - b.before - (a.after - a.before))
  const total = moves.reduce((sum, { before, after }) => sum + after - before, 0)
  const describeMove = ({ name, before, after }: (typeof moves)[number]) => {
    const share = before === 0 ? '' : `, ${formatPercent((after - before) / Math.abs(before))}`
    return `${clip(name, 40)} ${formatSigned(after - before)}${share}`
  }
  return [
    `From ${clip(firstPeriod.name, 30)} to ${clip(lastPeriod.name, 30)} the total moved by ${formatSigned(total)}: ${moves.slice(0, 8).map(describeMove).join('; ')}.`,
  ]
}

const formatSigned = (value: number) => `${value > 0 ? '+' : ''}${formatNumber(round(value, 4))}`

function describeHeadline(column: Column, isTimeSeries: boolean): string {
  const summary = summarise(column.values)
  const trend = isTimeSeries ? fitTrend(column.values) : undefined
  const movement = trend?.significant
    ? ` The series is ${trend.direction} by about ${formatNumber(Math.abs(trend.slope))} a step.`
    : trend
      ? ' No trend stands out from the scatter.'
      : ''
  return `${formatName(column)} has ${summary.count} values from ${formatNumber(summary.min)} to ${formatNumber(summary.max)}, mean ${formatNumber(summary.mean)}, median ${formatNumber(summary.median)}.${movement}`
}

const formatName = (column: Column) => (column.name === 'value' ? 'The data' : `“${clip(column.name, 40)}”`)

function buildStatisticsTable(columns: readonly Column[]): NonNullable<Section['table']> {
  return {
    columns: ['series', 'n', 'sum', 'mean', 'median', 'std dev', 'min', 'max', 'Q1', 'Q3'],
    rows: columns.map((column) => {
      const summary = summarise(column.values)
      const figures = [
        summary.count,
        summary.sum,
        summary.mean,
        summary.median,
        summary.standardDeviation,
        summary.min,
        summary.max,
        summary.lowerQuartile,
        summary.upperQuartile,
      ]
      return [clip(column.name, 40), ...figures.map(formatNumber)]
    }),
  }
}

/** The label of a value's row. With empty cells, the row differs from the position of the value. */
function labelAt(column: Column, label: Column | undefined, position: number): string {
  const row = column.rows?.[position] ?? position
  return clip(label?.labels[row] || `position ${row + 1}`, 40)
}

function describeSeries(column: Column, label: Column | undefined): string[] {
  const { values } = column
  const formatPosition = (position: number) => ` (${labelAt(column, label, position)})`
  const lines: string[] = []
  const trend = fitTrend(values)
  if (trend) {
    lines.push(
      `${formatName(column)}: ${trend.direction} trend, slope ${formatNumber(trend.slope)} a step, explaining ${formatPercent(trend.rSquared)} of the movement; ${
        trend.significant ? 'more than chance at 95 % confidence.' : 'chance alone could have made it.'
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
    const largestStep = steps.reduce((best, step, index) => (Math.abs(step) > Math.abs(steps[best]!) ? index : best), 0)
    lines.push(
      `Largest single move: ${formatNumber(steps[largestStep]!)} into ${formatNumber(values[largestStep + 1]!)}${formatPosition(largestStep + 1)}.`,
    )
  }
  lines.push(describeOutliers(values, formatPosition))
  return lines
}

/** Rows without an order in time are ranked; no trend is computed. */
function describeRanking(column: Column, label: Column | undefined): string[] {
  const { values } = column
  const nameAt = (position: number) => labelAt(column, label, position)
  const order = values.map((_, i) => i).sort((a, b) => values[b]! - values[a]! || a - b)
  const [topIndex, bottomIndex] = [order[0]!, order.at(-1)!]
  const total = values.reduce((sum, value) => sum + value, 0)
  const share =
    values.every((value) => value >= 0) && total > 0 ? `, ${formatPercent(values[topIndex]! / total)} of the sum` : ''
  return [
    `${formatName(column)}: highest ${formatNumber(values[topIndex]!)} (${nameAt(topIndex)}${share}), lowest ${formatNumber(values[bottomIndex]!)} (${nameAt(bottomIndex)}).`,
    describeOutliers(values, (position) => ` (${nameAt(position)})`),
  ]
}

function describeOutliers(values: readonly number[], formatPosition: (position: number) => string): string {
  const outliers = findOutliers(values)
  return outliers.length > 0
    ? `Outliers: ${outliers
        .slice(0, 8)
        .map((position) => `${formatNumber(values[position]!)}${formatPosition(position)}`)
        .join(', ')}. Without them the mean is ${formatNumber(meanWithout(values, outliers))}.`
    : values.length >= 5
      ? 'No outliers: every value lies within 3.5 robust deviations of the median.'
      : 'Too few values to call any of them an outlier.'
}

function meanWithout(values: readonly number[], positions: readonly number[]): number {
  const left = new Set(positions)
  const remaining = values.filter((_, i) => !left.has(i))
  return remaining.reduce((total, value) => total + value, 0) / remaining.length
}

/** Sums by category, when a label column has repeated values. */
function buildGroupSections(table: Table, series: readonly Column[]): Section[] {
  const label = table.columns.find((column) => {
    const distinctLabels = new Set(column.labels.filter(Boolean))
    return (
      column.labels.length === table.rows &&
      distinctLabels.size >= 2 &&
      distinctLabels.size <= 12 &&
      distinctLabels.size < table.rows
    )
  })
  const measure = series.find((column) => column.values.length === table.rows)
  if (!label || !measure) return []
  const groups = new Map<string, { sum: number; count: number }>()
  label.labels.forEach((name, i) => {
    const group = groups.get(name) ?? { sum: 0, count: 0 }
    groups.set(name, { sum: group.sum + measure.values[i]!, count: group.count + 1 })
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

/** The percentiles the task asks for, like "p95" or "the 90th percentile". */
function buildPercentileSections(brief: Brief, series: readonly Column[]): Section[] {
  const percentiles = [...brief.task.slice(0, 2000).matchAll(/\bp(\d{2})\b|\b(\d{1,2})(?:st|nd|rd|th)[ -]percentile/gi)]
    .map((match) => Number(match[1] ?? match[2]))
    .slice(0, 5)
  const lines = series.flatMap((column) => {
    const sorted = [...column.values].sort((a, b) => a - b)
    return [...new Set(percentiles)].map(
      (share) => `${formatName(column)}: p${share} is ${formatNumber(quantile(sorted, share / 100))}.`,
    )
  })
  return lines.length > 0
    ? [{ heading: 'Percentiles', lines: [...lines, 'Between two values the percentile is interpolated.'] }]
    : []
}

function buildCorrelationSections(series: readonly Column[]): Section[] {
  const lines: string[] = []
  for (const [i, left] of series.entries()) {
    for (const right of series.slice(i + 1)) {
      const [leftValues, rightValues] = pairValues(left, right)
      const coefficient = leftValues.length === rightValues.length ? correlation(leftValues, rightValues) : undefined
      if (coefficient === undefined) continue
      const strength = Math.abs(coefficient) >= 0.8 ? 'strong' : Math.abs(coefficient) >= 0.5 ? 'moderate' : 'weak'
      lines.push(
        `${clip(left.name, 40)} and ${clip(right.name, 40)}: r = ${formatNumber(coefficient)} (${strength}). Correlation is not cause.`,
      )
    }
  }
  return lines.length > 0 ? [{ heading: 'Correlations', lines: lines.slice(0, 10) }] : []
}

/** The values of the rows in which both columns have one. */
function pairValues(left: Column, right: Column): [readonly number[], readonly number[]] {
  if (!left.rows && !right.rows) return [left.values, right.values]
  const byRow = (column: Column) => new Map(column.values.map((value, i) => [column.rows?.[i] ?? i, value]))
  const rightByRow = byRow(right)
  const shared = [...byRow(left)].filter(([row]) => rightByRow.has(row))
  return [shared.map(([, value]) => value), shared.map(([row]) => rightByRow.get(row)!)]
}

function describeReading(table: Table, series: readonly Column[], isTimeSeries: boolean): string[] {
  const hasFewValues = series.some((column) => column.values.length < 8)
  return [
    `Read as ${table.source}: ${table.rows} rows, ${table.columns.length} ${table.columns.length === 1 ? 'column' : 'columns'}.`,
    ...(table.skipped > 0 ? [`${formatCount(table.skipped, 'cell')} without a number left out.`] : []),
    ...(hasFewValues && isTimeSeries ? ['Fewer than 8 values in a series: treat the trend as a hint.'] : []),
    ...(isTimeSeries ? [] : ['The rows have no order in time, so no trend was drawn through them.']),
  ]
}

/** A task that is a calculation has one answer. */
export function reportSum(brief: Brief, lane: string): Report | undefined {
  const sum = readSum(brief.task)
  if (!sum) return undefined
  const { answer, rounding } = describeSum(sum)
  return {
    lane,
    title: 'Calculation',
    summary: answer,
    sections: [{ heading: 'Units and rounding', lines: [rounding, 'The task names no unit beside the numbers.'] }],
    method: METHOD,
  }
}

/** For numbers in sentences, which are not a series: lists them with their context and computes stated changes. */
function reportScatteredFigures(brief: Brief): Report {
  const text = brief.task.replace(/\s+/g, ' ')
  const figures = findFigures(text)
  const changes = [...text.matchAll(/\bfrom ([$€£]?\d[\d.,]{0,15}\s?%?) to ([$€£]?\d[\d.,]{0,15}\s?%?)/gi)].flatMap(
    (match) => {
      const [before, after] = [findFigures(match[1]!)[0], findFigures(match[2]!)[0]]
      return before && after
        ? [{ before, after, arePercentages: before.text.endsWith('%') && after.text.endsWith('%') }]
        : []
    },
  )
  const parts = [
    ...text.matchAll(/(\d{1,6}(?:\.\d{1,6})?)\s?(?:%|percent) of ([$€£]?\d[\d,]{0,15}(?:\.\d{1,6})?)/gi),
  ].flatMap((match) => {
    const whole = findFigures(match[2]!)[0]
    return whole
      ? [`${match[1]}% of ${whole.text} is ${formatNumber(round((Number(match[1]) / 100) * whole.value, 6))}.`]
      : []
  })
  const moves = changes.map(({ before, after, arePercentages }) => {
    const difference = `${formatSigned(after.value - before.value)}${arePercentages ? ' percentage points' : ''}`
    const relative =
      before.value === 0
        ? ''
        : `, ${formatPercent((after.value - before.value) / Math.abs(before.value))} of where it began`
    return `${before.text} → ${after.text}: ${difference}${relative}.`
  })
  const lines = [...moves, ...parts]
  return {
    lane: 'analyst',
    title: clip(`Figures in the text: ${extractTopic(brief)}`, 140),
    summary: lines[0] ?? `The text holds ${figures.length} figures of different things; no series was made of them.`,
    sections: [
      { heading: 'Worked out', lines },
      { heading: 'Is it more than chance?', lines: changes.flatMap((change) => describeSignificance(change, figures)) },
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

/** For two percentages and one sample size: whether the difference is significant. */
function describeSignificance(
  { before, after, arePercentages }: { before: { value: number }; after: { value: number }; arePercentages: boolean },
  figures: readonly { text: string; value: number }[],
): string[] {
  const counts = figures.filter(
    ({ text, value }) => /^[\d,]+$/.test(text) && value >= 30 && !(value > 1900 && value < 2100),
  )
  if (!arePercentages || counts.length !== 1) return []
  const zScore = proportionZScore(before.value / 100, after.value / 100, counts[0]!.value)
  if (zScore === undefined) return []
  const verdict = Math.abs(zScore) > 1.96 ? 'more than chance' : 'possibly chance'
  return [
    `If each share was measured over ${counts[0]!.text}, the difference is ${formatNumber(round(Math.abs(zScore), 2))} standard errors; 1.96 is the bar at 95 % confidence, so it is ${verdict}.`,
    'A difference that is more than chance still need not come from what changed in between.',
  ]
}

function reportNoData(brief: Brief): Report {
  return {
    lane: 'analyst',
    title: clip(`No data to analyse: ${extractTopic(brief)}`, 120),
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
