import fc from 'fast-check'
import { sql } from 'kysely'
import { expect } from 'vitest'
import { notionalMicro } from '../../src/modules/brokerage/broker.ts'
import { type ExecuteStep, executeSteps } from '../../src/modules/brokerage/execute-trade.ts'
import { readEvents } from '../journal.ts'
import type { World } from './world.ts'

/**
 * Random sequences of runs, approvals, cancellations, expiries, price moves, halts, crashes at each step and stalled
 * workers. After each sequence the invariants of `checkInvariants` must hold.
 */
type Command =
  | {
      do: 'run'
      instrument: number
      side: 'buy' | 'sell'
      size: number
      limitPercent: number | null
      requiresApproval: boolean
      crashAt: ExecuteStep | null
    }
  | { do: 'approve'; runIndex: number }
  | { do: 'cancel'; runIndex: number }
  | { do: 'sweep' }
  | { do: 'die'; at: ExecuteStep }
  | { do: 'oversleep'; stalledWith: 'quote' | 'order'; percent: number }
  | { do: 'wait'; seconds: number }
  | { do: 'price'; instrument: number; percent: number }
  | { do: 'halt'; on: boolean }
  | { do: 'kill'; on: boolean }

const INSTRUMENTS = [
  { type: 'equity', symbol: 'AAPL', price: 200, unit: 1 },
  { type: 'crypto', symbol: 'BTC-USD', price: 60_000, unit: 0.004 },
  { type: 'perp', symbol: 'BTC-PERP', price: 60_000, unit: 0.004 },
  { type: 'earn', symbol: 'USDC-EARN', price: 1, unit: 150 },
  { type: 'spend', symbol: 'acme-store', price: 1, unit: 33.37 },
  { type: 'equity', symbol: 'THIN', price: 10, unit: 2.5 },
] as const

const instrument = fc.nat(INSTRUMENTS.length - 1)
const percent = fc.integer({ min: -4, max: 4 })
const runIndex = fc.nat(4)
const rarelyTrue = fc.constantFrom(true, false, false, false)
const step = fc.constantFrom(...executeSteps)

const commandArbitrary: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('run' as const),
      instrument,
      side: fc.constantFrom('buy' as const, 'buy' as const, 'sell' as const),
      size: fc.integer({ min: 1, max: 4 }),
      limitPercent: fc.option(fc.integer({ min: -2, max: 2 }), { freq: 2 }),
      requiresApproval: fc.boolean(),
      crashAt: fc.option(step, { freq: 4 }),
    }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('approve' as const), runIndex }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('cancel' as const), runIndex }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('sweep' as const) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('die' as const), at: step }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('oversleep' as const),
      stalledWith: fc.constantFrom('quote' as const, 'order' as const),
      percent,
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('wait' as const), seconds: fc.constantFrom(1, 31, 61, 299, 900, 5400) }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('price' as const), instrument, percent }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('halt' as const), on: rarelyTrue }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('kill' as const), on: rarelyTrue }) },
)

/** One run of each final state: few random histories may by chance have none that is executed, or none that is rejected. */
const order = { do: 'run', side: 'buy', size: 1, limitPercent: null, requiresApproval: false, crashAt: null } as const
const everyFinalState: Command[] = [
  { ...order, instrument: 4 },
  { ...order, instrument: 4, requiresApproval: true },
  { ...order, instrument: 0, side: 'sell' },
]

export async function checkRandomHistories(
  world: World,
  options: { numRuns: number; maxCommands: number; seed?: number },
) {
  const commands = fc.array(commandArbitrary, { minLength: 5, maxLength: options.maxCommands, size: 'max' })
  const stateCounts = new Map<string, number>()
  await fc.assert(
    fc.asyncProperty(commands, async (commands) => {
      await world.startNewTenant()
      const session = createSession(world)
      for (const command of commands) await session.apply(command)
      await session.finishAll()
      for (const run of await checkInvariants(world)) stateCounts.set(run.state, (stateCounts.get(run.state) ?? 0) + 1)
    }),
    { examples: [[everyFinalState]], numRuns: 1 + options.numRuns, seed: options.seed, endOnFailure: true },
  )
  // The invariants say nothing about histories without runs, so every final state must have occurred.
  for (const state of ['executed', 'cancelled', 'rejected'])
    expect(stateCounts.get(state) ?? 0, state).toBeGreaterThan(0)
}

