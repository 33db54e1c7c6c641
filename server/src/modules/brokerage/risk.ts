import { usdcFromMicro } from '../../platform/money.ts'
import {
  type BrokerAccount,
  type BrokerPosition,
  divideUp,
  type Instrument,
  notionalMicro,
  numberFromE8,
  type Quote,
  type RwaReading,
} from './broker.ts'
import { distanceToLiquidationBps, liquidationPriceE8 } from './liquidation.ts'
import type { TradePolicy } from './policies.ts'
import { isMarketable, type Terms, touchOf, worstPriceE8 } from './terms.ts'

export type CheckValue = number | string | boolean | null
export type Check = {
  id: string
  /** `review` wants a person; `fail` refuses. */
  result: 'pass' | 'review' | 'fail'
  limit: CheckValue
  actual: CheckValue
  reason?: string
}

export type RiskFacts = {
  terms: Terms
  policy: TradePolicy
  instrument: Instrument
  quote: Quote
  account: BrokerAccount
  reading: RwaReading | null
  spentTodayMicro: bigint
  duplicateClientOrderId: boolean
  killSwitch: boolean
  agentId: string | null
  agentFrozen: boolean
  now: Date
}

/** Checks that money decides: a refusal by one of these is `budget_exceeded`, by any other `policy_blocked`. */
const MONEY_CHECKS: ReadonlySet<string> = new Set([
  'order_notional',
  'daily_notional',
  'buying_power',
  'concentration',
  'float_cap',
])

export type Verdict =
  | { outcome: 'execute' }
  | { outcome: 'pending'; policyVerdict: 'requires_human' | 'borderline' | 'override' }
  | { outcome: 'rejected'; error: 'budget_exceeded' | 'policy_blocked'; message: string }

/** Every check that applies, in a fixed order: the whole list is the explanation, not only the first refusal. */
export function assessRisk(facts: RiskFacts): Check[] {
  const { terms } = facts
  const checks: (Check | null)[] = [
    killSwitch(facts),
    agent(facts),
    instrumentAllowed(facts),
    terms.type === 'spend' ? merchantAllowed(facts) : null,
    duplicate(facts),
    halt(facts),
    session(facts),
    quoteAge(facts),
    orderNotional(facts),
    dailyNotional(facts),
    terms.leverageE2 === null ? null : leverageCap(facts),
    terms.leverageE2 === null ? null : liquidationDistance(facts),
    addsExposure(facts) ? buyingPower(facts) : holding(facts),
    addsExposure(facts) && terms.type !== 'spend' ? concentration(facts) : null,
    priceCollar(facts),
    terms.limitPriceE8 === null ? null : marketable(facts),
    // An illustration prices a rehearsal; it can refuse nothing.
    facts.reading && !facts.reading.preview ? basisCap(facts, facts.reading) : null,
    facts.reading && !facts.reading.preview && addsExposure(facts) ? floatCap(facts, facts.reading) : null,
    terms.type === 'earn' && terms.orderSide === 'sell' ? earnLock(facts) : null,
    approvalThreshold(facts),
  ]
  return checks.filter((check) => check !== null)
}

/** What the checks add up to. `overridden`: the tenant's default would have refused what its chosen policy lets through. */
export function judge(checks: readonly Check[], overridden: boolean): Verdict {
  const failed = checks.filter((check) => check.result === 'fail')
  if (failed.length > 0) {
    // An order too large for the money is too large for the market as well; that makes it no other refusal.
    const decisive = failed.filter((check) => check.id !== 'price_collar')
    const money = decisive.length > 0 && decisive.every((check) => MONEY_CHECKS.has(check.id))
    const message = failed.map((check) => check.reason ?? check.id).join(' ')
    return { outcome: 'rejected', error: money ? 'budget_exceeded' : 'policy_blocked', message }
  }
  const reviews = checks.filter((check) => check.result === 'review')
  if (reviews.length === 0) return { outcome: 'execute' }
  if (overridden) return { outcome: 'pending', policyVerdict: 'override' }
  const onlyDoubt = reviews.every((check) => check.id === 'marketable')
  return { outcome: 'pending', policyVerdict: onlyDoubt ? 'borderline' : 'requires_human' }
}

