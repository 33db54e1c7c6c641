import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTestDatabase, spawnService, startService } from '../harness.ts'
import type { Facts, GovernanceModel, Payment } from './model/governance-model.ts'
import { compareCounts, filledMicro, openTenant, readRoutes, type TaskRoute } from './model/play-world.ts'
import { actionMakers, createRandom, type Payable, randomWorld, type World } from './model/random-worlds.ts'
import { counterFaults, flakyLane, type World as Service } from './world.ts'

/** Sixteen callers on two processes with one database and the real clock. `RACE_WORLDS=200` plays more. */
const COUNT = Number(process.env.RACE_WORLDS ?? 20)
const FIRST_SEED = Number(process.env.WORLD_SEED ?? 1)
const CALLERS = 16
const REQUESTS = 48
/** There are more requests than in a world with one caller, so its limits have more room. */
const ROOM = 4
const secrets = { SIGNING_KEY: 's'.repeat(40), ENCRYPTION_KEY: 'e'.repeat(40), ADMIN_KEY: 'a'.repeat(40) }

let database: Awaited<ReturnType<typeof createTestDatabase>>
let local: Service
let other: Awaited<ReturnType<typeof spawnService>>
let routes: TaskRoute[]
beforeAll(async () => {
  database = await createTestDatabase()
  other = await spawnService({ ...secrets, DATABASE_URL: database.url })
  const clock = { now: () => new Date(), set: () => {}, advance: () => {} }
  const lane = flakyLane()
  local = Object.assign(await startService({ databaseUrl: database.url, lane, env: secrets }), { clock, lane })
  routes = await readRoutes(local)
}, 120_000)
afterAll(async () => {
  await other?.stop()
  await local?.close()
  await database?.drop()
})

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const periods = (from: number, to: number, length: number) => Math.floor(to / length) - Math.floor(from / length) + 1

/** Runs the tasks with a fixed number of callers, each taking the next when it has an answer. */
async function inParallel<T>(tasks: (() => Promise<T>)[]): Promise<T[]> {
  const results: T[] = []
  let next = 0
  const caller = async () => {
    while (next < tasks.length) {
      const index = next++
      results[index] = await tasks[index]!()
    }
  }
  await Promise.all(Array.from({ length: CALLERS }, caller))
  return results
}

/** Every limit that the model knows, against what was let through between the two times. */
function passedLimits(model: GovernanceModel, from: number, to: number): string[] {
  const faults: string[] = []
  const sum = (payments: Payment[]) => payments.reduce((total, { amountMicro }) => total + amountMicro, 0n)
  const counted = model.payments.filter(({ state }) => state !== 'released')
  const days = periods(from, to, 24 * 60 * MINUTE)
  for (const budget of model.budgets.values()) {
    const own = counted.filter(({ budgets }) => budgets.has(budget.id))
    const most =
      budget.window === 'run'
        ? own.reduce((top, { amountMicro }) => (amountMicro > top ? amountMicro : top), 0n)
        : sum(own)
    const windows = ['day', 'week', 'month'].includes(budget.window) ? BigInt(days) : 1n
    if (most > budget.limitMicro * windows)
      faults.push(`budget ${JSON.stringify({ ...budget, limitMicro: `${budget.limitMicro}` })}: ${most}`)
  }
  for (const mandate of model.mandates.values()) {
    const { spent, reserved, occurrences } = model.mandateUsage(mandate.id)
    if (mandate.budgetMax !== null && spent + reserved > mandate.budgetMax)
      faults.push(`${mandate.id}: ${spent + reserved}`)
    if (mandate.recurrence?.max != null && occurrences > mandate.recurrence.max)
      faults.push(`${mandate.id}: ${occurrences} payments`)
    if (mandate.recurrence && mandate.recurrence.frequency !== 'ON_DEMAND' && occurrences > days)
      faults.push(`${mandate.id}: ${occurrences} payments, ${mandate.recurrence.frequency}`)
  }
  for (const policy of model.policies.values()) {
    if (policy.mode !== 'enforce') continue
    const { max_per_day_usdc, max_per_month_usdc, max_runs_per_minute } = policy.constraints
    const countedIn = (rule: string) => counted.filter(({ limits }) => limits.has(`${policy.id}/${rule}`))
    for (const [rule, limit] of Object.entries({ max_per_day_usdc, max_per_month_usdc })) {
      if (limit === undefined) continue
      const spent = sum(countedIn(rule))
      if (spent > BigInt(Math.round(limit * 1_000_000)) * BigInt(days))
        faults.push(`${JSON.stringify(policy)}: ${spent}`)
    }
    const count = countedIn('max_runs_per_minute').length
    if (max_runs_per_minute !== undefined && count > max_runs_per_minute * periods(from, to, MINUTE))
      faults.push(`${JSON.stringify(policy)}: ${count} payments`)
  }
  return faults
}

/** Mandates, policies, budgets and freezes of a random world, with limits that the requests together pass. */
function racingWorld(seed: number): { world: World; payables: Payable[] } {
  const world = randomWorld(seed)
  for (const rule of world.rules) {
    if (rule.make === 'budget') rule.limit *= ROOM
    // Which lane ran is known only when no other request comes in between.
    if (rule.make === 'budget' && rule.on_breach === 'downgrade') delete rule.on_breach
    if (rule.make === 'mandate' && rule.budget !== undefined) rule.budget *= ROOM
    if (rule.make === 'policy') {
      const { constraints } = rule
      for (const limit of ['max_per_day_usdc', 'max_per_month_usdc', 'max_runs_per_minute'] as const)
        if (constraints[limit] !== undefined) constraints[limit] *= ROOM
    }
  }
  const random = createRandom(seed * 7 + 1)
  const makers = actionMakers(random, world.keys, world.rules)
  const payables = Array.from({ length: REQUESTS }, (_, index): Payable => {
    const name = `r${index}`
    const payable = random.pick([makers.run, makers.run, makers.preauth, makers.preauth, makers.trade])(name)
    if ('fails' in payable) delete payable.fails
    if ('policy' in payable) delete payable.policy
    return payable
  })
  return { world, payables }
}

