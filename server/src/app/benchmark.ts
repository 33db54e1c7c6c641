import { setTimeout as sleep } from 'node:timers/promises'
import type { BenchmarkDeps, BenchmarkSuite } from '../adapters/lanes/benchmark.ts'
import { benchmarkFingerprint, readBenchmarkSuite, runBenchmark } from '../adapters/lanes/benchmark.ts'
import type { Catalog } from '../modules/catalog/catalog.ts'
import { benchmarkRoutes } from '../modules/insights/benchmark.routes.ts'
import { type BenchmarkRun, createBenchmark } from '../modules/insights/benchmark.ts'
import type { Lane } from '../modules/runs/lane.ts'
import type { App } from '../platform/http-app.ts'
import { usdcFromMicro } from '../platform/money.ts'
import type { AppContext } from './context.ts'

/** How often it is asked whether the lanes have changed; the first time is this long after the start. */
const SWEEP_MS = 2_000
/** The turn is renewed before each task, and a task takes a minute at most. */
const TURN_MS = 120_000
/** After a measurement that came to nothing, for example because no provider answered. */
const RETRY_MS = 15 * 60_000
/** Bounds what a model is paid for when every process that measures dies on the way. */
const MAX_ATTEMPTS = 5
/** Between two tasks other work has its turn; under load a task waits longer, but the suite comes to an end. */
const PAUSE_MS = 5
const LOOK_MS = 100
const MAX_LOOKS = 20

type Measuring = Pick<BenchmarkDeps, 'verify' | 'mayContinue' | 'signal'>
type PricedLanes = readonly { agentId: string; priceMicro: bigint }[]

/** Measures each lane at its current price, with the same output verification as a paid run. */
export async function measureLanes(
  { lane, clock, ...measuring }: Measuring & Pick<BenchmarkDeps, 'lane' | 'clock'>,
  pricedLanes: PricedLanes,
  suite: BenchmarkSuite,
): Promise<BenchmarkRun & { unavailable: boolean }> {
  const fingerprint = benchmarkFingerprint(lane, suite)
  const lanes = pricedLanes.map(({ agentId, priceMicro }) => ({ agentId, priceUsdc: usdcFromMicro(priceMicro) }))
  const results = await runBenchmark({ lane, clock, ...measuring }, lanes, suite)
  return {
    suite_version: suite.suite_version,
    mode: lane.mode,
    lanes: results.lanes,
    fingerprint,
    cost_usd: results.costUsd,
    unavailable: results.unavailable,
  }
}

/** The benchmark, which measures the lanes by itself whenever they are not the ones that were measured. */
export function composeBenchmark(
  { config, db, clock, ids, log, jobs, instance, instances }: AppContext,
  parts: { lane: Lane; catalog: Catalog; verify: BenchmarkDeps['verify']; isIdle: () => boolean },
) {
  const { lane, catalog } = parts
  const suite = readBenchmarkSuite()
  const fingerprint = () => benchmarkFingerprint(lane, suite)
  const benchmark = createBenchmark({ db, clock, ids, fingerprint, findDeadInstances: instances.findDead })
  const stopping = new AbortController()
  let measured: string | undefined

  const isWanted = config.BENCHMARK_SUITE === 'on' || (config.BENCHMARK_SUITE === 'offline' && lane.mode === 'offline')
  const after = (milliseconds: number) => new Date(clock.now().getTime() + milliseconds)

  const waitForQuiet = async () => {
    await sleep(PAUSE_MS)
    for (let look = 0; look < MAX_LOOKS && !parts.isIdle() && !stopping.signal.aborted; look++) await sleep(LOOK_MS)
  }

  const measure = async (current: string) => {
    let heldTurn = true
    const run = await measureLanes(
      {
        lane,
        clock,
        verify: parts.verify,
        signal: stopping.signal,
        mayContinue: async (costUsd) => {
          if (stopping.signal.aborted || costUsd > config.BENCHMARK_MAX_USD) return false
          heldTurn = await benchmark.renewTurn(current, instance, after(TURN_MS))
          if (heldTurn) await waitForQuiet()
          return heldTurn && !stopping.signal.aborted
        },
      },
      [...catalog.all(), catalog.fallback()],
      suite,
    )
    if (stopping.signal.aborted) return benchmark.endTurn(current, instance, clock.now())
    // A model that was exchanged meanwhile did part of the tasks.
    if (!heldTurn || fingerprint() !== current) return
    if (run.unavailable) {
      log.warn({ retry_in_seconds: RETRY_MS / 1000 }, 'no lane answered the benchmark suite')
      return benchmark.endTurn(current, instance, after(RETRY_MS))
    }
    await benchmark.save(run)
    measured = current
    log.info({ suite: run.suite_version, mode: run.mode, cost_usd: run.cost_usd }, 'the benchmark suite was run')
  }

  const sweep = async () => {
    const current = fingerprint()
    if (!isWanted || measured === current) return
    if (await benchmark.isMeasured(current)) measured = current
    else if (await benchmark.takeTurn(current, instance, after(TURN_MS), MAX_ATTEMPTS)) await measure(current)
  }

  return {
    sweep,
    fingerprint,
    routes: (app: App) => benchmarkRoutes(app, benchmark),
    start: () => jobs.every('benchmark', SWEEP_MS, sweep),
    /** A measurement under way ends with its current task and is left to the next process. */
    stop: () => stopping.abort(),
  }
}
