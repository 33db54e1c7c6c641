import { allChecksPass, type Check, failed, isJsonObject, passed, skipped, type Verification } from './checks.ts'
import { hashReceipt, receiptProblem } from './receipt.ts'
import { type VerifyReceiptOptions, verifyReceipt } from './verify-receipt.ts'

/** A run has only a few receipts; a longer list is not the chain of one run. */
export const MAX_CHAIN_LENGTH = 10_000

/**
 * Verifies the receipts of one run, oldest first: each has the hash of the previous one, and the first has none. With
 * `options`, every receipt is also verified in full; without, only the links between them are.
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
  const checks = receipts.flatMap((receipt, index) => {
    const link = checkLink(index, receipt, receipts[index - 1])
    return options ? [link, checkReceipt(index, receipt, options)] : [link]
  })
  if (!options) checks.push(skipped('signatures', 'No key set was given.'))
  return { ok: allChecksPass(checks, ['link[0]']), checks, does_not_prove }
}

function checkLink(index: number, receipt: unknown, previous: unknown): Check {
  const name = `link[${index}]`
  const problem = receiptProblem(receipt)
  if (problem !== undefined || !isJsonObject(receipt)) return failed(name, `Not a receipt: ${problem}`)
  if (index === 0) {
    return receipt.prev_hash === null
      ? passed(name, 'The first receipt of the run.')
      : failed(name, 'The chain does not start at the first receipt of its run.')
  }
  if (!isJsonObject(previous) || receiptProblem(previous) !== undefined)
    return failed(name, 'There is no previous receipt.')
  if (previous.run_id !== receipt.run_id) return failed(name, 'It belongs to another run than the previous receipt.')
  try {
    return hashReceipt(previous) === receipt.prev_hash
      ? passed(name, 'It has the hash of the previous receipt.')
      : failed(name, 'It does not have the hash of the previous receipt.')
  } catch (error) {
    return failed(name, error instanceof Error ? error.message : String(error))
  }
}

function checkReceipt(index: number, receipt: unknown, options: VerifyReceiptOptions): Check {
  const { ok, checks } = verifyReceipt(receipt, options)
  if (ok) return passed(`receipt[${index}]`, 'It verifies on its own.')
  return failed(`receipt[${index}]`, checks.find((check) => check.ok !== true)?.reason ?? 'It does not verify.')
}