function createSession(world: World) {
  const runs: string[] = []
  const prices = new Map(INSTRUMENTS.map(({ symbol, price }) => [symbol as string, price as number]))
  for (const policy of ['pol_ask', 'pol_free']) {
    const constraints = { require_approval_above_usdc: policy === 'pol_ask' ? 1 : 9000, max_per_day_usdc: 900_000 }
    world.policies.set(policy, {
      id: policy,
      name: policy,
      status: 'active',
      mode: 'enforce',
      contentHash: null,
      constraints,
    })
  }

  const movePrice = (symbol: string, by: number) => {
    const price = Math.max(0.01, Math.round(prices.get(symbol)! * (100 + by)) / 100)
    prices.set(symbol, price)
    world.market.setPrice(symbol, price.toFixed(2))
  }

  const startCrashingNode = (at: ExecuteStep) =>
    world.startNode({
      probe: (reached) => {
        if (reached === at) throw new Error('killed')
      },
    })
  const ignoreCrash = (work: Promise<unknown>) =>
    work.catch((error: Error) => {
      if (error.message !== 'killed') throw error
    })

  /** A worker that stalls after reading a quote, or before placing an order, until another has taken its run over. */
  const startStalledNode = ({ stalledWith, percent }: Extract<Command, { do: 'oversleep' }>) => {
    const stall = async () => {
      world.clock.advance(31_000)
      await world.brokerage.sweep()
    }
    return world.startNode({
      wrapBroker: (broker) => ({
        ...broker,
        quote: async (type, symbol) => {
          if (stalledWith !== 'quote') return broker.quote(type, symbol)
          const price = prices.get(symbol)!
          movePrice(symbol, percent)
          const stale = await broker.quote(type, symbol)
          prices.set(symbol, price)
          world.market.setPrice(symbol, price.toFixed(2))
          await stall()
          return stale
        },
        place: async (request) => {
          if (stalledWith !== 'order') return broker.place(request)
          movePrice(request.symbol, percent)
          await stall()
          return broker.place(request)
        },
      }),
    })
  }

  const run = async (command: Extract<Command, { do: 'run' }>) => {
    const { type, symbol, unit } = INSTRUMENTS[command.instrument]!
    const side = type === 'spend' ? 'buy' : command.side
    const price = prices.get(symbol)!
    const limit =
      command.limitPercent === null || type === 'earn' || type === 'spend'
        ? undefined
        : Math.round(price * (100 + command.limitPercent)) / 100
    const body = {
      tenant_id: world.tenant(),
      instrument_type: type,
      symbol,
      side,
      quantity: Number((unit * command.size).toFixed(6)),
      policy_id: command.requiresApproval ? 'pol_ask' : 'pol_free',
      ...(limit !== undefined && { price_limit: limit }),
      ...(type === 'perp' && { leverage: 5 }),
    } as const
    if (command.crashAt) {
      const caller = {
        kind: 'tenant',
        tenantId: world.tenant(),
        keyId: 'key',
        scopes: ['run', 'control'],
        spender: null,
        team: null,
        mandateIds: null,
        auth: 'key',
      } as const
      await ignoreCrash(
        startCrashingNode(command.crashAt).brokerage.run({ caller, body, idempotencyKey: undefined, requestId: 'r' }),
      )
      return
    }
    const response = await world.call('POST', '/api/rh/run', body)
    expect([200, 202, 422], response.text).toContain(response.status)
    runs.push(response.body.run_id)
  }

  return {
    async apply(command: Command): Promise<void> {
      const chosenRunId = 'runIndex' in command ? runs.at(-1 - command.runIndex) : undefined
      switch (command.do) {
        case 'run':
          return run(command)
        case 'approve':
          if (chosenRunId) expect([200, 409, 410]).toContain((await world.approve(chosenRunId)).status)
          return
        case 'cancel':
          if (chosenRunId)
            expect([200, 409]).toContain((await world.call('POST', `/api/rh/runs/${chosenRunId}/cancel`, {})).status)
          return
        case 'sweep':
          await world.brokerage.sweep()
          return
        case 'die':
          await ignoreCrash(startCrashingNode(command.at).brokerage.sweep())
          return
        case 'oversleep':
          await startStalledNode(command).brokerage.sweep()
          return
        case 'wait':
          world.clock.advance(command.seconds * 1000)
          return
        case 'price': {
          const { type, symbol } = INSTRUMENTS[command.instrument]!
          if (type !== 'earn' && type !== 'spend') movePrice(symbol, command.percent)
          return
        }
        case 'halt':
          world.market.halt('AAPL', command.on)
          return
        case 'kill':
          await world.call('POST', '/api/rh/kill-switch', { engaged: command.on })
          return
      }
    },

    /** Ends the halt and the kill switch, and lets every window pass, so that every run becomes final. */
    async finishAll() {
      world.market.halt('AAPL', false)
      await world.call('POST', '/api/rh/kill-switch', { engaged: false })
      for (let round = 0; round < 6; round += 1) {
        world.clock.advance(round < 3 ? 61_000 : 24 * 3_600_000)
        await world.brokerage.sweep()
      }
    },
  }
}

