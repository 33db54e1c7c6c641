import type { CountedBy } from '@countersign/proof'

/** What SQL `hold_limits` answers, and what stands in the row of a run, a pre-authorisation or a trade while it is open. */
export type StoredHold = {
  scope: string
  period: string
  amount_micro: string
  on_success: string
  measure: 'money' | 'count'
  slice_ends_at?: string
}

/** The counters that a receipt names: those of budgets and mandates. Velocity rules and payers have counters as well. */
const isNamed = ({ scope }: StoredHold) => scope.startsWith('budget:') || scope.startsWith('mandate:')

/** What SQL `settle_holds` counts when a holder has spent `actualMicro`, by counter; sorted, so that it is the same for every process. */
export function countedBy(holds: readonly StoredHold[], actualMicro: bigint): CountedBy[] {
  const amounts = new Map<string, { hold: StoredHold; amount: bigint }>()
  for (const hold of holds) {
    if (!isNamed(hold) || hold.on_success !== 'spend') continue
    const key = JSON.stringify([hold.scope, hold.period, hold.slice_ends_at ?? ''])
    const heldMicro = BigInt(hold.amount_micro)
    const amount = hold.measure === 'count' || heldMicro < actualMicro ? heldMicro : actualMicro
    amounts.set(key, { hold, amount: amount + (amounts.get(key)?.amount ?? 0n) })
  }
  return [...amounts]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, { hold, amount }]) => ({
      counter: hold.scope,
      period: hold.period,
      ...(hold.slice_ends_at !== undefined && { slice_ends_at: hold.slice_ends_at }),
      measure: hold.measure,
      amount: amount.toString(),
    }))
}
