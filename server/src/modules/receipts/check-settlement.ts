import type { Check } from '@countersign/proof'
import { failedCheck, passedCheck, skippedCheck } from './checks.ts'

export type Transfer = { asset: string; from: string; to: string; value: bigint }

/** The token transfers of one mined transaction; null when the chain has no such transaction. */
export type FindTransfers = (transaction: `0x${string}`) => Promise<readonly Transfer[] | null>

type Members = Record<string, unknown>

// A reported payment, and one that the chain does not show, are not looked up.
const NOT_ON_CHAIN = ['reported', 'not_found']
const NAME = 'settlement'
const DEADLINE_MS = 5_000

/** Checks that the payment a receipt names is on the chain. Without a reachable chain the check is skipped. */
export async function checkSettlement(findTransfers: FindTransfers | undefined, settlement: unknown): Promise<Check> {
  const claim = readSettlement(settlement)
  if (claim && NOT_ON_CHAIN.includes(String(claim.members.status)))
    return skippedCheck(
      NAME,
      `The receipt calls the payment '${claim.members.status}': it does not say that the chain shows it.`,
    )
  if (!claim) return skippedCheck(NAME, 'The receipt names no transaction on a chain.')
  if (!findTransfers) return skippedCheck(NAME, 'This service has no chain configured.')
  let transfers: readonly Transfer[] | null
  try {
    transfers = await withDeadline(findTransfers(claim.transaction))
  } catch {
    return skippedCheck(NAME, 'The chain could not be reached.')
  }
  if (!transfers) return failedCheck(NAME, `The chain has no transaction ${claim.transaction}.`)
  return transfers.some((transfer) => matches(transfer, claim.members))
    ? passedCheck(NAME, `The transaction ${claim.transaction} moved exactly this amount from this payer.`)
    : failedCheck(NAME, `The transaction ${claim.transaction} did not move this amount from this payer.`)
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
  const isSameAddress = (receiptAddress: unknown, chainAddress: string) =>
    typeof receiptAddress === 'string' && receiptAddress.toLowerCase() === chainAddress.toLowerCase()
  return (
    isSameAddress(payer, transfer.from) &&
    amount === transfer.value.toString() &&
    (asset === undefined || isSameAddress(asset, transfer.asset)) &&
    (pay_to === undefined || isSameAddress(pay_to, transfer.to))
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
