import type { Selectable } from 'kysely'
import type { Db } from '../../platform/db.ts'
import type { Payouts, Settlements } from '../../platform/generated/db.ts'
import type { Check, Difference } from '../ledger/check-books.ts'
import { chainAccountMicro } from '../ledger/ledger.ts'
import type { ChainReader, Hex } from './facilitator.ts'
import { payoutNonce } from './payout-rail.ts'

export type CheckChainDeps = {
  db: Db
  chain: ChainReader
  asset: Hex
  payTo: Hex
  pause(milliseconds: number): Promise<void>
}

type SettlementRow = Selectable<Settlements>
type PayoutRow = Selectable<Payouts>
type Use = Awaited<ReturnType<ChainReader['authorization']>>

const PAGE = 200
const AT_ONCE = 8
const MOST_SHOWN = 100
const TRIES = 5

/** Holds every settlement and payout against the chain, and the address against the books, to the last unit. */
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
    const rows = await db
      .selectFrom('settlements')
      .selectAll()
      .where('method', '=', 'x402')
      .where('id', '>', after)
      .orderBy('id')
      .limit(PAGE)
      .execute()
    if (rows.length === 0) return check
    const uses = await eachOf(rows, (row) => chain.authorization(row.asset as Hex, row.payer as Hex, row.nonce as Hex))
    for (const [index, row] of rows.entries()) note(check, judgeSettlement(row, uses[index]!))
    check.examined += BigInt(rows.length)
    after = rows.at(-1)!.id
  }
}

function judgeSettlement(row: SettlementRow, use: Use): Difference | undefined {
  const arrived = use.used && use.transfer?.to.toLowerCase() === row.pay_to.toLowerCase()
  if (row.state === 'settled' || row.state === 'refunded') {
    const wanted = `${row.amount_micro} to ${row.pay_to} in ${row.transaction}`.toLowerCase()
    return wanted === tell(use) ? undefined : { subject: row.id, expected: wanted, found: tell(use) }
  }
  // What is still open may be on the chain already; the reconciler comes to it.
  if (row.state !== 'failed' || !arrived) return undefined
  return { subject: `${row.id} (${row.state})`, expected: 'nothing moved, or a refund', found: tell(use) }
}

async function checkPayouts({ db, chain, asset, payTo }: CheckChainDeps): Promise<Check> {
  const check: Check = {
    name: 'chain: payouts',
    holds: 'every payout that was paid is on the chain, once, to its address',
    examined: 0n,
    differences: [],
  }
  for (let after = ''; ; ) {
    const rows = await db.selectFrom('payouts').selectAll().where('id', '>', after).orderBy('id').limit(PAGE).execute()
    if (rows.length === 0) return check
    const found = await eachOf(rows, (row) => judgePayout(chain, asset, payTo, row))
    for (const difference of found) note(check, difference)
    check.examined += BigInt(rows.length)
    after = rows.at(-1)!.id
  }
}

async function judgePayout(
  chain: ChainReader,
  asset: Hex,
  payTo: Hex,
  row: PayoutRow,
): Promise<Difference | undefined> {
  const wanted = `${row.amount_micro} to ${row.to_address} in ${row.transaction}`.toLowerCase()
  if (row.method === 'chain') {
    const use = await chain.authorization(asset, payTo, payoutNonce(row.id))
    if (row.state === 'paid')
      return wanted === tell(use) ? undefined : { subject: row.id, expected: wanted, found: tell(use) }
    return use.used && row.state === 'cancelled'
      ? { subject: row.id, expected: 'nothing moved', found: tell(use) }
      : undefined
  }
  if (row.state !== 'paid') return undefined
  const transfers = (await chain.transfers(row.transaction as Hex)) ?? []
  const proven = transfers.some(
    (one) =>
      one.from.toLowerCase() === payTo.toLowerCase() &&
      one.to.toLowerCase() === row.to_address &&
      one.value === row.amount_micro,
  )
  return proven ? undefined : { subject: row.id, expected: wanted, found: 'no such transfer' }
}

/** A payment may be on the chain and not yet in the books, or the books may move between two looks: then look again. */
async function checkBalance(deps: CheckChainDeps): Promise<Check> {
  const { chain, asset, payTo, db } = deps
  const check: Check = {
    name: 'chain: balance',
    holds: 'our address holds exactly what the books say',
    examined: 1n,
    differences: [],
  }
  for (let tries = 1; ; tries++) {
    const booked = await chainAccountMicro(db)
    const onItsWay = await underWayMicro(deps)
    const found = await chain.balanceOf(asset, payTo)
    if (found === booked + onItsWay) return check
    if (tries === TRIES) {
      const expected = `${booked} booked${onItsWay === 0n ? '' : `, and ${onItsWay} on the chain that is still being booked`}`
      note(check, {
        subject: payTo,
        expected,
        found: `${found}: ${found > booked + onItsWay ? 'more' : 'less'} by ${abs(found - booked - onItsWay)}`,
      })
      return check
    }
    await deps.pause(500)
  }
}

async function underWayMicro({ db, chain, asset, payTo }: CheckChainDeps): Promise<bigint> {
  const open = await db
    .selectFrom('settlements')
    .selectAll()
    .where('method', '=', 'x402')
    .where('state', 'in', ['pending', 'unknown'])
    .execute()
  const uses = await eachOf(open, (row) => chain.authorization(row.asset as Hex, row.payer as Hex, row.nonce as Hex))
  const leaving = await db
    .selectFrom('payouts')
    .selectAll()
    .where('state', '=', 'pending')
    .where('method', '=', 'chain')
    .execute()
  const left = await eachOf(leaving, (row) => chain.authorization(asset, payTo, payoutNonce(row.id)))
  const came = open.reduce((sum, row, index) => sum + (uses[index]!.used ? row.amount_micro : 0n), 0n)
  return leaving.reduce((sum, row, index) => sum - (left[index]!.used ? row.amount_micro : 0n), came)
}

const tell = (use: Use): string => {
  if (!use.used) return 'unused'
  return use.transfer
    ? `${use.transfer.value} to ${use.transfer.to} in ${use.transaction}`.toLowerCase()
    : 'used without a transfer'
}

function note(check: Check, difference: Difference | undefined) {
  if (difference && check.differences.length < MOST_SHOWN) check.differences.push(difference)
}

const abs = (value: bigint) => (value < 0n ? -value : value)

async function eachOf<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = []
  for (let start = 0; start < items.length; start += AT_ONCE)
    results.push(...(await Promise.all(items.slice(start, start + AT_ONCE).map(work))))
  return results
}
