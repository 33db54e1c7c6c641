import { afterAll, beforeAll, expect, test } from 'vitest'
import { playWorld, shortenWorld } from './model/play-world.ts'
import { randomWorld, TASKS } from './model/random-worlds.ts'
import { openWorld, richTenant, run, type World as Service } from './world.ts'

/** `npm run test:soak -- worlds` plays 3,000; `WORLD_SEED=17 WORLDS=1` plays one of them again. */
const COUNT = Number(process.env.WORLDS ?? 250)
const FIRST_SEED = Number(process.env.WORLD_SEED ?? 1)
const MOST_REPORTS = Number(process.env.WORLD_REPORTS ?? 3)

let service: Service
let routedLanes: string[]
beforeAll(async () => {
  service = await openWorld()
  // The control tower, which freezes, shows a checkpoint of the log.
  await run(service, await richTenant(service))
  await service.service.sequencer.runOnce()
  routedLanes = []
  for (const task of TASKS) {
    const { body } = await service.post('/api/route', { task: `${task} (a1)` })
    routedLanes.push(body.recommended_agent_id)
  }
})
afterAll(() => service?.close())

test(
  `${COUNT} random worlds: the service allows, refuses and counts what an independent model of governance does`,
  async () => {
    const payTo = service.service.chain.payTo
    const tally = new Map<string, number>()
    const reports: string[] = []
    for (let seed = FIRST_SEED; seed < FIRST_SEED + COUNT && reports.length < MOST_REPORTS; seed += 1) {
      const world = randomWorld(seed)
      const { disagreement, outcomes } = await playWorld(service, world, routedLanes, payTo)
      for (const outcome of outcomes) tally.set(outcome, (tally.get(outcome) ?? 0) + 1)
      if (!disagreement) continue
      const play = async (candidate: typeof world) =>
        (await playWorld(service, candidate, routedLanes, payTo)).disagreement
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
    const expected = ['run:allowed', 'run:blocked', 'run:review', 'preauth:allowed', 'preauth:blocked']
    const decided = [
      'approve-run:pending',
      'approve-run:approved',
      'approve-trade:pending_approval',
      'approve-trade:approved',
    ]
    for (const outcome of COUNT < 100 ? expected : [...expected, ...decided])
      expect(tally.get(outcome), outcome).toBeGreaterThan(0)
  },
  60 * 60_000,
)