/** Margin for what a perp adds to the position, the whole price for anything else; fees on top. */
export function requiredMicro(terms: Terms, quote: Quote, account: BrokerAccount): bigint {
  const notional = notionalMicro(touchOf(terms.orderSide, quote), addedE8(terms, account))
  const margin = terms.leverageE2 === null ? notional : divideUp(notional * 100n, terms.leverageE2)
  return margin + terms.estimatedFeesMicro
}

export const positionOf = (account: BrokerAccount, symbol: string): BrokerPosition | undefined =>
  account.positions.find((position) => position.symbol === symbol)

/** The signed position that would stand after the whole order. */
export function positionAfterE8(terms: Terms, account: BrokerAccount): bigint {
  const held = positionOf(account, terms.symbol)?.quantityE8 ?? 0n
  return held + (terms.orderSide === 'buy' ? terms.quantityE8 : -terms.quantityE8)
}

/** Closing a perp frees margin; only what goes beyond the open position takes more. */
function addedE8(terms: Terms, account: BrokerAccount): bigint {
  const held = positionOf(account, terms.symbol)?.quantityE8 ?? 0n
  const opposite = terms.type === 'perp' && (terms.orderSide === 'buy' ? held < 0n : held > 0n)
  if (!opposite) return terms.quantityE8
  const closing = held < 0n ? -held : held
  return terms.quantityE8 > closing ? terms.quantityE8 - closing : 0n
}

/** A sale gives back what is held; a perp in either direction, and every buy, commits more. */
const addsExposure = ({ terms }: RiskFacts) => terms.type === 'perp' || terms.orderSide === 'buy'

const check = (
  id: string,
  ok: boolean,
  limit: CheckValue,
  actual: CheckValue,
  reason: string,
  otherwise: 'fail' | 'review' = 'fail',
): Check => (ok ? { id, result: 'pass', limit, actual } : { id, result: otherwise, limit, actual, reason })

const killSwitch = (f: RiskFacts) =>
  check('kill_switch', !f.killSwitch, false, f.killSwitch, 'Trading is switched off for this tenant.')

function agent({ policy, agentId, agentFrozen }: RiskFacts): Check | null {
  if (agentId === null) return null
  if (agentFrozen) return check('agent', false, 'not frozen', agentId, `Agent '${agentId}' is frozen.`)
  const allowed = policy.allowedAgents === null || policy.allowedAgents.includes(agentId)
  const ok = allowed && !policy.deniedAgents.includes(agentId)
  return check('agent', ok, listed(policy.allowedAgents), agentId, `${policy.name} does not let '${agentId}' trade.`)
}

function instrumentAllowed({ terms, policy }: RiskFacts): Check {
  const named = (list: readonly string[]) => list.includes(terms.type) || list.includes(terms.symbol)
  const ok =
    (policy.allowedInstruments === null || named(policy.allowedInstruments)) && !named(policy.deniedInstruments)
  return check(
    'instrument_allowed',
    ok,
    listed(policy.allowedInstruments),
    `${terms.type}:${terms.symbol}`,
    `${policy.name} denies ${terms.symbol} (${terms.type}).`,
  )
}

function merchantAllowed({ terms, policy }: RiskFacts): Check {
  const allowed = policy.allowedMerchants === null || policy.allowedMerchants.includes(terms.symbol)
  const ok = allowed && !policy.deniedMerchants.includes(terms.symbol)
  const reason = `${policy.name} denies this merchant.`
  return check('merchant_allowed', ok, listed(policy.allowedMerchants), terms.symbol, reason)
}

const duplicate = (f: RiskFacts) =>
  check(
    'duplicate_client_order_id',
    !f.duplicateClientOrderId,
    false,
    f.duplicateClientOrderId,
    'This client_order_id has been used before.',
  )