type StoredRun = {
  id: string
  state: string
  broker: string
  execute_by: Date
  approved_at: Date | null
  terms: {
    type: string
    symbol: string
    orderSide: string
    quantityE8: string
    limitPriceE8: string | null
    quotePriceE8: string
    maxDriftBps: number
    collarBps: number
  }
  approval: unknown
  order: { symbol: string; side: string; filledE8: { $bigint: string }; fills: PaperFill[] } | null
}
type PaperFill = {
  quantityE8: { $bigint: string }
  priceE8: { $bigint: string }
  feeMicro: { $bigint: string }
  at: string
}

async function checkInvariants(world: World): Promise<StoredRun[]> {
  const { rows: runs } = await sql<StoredRun>`
    select r.id, r.state, r.broker, r.execute_by, r.approved_at, r.terms, r.approval, o.body as "order"
    from rh_runs r left join paper_orders o on o.client_order_id = r.id::text
    where r.tenant_id = ${world.tenant()} order by r.id`.execute(world.db)
  for (const run of runs) checkRun(run)
  await checkRecordedOnce(world)
  await checkMoney(world, runs)
  return runs
}

/** Every run is final, and none executed without its approval, after its deadline or outside its terms. */
function checkRun(run: StoredRun) {
  expect(['executed', 'cancelled', 'rejected'], `run ${run.id}`).toContain(run.state)
  const filledE8 = BigInt(run.order?.filledE8.$bigint ?? 0)
  expect(run.state === 'executed', `run ${run.id} is ${run.state} with ${filledE8} filled`).toBe(filledE8 > 0n)
  expect(filledE8).toBeLessThanOrEqual(BigInt(run.terms.quantityE8))
  if (!run.order) return
  expect([run.order.symbol, run.order.side]).toEqual([run.terms.symbol, run.terms.orderSide])
  const tolerance = BigInt(run.approval ? run.terms.maxDriftBps : run.terms.collarBps)
  const quotePriceE8 = BigInt(run.terms.quotePriceE8)
  for (const fill of run.order.fills) {
    const price = BigInt(fill.priceE8.$bigint)
    const limit = run.terms.limitPriceE8 === null ? null : BigInt(run.terms.limitPriceE8)
    if (run.terms.orderSide === 'buy') {
      expect(price).toBeLessThanOrEqual((quotePriceE8 * (10_000n + tolerance)) / 10_000n)
      if (limit !== null) expect(price).toBeLessThanOrEqual(limit)
    } else {
      expect(price).toBeGreaterThanOrEqual((quotePriceE8 * (10_000n - tolerance)) / 10_000n)
      if (limit !== null) expect(price).toBeGreaterThanOrEqual(limit)
    }
    expect(Date.parse(fill.at)).toBeLessThan(run.execute_by.getTime())
    if (run.approval) expect(Date.parse(fill.at)).toBeGreaterThanOrEqual(run.approved_at!.getTime())
  }
}

/** Each outcome is one event, and the receipts of a run are one chain. */
async function checkRecordedOnce(world: World) {
  const ends = (await readEvents(world.db, world.tenant()))
    .filter(({ type }) => ['rh_run.executed', 'rh_run.cancelled', 'rh_run.rejected'].includes(type))
    .map(({ data }) => data.run_id)
  expect(ends.filter((runId, index) => ends.indexOf(runId) !== index)).toEqual([])
  const { rows: brokenChains } = await sql`
    select r.id from rh_receipts r where tenant_id = ${world.tenant()} and prev_hash is not null
      and not exists (select 1 from rh_receipts p where p.run_id = r.run_id and p.hash = r.prev_hash)`.execute(world.db)
  expect(brokenChains).toEqual([])
  const { rows: extraHeads } = await sql<{ run_id: string }>`
    select run_id from rh_receipts where tenant_id = ${world.tenant()} and superseded_at is null
    group by run_id having count(*) <> 1`.execute(world.db)
  expect(extraHeads).toEqual([])
}

