/**
 * The targets of docs/performance.md, measured in one run: the sides of each comparison take turns, and the figures are
 * medians of the rounds.
 *
 * Run: npm run bench targets -- [--only=wallet,x402,reads,pgbench,memory] [--write]
 *   --write  also writes docs/performance/figures.json, the plots, and the tables of docs/performance.md
 * BENCH_ROUNDS (5), BENCH_SECONDS (3), BENCH_PAYMENTS (640), BENCH_TENANTS (1,000) and BENCH_MINUTES (2) set the size.
 * The memory part runs only when it is named.
 */
import { publish } from './support/publish.ts'
import { describeMachine, formatFigure, formatTable } from './support/report.ts'
import { type Figure, isMet, type Measurement } from './targets/figure.ts'
import { measureMemory } from './targets/memory.ts'
import { measurePgbench } from './targets/pgbench.ts'
import { measureReads } from './targets/reads.ts'
import { measureWallet } from './targets/wallet.ts'
import { measureX402 } from './targets/x402.ts'

const rounds = Number(process.env.BENCH_ROUNDS ?? 5)
const seconds = Number(process.env.BENCH_SECONDS ?? 3)
const minutes = Number(process.env.BENCH_MINUTES ?? 2)
const payments = Number(process.env.BENCH_PAYMENTS ?? 640)

const parts: Record<string, () => Promise<Measurement>> = {
  wallet: () => measureWallet({ rounds, seconds }),
  x402: () => measureX402({ rounds, payments }),
  reads: () => measureReads({ rounds, seconds: Math.min(seconds, 1) }),
  pgbench: () => measurePgbench({ rounds: Math.min(rounds, 3), seconds: Math.ceil(seconds) }),
  memory: () => measureMemory({ minutes }),
}
/** These take long and are run by name. */
const namedParts = ['memory']

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

function printMeasurement({ figures, costs = [], writes = [], skipped }: Measurement) {
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
