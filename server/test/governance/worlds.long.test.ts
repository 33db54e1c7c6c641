import { afterAll, beforeAll, expect, test } from 'vitest'
import { playWorld, readRoutes, shortenWorld, type TaskRoute } from './model/play-world.ts'
import { paidByX402, randomWorld, type World, YEAR_OF_WORLDS } from './model/random-worlds.ts'
import { openWorld, richTenant, run, type World as Service } from './world.ts'

/** `npm run test:soak -- worlds` plays 3,000; `WORLD_SEED=17 WORLDS=1` plays one of them again. */
const COUNT = Number(process.env.WORLDS ?? 250)
const FIRST_SEED = Number(process.env.WORLD_SEED ?? 1)
const MOST_REPORTS = Number(process.env.WORLD_REPORTS ?? 3)
/** Payments by x402 are slow, and each of these worlds takes a year of its own: a few worlds are played again with them. */
const X402_COUNT = Math.min(60, Math.ceil(COUNT / 25))

let service: Service
let routes: TaskRoute[]
beforeAll(async () => {
  service = await openWorld()
  // The control tower, which freezes, shows a checkpoint of the log.
  await run(service, await richTenant(service))
  await service.service.sequencer.runOnce()
  routes = await readRoutes(service)
})
afterAll(() => service?.close())

/** Plays each world; reports the first that disagree, as short as they can be made, and counts what happened. */
async function playWorlds(count: number, worldOf: (seed: number, attempt: number) => World) {
  const payTo = service.service.chain.payTo
  const tally = new Map<string, number>()
  const reports: string[] = []
  let attempts = 0
  for (let seed = FIRST_SEED; seed < FIRST_SEED + count && reports.length < MOST_REPORTS; seed += 1) {
    const world = worldOf(seed, attempts++)
    const { disagreement, outcomes } = await playWorld(service, world, routes, payTo)
    for (const outcome of outcomes) tally.set(outcome, (tally.get(outcome) ?? 0) + 1)
    if (!disagreement) continue
    const play = async (candidate: World) => {
      const { start } = worldOf(seed, attempts++)
      return (await playWorld(service, { ...candidate, start }, routes, payTo)).disagreement
    }
    const shortest = await shortenWorld(play, world)
    const { keys, rules, actions } = shortest.world
    reports.push(
      [
        `Seed ${seed}, starts ${world.start}`,
        ...[...keys, ...rules, ...actions].map((part) => `  ${JSON.stringify(part)}`),
        `  at ${shortest.disagreement?.at}: the model expects ${shortest.disagreement?.expected}`,
        `  the service answers ${shortest.disagreement?.actual}`,
      ].join('\n'),
    )
  }
  console.log(
    [...tally]
      .sort()
      .map(([outcome, count]) => `${outcome} ${count}`)
      .join(', '),
  )
  expect(reports.join('\n\n')).toBe('')
  return tally
}

test(
  `${COUNT} random worlds: the service allows, refuses and counts what an independent model of governance does`,
  async () => {
    const tally = await playWorlds(COUNT, randomWorld)
    const expected = ['run:allowed', 'run:blocked', 'run:review', 'preauth:allowed', 'preauth:blocked']
    const rarer = [
      'approve-run:pending',
      'approve-run:approved',
      'approve-trade:pending_approval',
      'approve-trade:approved',
      'downgraded:allowed',
      'trade-named:allowed',
      'trade-named:403',
      'trade-named:400',
    ]
    for (const outcome of COUNT < 100 ? expected : [...expected, ...rarer])
      expect(tally.get(outcome) ?? 0, outcome).toBeGreaterThan(0)
  },
  60 * 60_000,
)

test(
  `${X402_COUNT} of them again with runs that are paid by x402`,
  async () => {
    const tally = await playWorlds(X402_COUNT, (seed, attempt) =>
      paidByX402(randomWorld(seed), YEAR_OF_WORLDS + 1 + attempt),
    )
    if (X402_COUNT >= 10) expect(tally.get('x402:allowed') ?? 0).toBeGreaterThan(0)
  },
  20 * 60_000,
)