const OPENING = 100_000_000_000n

/** Cash and positions at each broker equal what the recorded fills add up to, to the micro-dollar. */
async function checkMoney(world: World, runs: readonly StoredRun[]) {
  // Reading an account advances it; only then is its journal up to date.
  const accounts = await Promise.all(
    [world.paper, world.coinbasePaper].map(async (broker) => ({
      broker,
      response: await broker.account(world.tenant()),
    })),
  )
  const { rows: fills } = await sql<{ run_id: string; quantity_e8: bigint; price_e8: bigint; fee_micro: bigint }>`
    select f.run_id, f.quantity_e8, f.price_e8, f.fee_micro from rh_fills f join rh_runs r on r.id = f.run_id
    where r.tenant_id = ${world.tenant()}`.execute(world.db)
  const { rows: journal } = await sql<{ venue: string; code: string; account: string; asset: string; total: string }>`
    select venue, code, account, asset, sum(amount)::text as total from paper_journal
    where account_id = ${world.tenant()} group by venue, code, account, asset`.execute(world.db)
  const sumJournal = (venue: string, account: string, asset: string, codes?: readonly string[]) =>
    journal
      .filter(
        (row) =>
          row.venue === venue && row.account === account && row.asset === asset && (!codes || codes.includes(row.code)),
      )
      .reduce((sum, row) => sum + BigInt(row.total), 0n)

  for (const { broker, response } of accounts) {
    if (!response.ok) throw new Error(response.message)
    const { account } = response
    const brokerFills = fills
      .map((fill) => ({ ...fill, run: runs.find((run) => run.id === fill.run_id)! }))
      .filter(({ run }) => run.broker === broker.id)

    // Margin, funding and yield are in the broker's journal only; all other cash movements follow from our fills.
    const spot = brokerFills.filter(({ run }) => run.terms.type !== 'perp')
    const spotCashMicro = spot.reduce((sum, { quantity_e8, price_e8, fee_micro, run }) => {
      const gross = notionalMicro(price_e8, quantity_e8)
      return sum + (run.terms.orderSide === 'buy' ? -(gross + fee_micro) : gross - fee_micro)
    }, 0n)
    const brokerCashMicro = sumJournal(broker.id, 'cash', 'USD', [
      'perp_open',
      'perp_close',
      'fee',
      'liquidation',
      'yield',
    ])
    expect(account.cashMicro).toBe(OPENING + spotCashMicro + brokerCashMicro)
    expect(account.cashMicro).toBeGreaterThanOrEqual(0n)
    expect(account.heldMicro).toBe(0n)

    for (const symbol of new Set(brokerFills.map(({ run }) => run.terms.symbol))) {
      if (brokerFills.some(({ run }) => run.terms.symbol === symbol && run.terms.type === 'spend')) continue
      const tradedE8 = brokerFills
        .filter(({ run }) => run.terms.symbol === symbol)
        .reduce((sum, { quantity_e8, run }) => sum + (run.terms.orderSide === 'buy' ? quantity_e8 : -quantity_e8), 0n)
      const liquidatedE8 = sumJournal(broker.id, 'position', symbol, ['liquidation'])
      const position = account.positions.find((other) => other.symbol === symbol)?.quantityE8 ?? 0n
      expect(position, symbol).toBe(tradedE8 + liquidatedE8)
    }
  }
  await checkLedger(world, fills, runs)
}

/** The ledger's positions equal the recorded fills. */
async function checkLedger(
  world: World,
  fills: readonly { run_id: string; quantity_e8: bigint }[],
  runs: readonly StoredRun[],
) {
  const { rows } = await sql<{ asset: string; total: string }>`
    select asset, sum(amount_micro)::text as total from ledger_entries
    where tenant_id = ${world.tenant()} and status = 'posted' and account like 'assets:brokerage:%:position' group by asset`.execute(
    world.db,
  )
  const expected = new Map<string, bigint>()
  for (const { run_id, quantity_e8 } of fills) {
    const { terms } = runs.find((run) => run.id === run_id)!
    if (terms.type === 'spend') continue
    expected.set(
      terms.symbol,
      (expected.get(terms.symbol) ?? 0n) + (terms.orderSide === 'buy' ? quantity_e8 : -quantity_e8),
    )
  }
  expect(new Map(rows.map(({ asset, total }) => [asset, BigInt(total)]))).toEqual(expected)
}
