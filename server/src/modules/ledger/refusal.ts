import { usdcFromMicro } from '../../platform/money.ts'
import { conflict, Problem } from '../../platform/problem.ts'

/** What SQL `refuse` raised, in the words of the API; any other error stays what it is. */
export async function refusing<T>(work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    throw problemOf(error) ?? error
  }
}

function problemOf(error: unknown): Problem | undefined {
  const { code, message, detail } = error as { code?: unknown; message?: string; detail?: string }
  if (typeof code !== 'string' || !/^CS\d{3}$/.test(code)) return undefined
  const details = detail ? (JSON.parse(detail) as Record<string, string>) : {}
  if (message === 'wallet_balance') return insufficient(BigInt(details.available!))
  if (message === 'escrow_ended') return conflict(`This escrow is ${details.state}.`, { details })
  return undefined
}

export const insufficient = (availableMicro: bigint) =>
  new Problem('error', `The wallet has only ${usdcFromMicro(availableMicro)} USDC available.`, {
    status: 409,
    code: 'conflict',
    details: { available: availableMicro.toString() },
    nextAction: 'Top the wallet up, or take less.',
  })
