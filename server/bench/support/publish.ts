/** Writes what was measured into docs/performance: the figures as JSON, the plots, and the tables of the page. */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Figure, growthOf, isMet, type Measurement, type NamedCost, type WriteFigures } from '../targets/figure.ts'
import { REPOSITORY } from './bench-service.ts'
import { plotBars, plotLines } from './plot.ts'
import { describeMachine, formatFigure } from './report.ts'

const PAGE = join(REPOSITORY, 'docs/performance.md')
const FOLDER = join(REPOSITORY, 'docs/performance')
const PARTS = ['wallet', 'budget', 'x402', 'reads', 'growth', 'memory', 'pgbench']
const FIGURES = join(FOLDER, 'figures.json')

/** A part keeps the machine, day and commit it was measured with, because parts may be measured on different days. */
export type PublishedPart = Measurement & { part: string; machine: string; commit: string; rounds: number }

/** Replaces the parts that were measured and keeps the others. */
export function publish(measured: { part: string; measurement: Measurement }[], rounds: number) {
  const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { cwd: REPOSITORY, encoding: 'utf8' }).trim()
  const earlier: PublishedPart[] = existsSync(FIGURES) ? JSON.parse(readFileSync(FIGURES, 'utf8')) : []
  const kept = earlier.filter(({ part }) => !measured.some((entry) => entry.part === part))
  const parts = [
    ...kept,
    ...measured.map(({ part, measurement }) => ({ part, machine: describeMachine(), commit, rounds, ...measurement })),
  ].toSorted((a, b) => PARTS.indexOf(a.part) - PARTS.indexOf(b.part))
  mkdirSync(FOLDER, { recursive: true })
  writeFileSync(FIGURES, `${JSON.stringify(parts, roundNumbers, 2)}\n`)
  for (const [name, svg] of Object.entries(drawPlots(parts))) writeFileSync(join(FOLDER, `${name}.svg`), svg)
  writePage(parts)
}

const roundNumbers = (_key: string, value: unknown) =>
  typeof value === 'number' ? Number(value.toPrecision(4)) : value

function drawPlots(parts: PublishedPart[]): Record<string, string> {
  const figures = parts.flatMap((part) => part.figures)
  const costs = parts.flatMap((part) => part.costs ?? [])
  const runCosts = costs.filter(({ name }) => !name.startsWith('GET ') && !name.startsWith('bare Fastify'))
  const writes = parts.flatMap((part) => part.writes ?? [])
  const series = parts.find(({ part }) => part === 'memory')?.series
  const growth = parts.flatMap((part) => part.growth ?? [])
  const withBar = figures.filter((figure) => figure.bar && figure.value > 0)
  return {
    ...(runCosts.length > 0 && { cpu: plotCpu(runCosts) }),
    ...(writes.length > 0 && { writes: plotWrites(writes) }),
    ...(withBar.length > 0 && { targets: plotTargets(withBar) }),
    ...(growth.length > 0 && {
      growth: plotBars(
        'Buffers touched with many runs against few',
        growth.map((row) => ({
          label: row.name,
          segments: [{ value: growthOf(row), colour: growthOf(row) > 1.3 ? 'b' : 'a' }],
          text: `${formatFigure(growthOf(row))}: ${formatFigure(row.many)} buffers`,
        })),
        { limit: 1.3, max: 2.5 },
      ),
    }),
    ...(series && {
      memory: plotLines(
        'Memory under a mixed load',
        [
          { colour: 'a', text: 'resident', points: series.resident! },
          { colour: 'b', text: 'JavaScript heap', points: series.heap! },
        ],
        { x: 'minutes', y: 'MB' },
      ),
    }),
  }
}

const plotCpu = (costs: NamedCost[]) =>
  plotBars(
    'CPU of a run, ms',
    costs.map(({ name, nodeMs, postgresMs }) => ({
      label: name,
      segments: [
        { value: nodeMs, colour: 'a' },
        { value: postgresMs, colour: 'b' },
      ],
      text: formatFigure(nodeMs + postgresMs),
    })),
    {
      legend: [
        { colour: 'a', text: 'Node' },
        { colour: 'b', text: 'PostgreSQL' },
      ],
    },
  )

const COUNTERS: { name: string; select: (writes: WriteFigures) => number }[] = [
  { name: 'rows inserted', select: ({ inserted }) => inserted },
  { name: 'rows updated', select: ({ updated }) => updated },
  { name: 'WAL records', select: ({ walRecords }) => walRecords },
  { name: 'WAL bytes', select: ({ walBytes }) => walBytes },
  { name: 'buffers', select: ({ buffers }) => buffers },
  { name: 'foreign-key checks', select: ({ foreignKeyChecks }) => foreignKeyChecks },
]