const halt = ({ quote, terms }: RiskFacts) =>
  check('halt', !quote.halted, false, quote.halted, `${terms.symbol} is halted.`)

const session = ({ quote, terms }: RiskFacts) =>
  check(
    'session',
    quote.session === 'open' || quote.session === 'always',
    'open',
    quote.session,
    `The session of ${terms.symbol} is ${quote.session === 'holiday' ? 'closed for a holiday' : 'closed'}.`,
    'review',
  )

/** A closed session's last price is old by nature; a person decides on it, and it is taken anew at the open. */
function quoteAge({ quote, policy, now }: RiskFacts): Check | null {
  if (quote.session === 'closed' || quote.session === 'holiday') return null
  const age = Math.max(0, Math.floor((now.getTime() - quote.observedAt.getTime()) / 1000))
  const ok = age <= policy.maxQuoteAgeSeconds
  return check('quote_age', ok, policy.maxQuoteAgeSeconds, age, `The last quote is ${age} seconds old.`)
}

function orderNotional({ terms, policy }: RiskFacts): Check | null {
  if (policy.maxNotionalMicro === null) return null
  const limit = usdcFromMicro(policy.maxNotionalMicro)
  const actual = usdcFromMicro(terms.notionalMicro)
  const reason = `${actual} USDC is above the ${limit} USDC an order may commit.`
  return check('order_notional', terms.notionalMicro <= policy.maxNotionalMicro, limit, actual, reason)
}

function dailyNotional({ terms, policy, spentTodayMicro }: RiskFacts): Check | null {
  if (policy.maxPerDayMicro === null) return null
  const total = spentTodayMicro + terms.notionalMicro
  const limit = usdcFromMicro(policy.maxPerDayMicro)
  const actual = usdcFromMicro(total)
  const reason = `${actual} USDC today is above the ${limit} USDC a day allows.`
  return check('daily_notional', total <= policy.maxPerDayMicro, limit, actual, reason)
}

function leverageCap({ terms, policy }: RiskFacts): Check | null {
  if (policy.maxLeverage === null) return null
  const leverage = Number(terms.leverageE2) / 100
  const reason = `Leverage ${leverage} is above ${policy.maxLeverage}.`
  return check('leverage_cap', leverage <= policy.maxLeverage, policy.maxLeverage, leverage, reason)
}

function liquidationDistance({ terms, policy, instrument, quote }: RiskFacts): Check | null {
  if (policy.minLiquidationDistanceBps === null || terms.leverageE2 === null || !instrument.perp) return null
  const liquidation = liquidationPriceE8({
    direction: terms.orderSide === 'buy' ? 'long' : 'short',
    entryPriceE8: touchOf(terms.orderSide, quote),
    leverageE2: terms.leverageE2,
    maintenanceMarginBps: instrument.perp.maintenanceMarginBps,
  })
  const distance = distanceToLiquidationBps(quote.markE8, liquidation)
  const ok = distance >= policy.minLiquidationDistanceBps
  const reason = `Liquidation is only ${distance} bps away.`
  return check('liquidation_distance', ok, policy.minLiquidationDistanceBps, distance, reason)
}

function buyingPower({ terms, quote, account }: RiskFacts): Check {
  const required = requiredMicro(terms, quote, account)
  const limit = usdcFromMicro(account.buyingPowerMicro)
  const actual = usdcFromMicro(required)
  const ok = required <= account.buyingPowerMicro
  return check('buying_power', ok, limit, actual, `The order needs ${actual} USDC and ${limit} USDC is free.`)
}

function holding({ terms, account }: RiskFacts): Check {
  const held = positionOf(account, terms.symbol)?.quantityE8 ?? 0n
  const limit = numberFromE8(held)
  const actual = numberFromE8(terms.quantityE8)
  const reason = `The account holds ${limit} ${terms.symbol}, less than the ${actual} to be sold.`
  return check('holding', terms.quantityE8 <= held, limit, actual, reason)
}