async function playRace(seed: number): Promise<{ faults: string[]; allowed: number; refused: number }> {
  const { world, payables } = racingWorld(seed)
  const game = await openTenant(local, world, routes, local.service.chain.payTo)
  const { model } = game
  for (const rule of world.rules) {
    const disagreement = await game.makeRule(rule)
    if (disagreement) return { faults: [JSON.stringify(disagreement)], allowed: 0, refused: 0 }
  }
  const faults: string[] = []
  const from = Date.now()
  type Paid = { facts: Facts; payment: Payment; preauthId?: string; key: string }
  const paid: Paid[] = []
  const refusedFacts: { facts: Facts; text: string }[] = []
  const sendAll = (list: Payable[], keepRefused: boolean) =>
    list.flatMap((action, index) => {
      const facts = game.factsOf(action)
      if (!facts) return []
      return [
        async () => {
          const [, body] = game.bodyOf(action)
          const { outcome, response, mandateId } = await game.send(action, body, index % 2 === 0 ? local : other)
          if (outcome === 'allowed') {
            const state = action.do === 'preauth' ? 'reserved' : 'spent'
            const payment = model.count(facts, model.countsIn(facts, mandateId), Date.now(), state)
            if (action.do === 'trade') payment.amountMicro = filledMicro(response, facts)
            paid.push({
              facts,
              payment,
              key: action.key,
              ...(state === 'reserved' && { preauthId: response.body.preauth_id }),
            })
          } else if (outcome === 'blocked') {
            if (keepRefused) refusedFacts.push({ facts, text: response.text })
          } else if (outcome !== 'review')
            faults.push(`${JSON.stringify(action)}: ${response.status} ${response.text.slice(0, 200)}`)
        },
      ]
    })

  // First only payments, so that usage grows: what was refused then must be refused by the model in the end.
  await inParallel(sendAll(payables.slice(0, 32), true))
  const mandateBudgets = [...model.budgets.values()].some(({ scope }) => scope.type === 'mandate')
  const oneMinute = periods(from, Date.now(), MINUTE) === 1
  const velocity = [...model.policies.values()].some(({ constraints }) => constraints.max_runs_per_minute !== undefined)
  // A policy may allow some hours only, and the model judges a little later than the service did.
  const oneHour = periods(from, Date.now(), HOUR) === 1
  if (!mandateBudgets && oneHour && (oneMinute || !velocity))
    for (const { facts, text } of refusedFacts)
      if (model.judge(facts, Date.now()).outcome !== 'blocked')
        faults.push(`refused without a reason: ${text.slice(0, 400)}`)
  // Then closes and payments at once: what is given back can be spent again.
  const random = createRandom(seed)
  const closes = paid
    .filter(({ preauthId }) => preauthId !== undefined)
    .map(({ preauthId, payment, key }, index) => async () => {
      const outcome = random.pick(['settled', 'voided', 'failed'] as const)
      const client = index % 2 === 0 ? other : local
      const response = await client.post(
        '/api/pre-auth/close',
        { preauth_id: preauthId, outcome },
        game.headers.get(key)!,
      )
      if (response.status !== 200) faults.push(`close: ${response.status} ${response.text.slice(0, 200)}`)
      payment.state = outcome === 'settled' ? 'spent' : 'released'
    })
  await inParallel([...closes, ...sendAll(payables.slice(32), false)].sort(() => random.next() - 0.5))

  const to = Date.now()
  faults.push(...passedLimits(model, from, to))
  // Rules that count nothing must have held for each payment alone.
  const { payments } = model
  const all = payments.splice(0)
  for (const { facts, payment } of periods(from, to, HOUR) === 1 ? paid : []) {
    const verdict = model.judge({ ...facts, mandateId: payment.mandateId ?? facts.mandateId }, payment.at)
    if (verdict.outcome !== 'allowed' || (payment.mandateId === null) !== (verdict.mandateId === null))
      faults.push(`passed: ${JSON.stringify(verdict)}`)
  }
  payments.push(...all)
  const difference = periods(from, to, 24 * 60 * MINUTE) === 1 ? await compareCounts(other, game) : null
  if (difference) faults.push(`counts: ${JSON.stringify(difference)}`)
  return { faults, allowed: paid.length, refused: refusedFacts.length }
}

test(
  `${COUNT} random worlds under ${CALLERS} parallel callers on two processes: no limit is passed and every counter equals what was allowed`,
  async () => {
    const totals = { allowed: 0, refused: 0 }
    for (let seed = FIRST_SEED; seed < FIRST_SEED + COUNT; seed += 1) {
      const { faults, allowed, refused } = await playRace(seed)
      totals.allowed += allowed
      totals.refused += refused
      expect(faults, `seed ${seed}: ${JSON.stringify(racingWorld(seed).world.rules)}`).toEqual([])
    }
    console.log(`allowed ${totals.allowed}, refused ${totals.refused}`)
    expect(totals.allowed).toBeGreaterThan(COUNT)
    expect(totals.refused).toBeGreaterThan(COUNT)
    expect(await counterFaults(local)).toEqual([])
    const { rows } = await local.service.database.pool.query(
      'select deadlocks from pg_stat_database where datname = current_database()',
    )
    expect(Number(rows[0].deadlocks)).toBe(0)
  },
  30 * 60_000,
)
