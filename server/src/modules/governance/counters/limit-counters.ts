import { usdcFromMicro } from '../../../platform/money.ts'
import type { Finding } from '../rules/rule-result.ts'
import { endOf, type Window } from './windows.ts'

/** The amount a payment needs in one counter. Evaluated here to explain the result; SQL `hold_limits` decides. */
export type CounterDemand = {
  scope: string
  window: Window
  period: string
  amountMicro: bigint
  measure: 'money' | 'count'
  /** When the amount leaves a rolling window. */
  sliceEndsAt?: Date
  /** Refuse the payment when the limit is reached, even if the counter's own rule only warns. */
  enforce: boolean
  /** The limit known to this process; the counter's stored definition decides. */
  expectedLimitMicro: bigint
  rule: string
  path: string
}

export type CounterState = {
  limitMicro: bigint
  softLimitMicro: bigint | null
  spentMicro: bigint
  reservedMicro: bigint
}

export const usedOf = ({ spentMicro, reservedMicro }: Pick<CounterState, 'spentMicro' | 'reservedMicro'>) =>
  spentMicro + reservedMicro

/** Whether the limit is reached, and if so, the limit or the time at which the payment would pass. */
export function evaluateDemand(demand: CounterDemand, state: CounterState | 'held', at: Date): Finding {
  const format = demand.measure === 'count' ? (count: bigint) => Number(count) : usdcFromMicro
  const asked = format(demand.amountMicro)
  if (state === 'held')
    return {
      verdict: 'pass',
      reason: `The pre-authorisation already holds this amount under ${demand.rule}.`,
      asked,
      limit: format(demand.expectedLimitMicro),
    }
  const usedMicro = usedOf(state)
  const [used, limit] = [format(usedMicro), format(state.limitMicro)]
  const common = { asked, limit, used }
  const isCount = demand.measure === 'count'
  const needed = format(usedMicro + demand.amountMicro)
  if (usedMicro + demand.amountMicro <= state.limitMicro)
    return {
      verdict: 'pass',
      reason: isCount
        ? `This is payment ${needed} of the ${limit} that ${demand.rule} allows.`
        : `${asked} USDC on top of ${used} USDC is within ${demand.rule} ${limit}.`,
      ...common,
    }
  const resetsAt = demand.amountMicro <= state.limitMicro ? endOf(demand.window, at) : null
  const change = { path: demand.path, from: limit, to: needed }
  return {
    verdict: 'blocked',
    reason: isCount
      ? `This would be payment ${needed}, and ${demand.rule} allows ${limit}.`
      : `${asked} USDC on top of ${used} USDC is more than ${demand.rule} ${limit}.`,
    ...common,
    smallest_change: resetsAt
      ? {
          text: `Raise ${demand.rule} to ${needed}, or ask again at ${resetsAt.toISOString()}.`,
          ...change,
          retry_at: resetsAt.toISOString(),
        }
      : { text: `Raise ${demand.rule} to ${needed}.`, ...change },
  }
}
