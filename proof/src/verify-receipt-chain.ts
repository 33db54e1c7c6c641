import { allHold, type Check, failed, isJsonObject, passed, skipped, type Verification } from './checks.ts'
import { hashReceipt, receiptProblem } from './receipt.ts'
import { type VerifyReceiptOptions, verifyReceipt } from './verify-receipt.ts'

/** A run has a handful of receipts; a longer list is not a chain of one run. */
export const MAX_CHAIN_LENGTH = 10_000

/**
 * Verifies the receipts of one run, oldest first: each carries the hash of the one before it, and the first carries
 * none. With `options`, every receipt is verified in full as well; without, only the links between them are.
 */
export function verifyReceiptChain(
  receipts: readonly unknown[],
  options?: Omit<VerifyReceiptOptions, 'previous'>,
): Verification {
  const does_not_prove = [
    'That these are all receipts of the run: later ones may have been left out.',
    ...(options ? [] : ['That the issuer signed them: no keys were given, so only the links were checked.']),
  ]
  if (!Array.isArray(receipts) || receipts.length === 0 || receipts.length > MAX_CHAIN_LENGTH) {
    const checks = [failed('chain', `A chain is a list of 1 to ${MAX_CHAIN_LENGTH} receipts.`)]
    return { ok: false, checks, does_not_prove }
  }
  const checks = receipts.flatMap((receipt, i) => {
    const link = checkLink(i, receipt, receipts[i - 1])
    return options ? [link, checkReceipt(i, receipt, options)] : [link]
  })
  if (!options) checks.push(skipped('signatures', 'No key set was given.'))
  return { ok: allHold(checks, ['link[0]']), checks, does_not_prove }
}

function checkLink(i: number, receipt: unknown, before: unknown): Check {
  const name = `link[${i}]`
  const problem = receiptProblem(receipt)
  if (problem !== undefined || !isJsonObject(receipt)) return failed(name, `Not a receipt: ${problem}`)
  if (i === 0) {
    return receipt.prev_hash === null
      ? passed(name, 'The first receipt of the run.')
      : failed(name, 'The chain does not start at the first receipt of its run.')
  }
  if (!isJsonObject(before) || receiptProblem(before) !== undefined)
    return failed(name, 'There is no receipt before it.')
  if (before.run_id !== receipt.run_id) return failed(name, 'It is of another run than the receipt before it.')
  try {
    return hashReceipt(before) === receipt.prev_hash
      ? passed(name, 'It carries the hash of the receipt before it.')
      : failed(name, 'It does not carry the hash of the receipt before it.')
  } catch (error) {
    return failed(name, error instanceof Error ? error.message : String(error))
  }
}

function checkReceipt(i: number, receipt: unknown, options: VerifyReceiptOptions): Check {
  const { ok, checks } = verifyReceipt(receipt, options)
  if (ok) return passed(`receipt[${i}]`, 'It verifies on its own.')
  return failed(`receipt[${i}]`, checks.find((check) => check.ok !== true)?.reason ?? 'It does not verify.')
}