/** The share of the account's equity that would stand in this one symbol. */
function concentration({ terms, policy, quote, account }: RiskFacts): Check | null {
  if (policy.maxConcentration === null) return null
  const after = positionAfterE8(terms, account)
  const exposure = notionalMicro(quote.markE8, after < 0n ? -after : after)
  const margined = terms.leverageE2 === null ? exposure : (exposure * 100n) / terms.leverageE2
  const equity = account.equityMicro > 0n ? account.equityMicro : 1n
  const share = Number((margined * 10_000n) / equity) / 10_000
  const reason = `${terms.symbol} would be ${share} of the account, above ${policy.maxConcentration}.`
  return check('concentration', share <= policy.maxConcentration, policy.maxConcentration, share, reason)
}

/** Where the order is expected to trade, slippage included, against the worst price the house accepts. */
function priceCollar({ terms, quote }: RiskFacts): Check {
  const touch = touchOf(terms.orderSide, quote)
  const slip = BigInt(Math.round(terms.estimatedSlippageBps * 100))
  const sign = terms.orderSide === 'buy' ? 1n : -1n
  const expected = (touch * (1_000_000n + sign * slip)) / 1_000_000n
  const worst = worstPriceE8({ ...terms, limitPriceE8: null, notionalCapMicro: null }, terms.collarBps)
  const ok = terms.orderSide === 'buy' ? expected <= worst : expected >= worst
  const reason = `The order is expected to trade at ${numberFromE8(expected)}, outside the collar.`
  return check('price_collar', ok, numberFromE8(worst), numberFromE8(expected), reason)
}

function marketable({ terms, quote }: RiskFacts): Check {
  const limit = terms.limitPriceE8 ?? 0n
  const ok = isMarketable(terms.orderSide, terms.limitPriceE8, quote)
  const touch = numberFromE8(touchOf(terms.orderSide, quote))
  const reason = 'The limit does not trade now; the order would rest in the market.'
  return check('marketable', ok, numberFromE8(limit), touch, reason, 'review')
}

function basisCap({ policy, terms }: RiskFacts, reading: RwaReading): Check | null {
  if (policy.maxBasisBps === null) return null
  const ok = Math.abs(reading.basisBps) <= policy.maxBasisBps
  const reason = `${terms.symbol} trades ${reading.basisBps} bps from its reference.`
  return check('basis_cap', ok, policy.maxBasisBps, reading.basisBps, reason)
}

function floatCap({ policy, terms }: RiskFacts, reading: RwaReading): Check | null {
  if (policy.maxFloatShare === null) return null
  const limit = Math.floor(reading.nearReferenceUsd * policy.maxFloatShare * 100) / 100
  const actual = usdcFromMicro(terms.notionalMicro)
  const reason = `The order is more than ${policy.maxFloatShare} of what is offered near the reference.`
  return check('float_cap', actual <= limit, limit, actual, reason)
}

function earnLock({ terms, account, now }: RiskFacts): Check {
  const until = positionOf(account, terms.symbol)?.lockedUntil ?? null
  const ok = until === null || until <= now
  const reason = 'The deposit is still locked; leaving now costs the early-exit penalty.'
  return check('earn_lock', ok, until?.toISOString() ?? null, now.toISOString(), reason, 'review')
}

function approvalThreshold({ terms, policy }: RiskFacts): Check | null {
  const actual = usdcFromMicro(terms.notionalMicro)
  if (policy.alwaysRequireApproval) {
    return check('approval', false, 'always', actual, `${policy.name} wants a person for every run.`, 'review')
  }
  if (policy.requireApprovalAboveMicro === null) return null
  const limit = usdcFromMicro(policy.requireApprovalAboveMicro)
  const ok = terms.notionalMicro <= policy.requireApprovalAboveMicro
  return check('approval', ok, limit, actual, `${policy.name} wants a person above ${limit} USDC.`, 'review')
}

const listed = (allowed: readonly string[] | null): CheckValue => (allowed === null ? null : allowed.join(','))
