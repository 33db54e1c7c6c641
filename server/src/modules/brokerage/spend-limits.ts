import { usdcFromMicro } from '../../platform/money.ts'
import { notionalMicro, type RwaReading } from './broker.ts'
import { buildCheck, type Check, describeOrigin, positionAfterE8, type RiskFacts, requiredMicro } from './risk-facts.ts'

/** When only these checks fail, the run is refused with `budget_exceeded` (422); any other failed check makes it `policy_blocked`. */
export const SPEND_LIMIT_CHECKS: ReadonlySet<string> = new Set([
  'order_notional',
  'daily_notional',
  'buying_power',
  'concentration',
  'float_cap',
])

export function checkOrderNotional({ terms, policy }: RiskFacts): Check | null {
  if (policy.maxNotionalMicro === null) return null
  const limit = usdcFromMicro(policy.maxNotionalMicro)
  const actual = usdcFromMicro(terms.notionalMicro)
  const reason = `${actual} USDC is above the ${limit} USDC an order may commit${describeOrigin(policy, 'order_notional')}.`
  return buildCheck('order_notional', terms.notionalMicro <= policy.maxNotionalMicro, limit, actual, reason)
}

export function checkDailyNotional({ terms, policy, spentTodayMicro }: RiskFacts): Check | null {
  if (policy.maxPerDayMicro === null) return null
  const total = spentTodayMicro + terms.notionalMicro
  const limit = usdcFromMicro(policy.maxPerDayMicro)
  const actual = usdcFromMicro(total)
  const reason = `${actual} USDC today is above the ${limit} USDC a day allows${describeOrigin(policy, 'daily_notional')}.`
  return buildCheck('daily_notional', total <= policy.maxPerDayMicro, limit, actual, reason)
}

export function checkBuyingPower({ terms, quote, account }: RiskFacts): Check {
  const neededMicro = requiredMicro(terms, quote, account)
  const limit = usdcFromMicro(account.buyingPowerMicro)
  const actual = usdcFromMicro(neededMicro)
  const ok = neededMicro <= account.buyingPowerMicro
  return buildCheck('buying_power', ok, limit, actual, `The order needs ${actual} USDC and ${limit} USDC is free.`)
}

/** The share of the account's equity that the position in this symbol would have. */
export function checkConcentration({ terms, policy, quote, account }: RiskFacts): Check | null {
  if (policy.maxConcentration === null) return null
  const positionE8 = positionAfterE8(terms, account)
  const exposureMicro = notionalMicro(quote.markE8, positionE8 < 0n ? -positionE8 : positionE8)
  const marginMicro = terms.leverageE2 === null ? exposureMicro : (exposureMicro * 100n) / terms.leverageE2
  const equity = account.equityMicro > 0n ? account.equityMicro : 1n
  const share = Number((marginMicro * 10_000n) / equity) / 10_000
  const reason = `${terms.symbol} would be ${share} of the account, above ${policy.maxConcentration}.`
  return buildCheck('concentration', share <= policy.maxConcentration, policy.maxConcentration, share, reason)
}

export function checkFloatShare({ policy, terms }: RiskFacts, reading: RwaReading): Check | null {
  if (policy.maxFloatShare === null) return null
  const limit = Math.floor(reading.nearReferenceUsd * policy.maxFloatShare * 100) / 100
  const actual = usdcFromMicro(terms.notionalMicro)
  const reason = `The order is more than ${policy.maxFloatShare} of what is offered near the reference.`
  return buildCheck('float_cap', actual <= limit, limit, actual, reason)
}
