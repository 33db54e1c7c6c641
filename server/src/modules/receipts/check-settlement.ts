import type { Check } from '@countersign/proof'
import { failed, passed, skipped } from './checks.ts'

export type Transfer = { asset: string; from: string; to: string; value: bigint }

/** The token transfers of one mined transaction; null when the chain does not know it. */
export type FindTransfers = (transaction: `0x${string}`) => Promise<readonly Transfer[] | null>

type Members = Record<string, unknown>

const NAME = 'settlement'
const DEADLINE_MS = 5_000

/** Whether the payment that a receipt names is on the chain. What cannot be asked is skipped, never guessed. */
export async function checkSettlement(transfers: FindTransfers | undefined, settlement: unknown): Promise<Check> {
  const stated = readSettlement(settlement)
  if (!stated) return skipped(NAME, 'The receipt names no transaction on a chain.')
  if (!transfers) return skipped(NAME, 'No chain can be asked here.')
  let found: readonly Transfer[] | null
  try {
    found = await withDeadline(transfers(stated.transaction))
  } catch {
    return skipped(NAME, 'The chain could not be reached.')
  }
  if (!found) return failed(NAME, `The chain does not know the transaction ${stated.transaction}.`)
  return found.some((transfer) => matches(transfer, stated.members))
    ? passed(NAME, `The transaction ${stated.transaction} moved exactly this amount from this payer.`)
    : failed(NAME, `The transaction ${stated.transaction} did not move this amount from this payer.`)
}

function readSettlement(settlement: unknown): { transaction: `0x${string}`; members: Members } | undefined {
  if (typeof settlement !== 'object' || settlement === null) return undefined
  const members = settlement as Members
  const { transaction } = members
  if (typeof transaction !== 'string' || !/^0x[0-9a-fA-F]{64}$/.test(transaction)) return undefined
  return { transaction: transaction as `0x${string}`, members }
}

/** Payer and amount must be stated and right; asset and payee must be right where they are stated. */
function matches(transfer: Transfer, { payer, amount, asset, pay_to }: Members): boolean {
  const same = (stated: unknown, real: string) =>
    typeof stated === 'string' && stated.toLowerCase() === real.toLowerCase()
  return (
    same(payer, transfer.from) &&
    amount === transfer.value.toString() &&
    (asset === undefined || same(asset, transfer.asset)) &&
    (pay_to === undefined || same(pay_to, transfer.to))
  )
}

async function withDeadline<T>(work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('The chain did not answer in time.')), DEADLINE_MS)
  })
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}
