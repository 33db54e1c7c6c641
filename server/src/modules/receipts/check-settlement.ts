import type { Check } from '@countersign/proof'
import { failed, passed, skipped } from './checks.ts'

export type Transfer = { asset: string; from: string; to: string; value: bigint }

/** The token transfers of one mined transaction; null when the chain has no such transaction. */
export type FindTransfers = (transaction: `0x${string}`) => Promise<readonly Transfer[] | null>

type Members = Record<string, unknown>

const NAME = 'settlement'
const DEADLINE_MS = 5_000

/** Checks that the payment a receipt names is on the chain. Without a reachable chain the check is skipped. */
export async function checkSettlement(findTransfers: FindTransfers | undefined, settlement: unknown): Promise<Check> {
  const claim = readSettlement(settlement)
  if (!claim) return skipped(NAME, 'The receipt names no transaction on a chain.')
  if (!findTransfers) return skipped(NAME, 'This service has no chain to ask.')
  let transfers: readonly Transfer[] | null
  try {
    transfers = await withDeadline(findTransfers(claim.transaction))
  } catch {
    return skipped(NAME, 'The chain could not be reached.')
  }
  if (!transfers) return failed(NAME, `The chain has no transaction ${claim.transaction}.`)
  return transfers.some((transfer) => matches(transfer, claim.members))
    ? passed(NAME, `The transaction ${claim.transaction} moved exactly this amount from this payer.`)
    : failed(NAME, `The transaction ${claim.transaction} did not move this amount from this payer.`)
}

function readSettlement(settlement: unknown): { transaction: `0x${string}`; members: Members } | undefined {
  if (typeof settlement !== 'object' || settlement === null) return undefined
  const members = settlement as Members
  const { transaction } = members
  if (typeof transaction !== 'string' || !/^0x[0-9a-fA-F]{64}$/.test(transaction)) return undefined
  return { transaction: transaction as `0x${string}`, members }
}

/** Payer and amount are required and must match; asset and payee must match where the receipt names them. */
function matches(transfer: Transfer, { payer, amount, asset, pay_to }: Members): boolean {
  const sameAddress = (stated: unknown, actual: string) =>
    typeof stated === 'string' && stated.toLowerCase() === actual.toLowerCase()
  return (
    sameAddress(payer, transfer.from) &&
    amount === transfer.value.toString() &&
    (asset === undefined || sameAddress(asset, transfer.asset)) &&
    (pay_to === undefined || sameAddress(pay_to, transfer.to))
  )
}

async function withDeadline<T>(work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('The chain did not answer in time.')), DEADLINE_MS)
  })
  try {
    return await Promise.race([work, timeout])
  } finally {
    clearTimeout(timer)
  }
}