/** Each counter as a share of its largest value, so that rows and bytes fit into one plot. */
function plotWrites(writes: WriteFigures[]): string {
  const shown = writes.filter(({ name }) => name.includes('64 in flight'))
  return plotBars(
    'What PostgreSQL writes and touches for a wallet-paid run, 64 in flight',
    COUNTERS.flatMap(({ name, select }) => {
      const max = Math.max(...shown.map(select))
      return shown.map((row) => ({
        label: `${name}, ${row.name.split(',')[0]}`,
        segments: [{ value: select(row) / max, colour: row.name.startsWith('now') ? ('a' as const) : ('c' as const) }],
        text: formatFigure(select(row)),
      }))
    }),
  )
}

/** How far a figure is past its bar: more than 1 is better than asked for, whichever way the bar points. */
function plotTargets(figures: Figure[]): string {
  const margin = ({ value, bar }: Figure) => ('atLeast' in bar! ? value / bar.atLeast : bar!.atMost / value)
  return plotBars(
    'Targets: the dashed line is the bar, to the right of it is better',
    figures.map((figure) => ({
      label: figure.id,
      segments: [{ value: margin(figure), colour: isMet(figure) ? 'a' : 'b' }],
      text: formatFigure(figure.value),
    })),
    { limit: 1, max: 3 },
  )
}

function writePage(parts: PublishedPart[]) {
  const page = readFileSync(PAGE, 'utf8')
  const sections: Record<string, string> = {
    machine: parts
      .map(
        ({ part, machine, commit, rounds, costs }) =>
          `- ${part}: commit ${commit}, ${machine}${costs ? `, ${rounds} rounds` : ''}`,
      )
      .join('\n'),
    targets: table(
      ['Figure', 'Measured', 'Bar', '', 'Both sides'],
      parts.flatMap(({ figures }) =>
        figures
          .filter(({ bar }) => bar)
          .map((figure) => [
            figure.name,
            formatFigure(figure.value),
            describeBar(figure),
            verdict(figure),
            figure.detail,
          ]),
      ),
    ),
    costs: table(
      ['', 'a second', 'p50 ms', 'p99 ms', 'Node ms', 'PostgreSQL ms', 'load generator ms'],
      parts.flatMap(({ costs = [] }) =>
        costs.map(({ name, perSecond, p50Ms, p99Ms, nodeMs, postgresMs, clientMs }) => [
          name,
          ...[perSecond, p50Ms, p99Ms, nodeMs, postgresMs, clientMs].map(formatFigure),
        ]),
      ),
    ),
    writes: table(
      [
        'a run',
        'inserted',
        'updated',
        'of these HOT',
        'deleted',
        'WAL records',
        'WAL bytes',
        'bytes of full-page images',
        'buffers',
        'foreign-key checks',
      ],
      parts.flatMap(({ writes = [] }) =>
        writes.map((row) => [
          row.name,
          ...[
            row.inserted,
            row.updated,
            row.hot,
            row.deleted,
            row.walRecords,
            row.walBytes,
            row.fullPageBytes,
            row.buffers,
            row.foreignKeyChecks,
          ].map(formatFigure),
        ]),
      ),
    ),
    growth: withPlot(
      'growth',
      table(
        ['Buffers of a request', 'few runs', 'many runs', 'ratio'],
        parts.flatMap(({ growth = [] }) =>
          growth.map((row) => [row.name, ...[row.few, row.many, growthOf(row)].map(formatFigure)]),
        ),
      ),
    ),
    memory: withPlot('memory', parts.some(({ part }) => part === 'memory') ? '' : NOT_MEASURED),
    context: table(
      ['Figure', 'Measured', 'How'],
      parts.flatMap(({ figures }) =>
        figures.filter(({ bar }) => !bar).map(({ name, value, detail }) => [name, formatFigure(value), detail]),
      ),
    ),
    skipped:
      parts.flatMap(({ skipped }) => skipped.map((reason) => `- ${reason}`)).join('\n') || 'Nothing was left out.',
  }
  const written = page.replace(
    /(<!-- (\w+): .*? -->)[\s\S]*?(<!-- end -->)/g,
    (whole, begin: string, name: string, end: string) =>
      sections[name] === undefined ? whole : `${begin}\n\n${sections[name]}\n\n${end}`,
  )
  writeFileSync(PAGE, written)
}

const NOT_MEASURED = 'Not measured yet.'

const withPlot = (name: string, text: string) =>
  text === NOT_MEASURED ? text : `![${name}](performance/${name}.svg)\n\n${text}`.trim()

const table = (head: string[], rows: string[][]): string =>
  rows.length === 0
    ? NOT_MEASURED
    : [head, head.map(() => '---'), ...rows].map((row) => `| ${row.join(' | ')} |`).join('\n')

const describeBar = ({ bar }: Figure) => ('atLeast' in bar! ? `≥ ${bar.atLeast}` : `≤ ${bar!.atMost}`)
const verdict = (figure: Figure) => (isMet(figure) ? 'met' : '**not met**')
