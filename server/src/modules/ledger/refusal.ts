import { usdcFromMicro } from '../../platform/money.ts'
import { conflict, Problem } from '../../platform/problem.ts'

/** Turns a refusal raised by the SQL function `refuse` into an API error; any other error passes unchanged. */
export async function translateRefusal<T>(work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    throw toProblem(error) ?? error
  }
}

function toProblem(error: unknown): Problem | undefined {
  const { code, message, detail } = error as { code?: unknown; message?: string; detail?: string }
  if (typeof code !== 'string' || !/^CS\d{3}$/.test(code)) return undefined
  const details = detail ? (JSON.parse(detail) as Record<string, string>) : {}
  if (message === 'wallet_balance') return insufficientBalance(BigInt(details.available!))
  if (message === 'escrow_ended') return conflict(`This escrow is ${details.state}.`, { details })
  return undefined
}

export const insufficientBalance = (availableMicro: bigint) =>
  new Problem('error', `The wallet has only ${usdcFromMicro(availableMicro)} USDC available.`, {
    status: 409,
    code: 'conflict',
    details: { available: availableMicro.toString() },
    nextAction: 'Top the wallet up, or use a smaller amount.',
  })
