import { usdcFromMicro } from '../../platform/money.ts'
import type { Finding } from './rule-result.ts'
import { endOf, type Window } from './windows.ts'

/** Room that a payment needs in one counter. SQL `hold_limits` is who gives it; here it is only foreseen and explained. */
export type CounterDemand = {
  scope: string
  window: Window
  period: string
  amountMicro: bigint
  measure: 'money' | 'count'
  /** Refuse when there is no room, also where the counter's own rule only warns. */
  enforce: boolean
  /** The limit as this process knows it; the counter's own definition decides. */
  foreseenLimitMicro: bigint
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

/** Whether there is room, and if not, how much would be, or when. */
export function evaluateDemand(demand: CounterDemand, state: CounterState | 'held', at: Date): Finding {
  const say = demand.measure === 'count' ? (count: bigint) => Number(count) : usdcFromMicro
  const unit = demand.measure === 'count' ? '' : ' USDC'
  const asked = say(demand.amountMicro)
  if (state === 'held')
    return {
      verdict: 'pass',
      reason: `The pre-authorisation holds its place under ${demand.rule}.`,
      asked,
      limit: say(demand.foreseenLimitMicro),
    }
  const usedMicro = usedOf(state)
  const [used, limit] = [say(usedMicro), say(state.limitMicro)]
  const common = { asked, limit, used }
  if (usedMicro + demand.amountMicro <= state.limitMicro)
    return {
      verdict: 'pass',
      reason: `${asked}${unit} on top of ${used}${unit} is within ${demand.rule} ${limit}.`,
      ...common,
    }
  const needed = say(usedMicro + demand.amountMicro)
  const resets = demand.amountMicro <= state.limitMicro ? endOf(demand.window, at) : null
  const raise = { path: demand.path, from: limit, to: needed }
  return {
    verdict: 'blocked',
    reason: `${asked}${unit} on top of ${used}${unit} is more than ${demand.rule} ${limit}.`,
    ...common,
    smallest_change: resets
      ? {
          text: `Raise ${demand.rule} to ${needed}, or ask again at ${resets.toISOString()}.`,
          ...raise,
          retry_at: resets.toISOString(),
        }
      : { text: `Raise ${demand.rule} to ${needed}.`, ...raise },
  }
}
