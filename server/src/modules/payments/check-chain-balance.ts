import type { Selectable } from 'kysely'
import type { Db } from '../../platform/db.ts'
import type { Payouts } from '../../platform/generated/db.ts'
import type { Check, Difference } from '../ledger/check-books.ts'
import { chainAccountMicro } from '../ledger/ledger.ts'
import type { AuthorizationState, ChainReader, Hex } from './facilitator.ts'
import { payoutNonce } from './payout-rail.ts'
import { listOpenX402Settlements, listX402Settlements, type SettlementRow } from './settlements.store.ts'

export type CheckChainDeps = {
  db: Db
  chain: ChainReader
  asset: Hex
  payTo: Hex
  pause(milliseconds: number): Promise<void>
}

type PayoutRow = Selectable<Payouts>

const PAGE_SIZE = 200
const CONCURRENCY = 8
const MAX_DIFFERENCES = 100
const MAX_ATTEMPTS = 5

/** Compares every settlement and payout with the chain, and our address's balance with the ledger, to the last unit. */
export async function checkChain(deps: CheckChainDeps): Promise<Check[]> {
  const settlements = await checkSettlements(deps)
  const payouts = await checkPayouts(deps)
  return [settlements, payouts, await checkBalance(deps)]
}

async function checkSettlements({ db, chain }: CheckChainDeps): Promise<Check> {
  const check: Check = {
    name: 'chain: settlements',
    holds:
      'every settled payment is on the chain, in its transaction, to our address, for its amount; no other has moved anything',
    examined: 0n,
    differences: [],
  }
  for (let after = ''; ; ) {
    const rows = await listX402Settlements(db, after, PAGE_SIZE)
    if (rows.length === 0) return check
    const uses = await mapConcurrently(rows, (row) =>
      chain.authorization(row.asset as Hex, row.payer as Hex, row.nonce as Hex),
    )
    for (const [index, row] of rows.entries()) addDifference(check, compareSettlement(row, uses[index]!))
    check.examined += BigInt(rows.length)
    after = rows.at(-1)!.id
  }
}

function compareSettlement(row: SettlementRow, use: AuthorizationState): Difference | undefined {
  const reachedPayee = use.used && use.transfer?.to.toLowerCase() === row.pay_to.toLowerCase()
  if (row.state === 'settled' || row.state === 'refunded') {
    const expected = `${row.amount_micro} to ${row.pay_to} in ${row.transaction}`.toLowerCase()
    return expected === describeUse(use) ? undefined : { subject: row.id, expected: expected, found: describeUse(use) }
  }
  // An open settlement may be on the chain already; the reconciler will finish it.
  if (row.state !== 'failed' || !reachedPayee) return undefined
  return { subject: `${row.id} (${row.state})`, expected: 'nothing moved, or a refund', found: describeUse(use) }
}

async function checkPayouts({ db, chain, asset, payTo }: CheckChainDeps): Promise<Check> {
  const check: Check = {
    name: 'chain: payouts',
    holds: 'every payout that was paid is on the chain, once, to its address',
    examined: 0n,
    differences: [],
  }
  for (let after = ''; ; ) {
    const rows = await db
      .selectFrom('payouts')
      .selectAll()
      .where('id', '>', after)
      .orderBy('id')
      .limit(PAGE_SIZE)
      .execute()
    if (rows.length === 0) return check
    const differences = await mapConcurrently(rows, (row) => comparePayout(chain, asset, payTo, row))
    for (const difference of differences) addDifference(check, difference)
    check.examined += BigInt(rows.length)
    after = rows.at(-1)!.id
  }
}

async function comparePayout(
  chain: ChainReader,
  asset: Hex,
  payTo: Hex,
  row: PayoutRow,
): Promise<Difference | undefined> {
  const expected = `${row.amount_micro} to ${row.to_address} in ${row.transaction}`.toLowerCase()
  if (row.method === 'chain') {
    const use = await chain.authorization(asset, payTo, payoutNonce(row.id))
    if (row.state === 'paid')
      return expected === describeUse(use)
        ? undefined
        : { subject: row.id, expected: expected, found: describeUse(use) }
    return use.used && row.state === 'cancelled'
      ? { subject: row.id, expected: 'nothing moved', found: describeUse(use) }
      : undefined
  }
  if (row.state !== 'paid') return undefined
  const transfers = (await chain.transfers(row.transaction as Hex)) ?? []
  const isOnChain = transfers.some(
    (transfer) =>
      transfer.from.toLowerCase() === payTo.toLowerCase() &&
      transfer.to.toLowerCase() === row.to_address &&
      transfer.value === row.amount_micro,
  )
  return isOnChain ? undefined : { subject: row.id, expected: expected, found: 'no such transfer' }
}

/** A payment may be on the chain before it is booked, and the ledger may change between two reads: then read again. */
async function checkBalance(deps: CheckChainDeps): Promise<Check> {
  const { chain, asset, payTo, db } = deps
  const check: Check = {
    name: 'chain: balance',
    holds: 'the balance of our address is the balance in the ledger',
    examined: 1n,
    differences: [],
  }
  for (let attempt = 1; ; attempt++) {
    const bookedMicro = await chainAccountMicro(db)
    const inFlightMicro = await readInFlightMicro(deps)
    const balanceMicro = await chain.balanceOf(asset, payTo)
    if (balanceMicro === bookedMicro + inFlightMicro) return check
    if (attempt === MAX_ATTEMPTS) {
      const expected = `${bookedMicro} booked${inFlightMicro === 0n ? '' : `, and ${inFlightMicro} on the chain that is still being booked`}`
      addDifference(check, {
        subject: payTo,
        expected,
        found: `${balanceMicro}: ${balanceMicro > bookedMicro + inFlightMicro ? 'more' : 'less'} by ${abs(balanceMicro - bookedMicro - inFlightMicro)}`,
      })
      return check
    }
    await deps.pause(500)
  }
}

async function readInFlightMicro({ db, chain, asset, payTo }: CheckChainDeps): Promise<bigint> {
  const openSettlements = await listOpenX402Settlements(db)
  const uses = await mapConcurrently(openSettlements, (row) =>
    chain.authorization(row.asset as Hex, row.payer as Hex, row.nonce as Hex),
  )
  const pendingPayouts = await db
    .selectFrom('payouts')
    .selectAll()
    .where('state', '=', 'pending')
    .where('method', '=', 'chain')
    .execute()
  const payoutUses = await mapConcurrently(pendingPayouts, (row) =>
    chain.authorization(asset, payTo, payoutNonce(row.id)),
  )
  const incomingMicro = openSettlements.reduce(
    (sum, row, index) => sum + (uses[index]!.used ? row.amount_micro : 0n),
    0n,
  )
  return pendingPayouts.reduce(
    (sum, row, index) => sum - (payoutUses[index]!.used ? row.amount_micro : 0n),
    incomingMicro,
  )
}

const describeUse = (use: AuthorizationState): string => {
  if (!use.used) return 'unused'
  return use.transfer
    ? `${use.transfer.value} to ${use.transfer.to} in ${use.transaction}`.toLowerCase()
    : 'used without a transfer'
}

function addDifference(check: Check, difference: Difference | undefined) {
  if (difference && check.differences.length < MAX_DIFFERENCES) check.differences.push(difference)
}

const abs = (value: bigint) => (value < 0n ? -value : value)

async function mapConcurrently<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = []
  for (let start = 0; start < items.length; start += CONCURRENCY)
    results.push(...(await Promise.all(items.slice(start, start + CONCURRENCY).map(work))))
  return results
}
