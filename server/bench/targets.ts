/**
 * The targets of docs/performance.md, measured in one run: the sides of each comparison take turns, and the figures are
 * medians of the rounds.
 *
 * Run: npm run bench targets -- [--only=wallet,budget,x402,reads,pgbench,growth,memory] [--write]
 *   --write  also writes docs/performance/figures.json, the plots, and the tables of docs/performance.md
 * BENCH_ROUNDS (5), BENCH_SECONDS (3), BENCH_PAYMENTS (640), BENCH_TENANTS (1,000) and BENCH_MINUTES (2) set the size.
 * The growth part (BENCH_MANY runs, a million) and the memory part run only when they are named.
 */
import { publish } from './support/publish.ts'
import { describeMachine, formatFigure, formatTable } from './support/report.ts'
import { measureBudget } from './targets/budget.ts'
import { type Figure, growthOf, isMet, type Measurement } from './targets/figure.ts'
import { measureGrowth } from './targets/growth.ts'
import { measureMemory } from './targets/memory.ts'
import { measurePgbench } from './targets/pgbench.ts'
import { measureReads } from './targets/reads.ts'
import { measureWallet } from './targets/wallet.ts'
import { measureX402 } from './targets/x402.ts'

const rounds = Number(process.env.BENCH_ROUNDS ?? 5)
const seconds = Number(process.env.BENCH_SECONDS ?? 3)
const minutes = Number(process.env.BENCH_MINUTES ?? 2)
const many = Number(process.env.BENCH_MANY ?? 1_000_000)
const payments = Number(process.env.BENCH_PAYMENTS ?? 640)

const parts: Record<string, () => Promise<Measurement>> = {
  wallet: () => measureWallet({ rounds, seconds }),
  budget: () => measureBudget({ rounds, seconds }),
  x402: () => measureX402({ rounds, payments }),
  // A response takes microseconds, so that one round says little beside the noise of a shared machine.
  reads: () => measureReads({ rounds: 4 * rounds, seconds: Math.min(seconds, 1) }),
  pgbench: () => measurePgbench({ rounds: Math.min(rounds, 3), seconds: Math.ceil(seconds) }),
  growth: () => measureGrowth({ few: 10_000, many }),
  memory: () => measureMemory({ minutes }),
}
/** These take long and are run by name. */
const namedParts = ['growth', 'memory']

const only = process.argv
  .find((argument) => argument.startsWith('--only='))
  ?.slice('--only='.length)
  .split(',')
const names = only ?? Object.keys(parts).filter((name) => !namedParts.includes(name))
const unknownName = names.find((name) => !(name in parts))
if (unknownName !== undefined)
  throw new Error(`Unknown part '${unknownName}'. Parts: ${Object.keys(parts).join(', ')}.`)

console.log(`${describeMachine()}\n${rounds} rounds`)
const measured: { part: string; measurement: Measurement }[] = []
for (const name of names) {
  const startedAt = performance.now()
  const measurement = await parts[name]!()
  measured.push({ part: name, measurement })
  console.log(`\n-- ${name} (${Math.round((performance.now() - startedAt) / 1000)} s)`)
  printMeasurement(measurement)
}

function printMeasurement({ figures, costs = [], writes = [], growth = [], skipped }: Measurement) {
  if (costs.length > 0) {
    console.log(
      formatTable([
        ['', 'a second', 'p50 ms', 'p99 ms', 'Node ms', 'PostgreSQL ms', 'load generator ms'],
        ...costs.map(({ name, ...cost }) => [
          name,
          ...[cost.perSecond, cost.p50Ms, cost.p99Ms, cost.nodeMs, cost.postgresMs, cost.clientMs].map(formatFigure),
        ]),
      ]),
    )
  }
  if (writes.length > 0) {
    console.log(
      `\n${formatTable([
        [
          'a run',
          'inserted',
          'updated',
          'HOT',
          'deleted',
          'WAL records',
          'WAL bytes',
          'FPI bytes',
          'buffers',
          'FK checks',
        ],
        ...writes.map(({ name, ...row }) => [name, ...Object.values(row).map(formatFigure)]),
      ])}`,
    )
  }
  if (growth.length > 0) {
    console.log(
      formatTable([
        ['buffers', 'few runs', 'many runs', 'ratio'],
        ...growth.map((row) => [row.name, ...[row.few, row.many, growthOf(row)].map(formatFigure)]),
      ]),
    )
  }
  for (const figure of figures) console.log(`\n${describeFigure(figure)}\n  ${figure.detail}`)
  for (const reason of skipped) console.log(`\nSKIPPED ${reason}`)
}

function describeFigure(figure: Figure): string {
  const { name, value, bar } = figure
  if (!bar) return `${name}: ${formatFigure(value)}`
  const limit = 'atLeast' in bar ? `at least ${bar.atLeast}` : `at most ${bar.atMost}`
  return `${name}: ${formatFigure(value)} (${limit}: ${isMet(figure) ? 'met' : 'NOT MET'})`
}

if (process.argv.includes('--write')) publish(measured, rounds)
const figures = measured.flatMap(({ measurement }) => measurement.figures)
if (figures.some((figure) => isMet(figure) === false)) process.exitCode = 1
