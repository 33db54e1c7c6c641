import { Type } from 'typebox'
import { microFromUsdc, roundingHint } from '../../platform/money.ts'
import { invalid } from '../../platform/problem.ts'
import { pattern } from '../../platform/schema.ts'

const MAX_USDC = 1_000_000

/** `amount` in atomic units, or `amount_usdc` for people; both only when they agree. */
export const amountFields = {
  amount: Type.Optional(
    Type.String({
      ...pattern('^[1-9][0-9]{0,12}$', 'a whole number of atomic units above zero, as text, with at most 13 digits'),
      description: 'Atomic units (micro-USDC); authoritative.',
    }),
  ),
  amount_usdc: Type.Optional(Type.Number({ exclusiveMinimum: 0, maximum: MAX_USDC })),
}

export function readAmount({ amount, amount_usdc }: { amount?: string; amount_usdc?: number }): bigint {
  const exact = amount === undefined ? undefined : BigInt(amount)
  const fromUsdc = amount_usdc === undefined ? undefined : microFromUsdc(amount_usdc)
  if (amount_usdc !== undefined && fromUsdc === undefined)
    throw invalid(`body/amount_usdc has more than six decimals.${roundingHint(amount_usdc)}`)
  if (exact !== undefined && fromUsdc !== undefined && exact !== fromUsdc)
    throw invalid('body/amount and body/amount_usdc differ.')
  const micro = exact ?? fromUsdc
  if (micro === undefined) throw invalid('body must have an amount or an amount_usdc.')
  if (micro > BigInt(MAX_USDC) * 1_000_000n) throw invalid(`body/amount must be at most ${MAX_USDC} USDC.`)
  return micro
}
