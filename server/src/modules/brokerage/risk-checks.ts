import { usdcFromMicro } from '../../platform/money.ts'
import type { TradeAssessment } from '../governance/assess/assess-trade.ts'
import { numberFromE8, type RwaReading } from './broker.ts'
import { distanceToLiquidationBps, liquidationPriceE8 } from './liquidation-price.ts'
import {
  addsExposure,
  buildCheck,
  type Check,
  type CheckValue,
  describeOrigin,
  findPosition,
  type RiskFacts,
} from './risk-facts.ts'
import {
  checkBuyingPower,
  checkConcentration,
  checkDailyNotional,
  checkFloatShare,
  checkOrderNotional,
  SPEND_LIMIT_CHECKS,
} from './spend-limits.ts'
import { isMarketable, touchPriceE8, worstPriceE8 } from './trade-terms.ts'

export type Verdict =
  | { outcome: 'execute' }
  | { outcome: 'pending'; policyVerdict: 'requires_human' | 'borderline' | 'override' }
  | { outcome: 'rejected'; error: 'budget_exceeded' | 'policy_blocked'; message: string }

/** Runs every check that applies, in a fixed order, so that the response explains all of them and not only the first failure. */
export function runRiskChecks(facts: RiskFacts): Check[] {
  const { terms } = facts
  const checks: (Check | null)[] = [
    checkKillSwitch(facts),
    checkAgent(facts),
    checkInstrumentAllowed(facts),
    terms.type === 'spend' ? checkMerchantAllowed(facts) : null,
    checkClientOrderId(facts),
    checkHalt(facts),
    checkSession(facts),
    checkQuoteAge(facts),
    checkOrderNotional(facts),
    checkDailyNotional(facts),
    terms.leverageE2 === null ? null : checkLeverage(facts),
    terms.leverageE2 === null ? null : checkLiquidationDistance(facts),
    addsExposure(facts) ? checkBuyingPower(facts) : checkHolding(facts),
    addsExposure(facts) && terms.type !== 'spend' ? checkConcentration(facts) : null,
    checkPriceCollar(facts),
    terms.limitPriceE8 === null ? null : checkMarketable(facts),
    // A preview reading is illustrative: it can price a paper trade but must not refuse one.
    facts.reading && !facts.reading.preview ? checkBasis(facts, facts.reading) : null,
    facts.reading && !facts.reading.preview && addsExposure(facts) ? checkFloatShare(facts, facts.reading) : null,
    terms.type === 'earn' && terms.orderSide === 'sell' ? checkEarnLock(facts) : null,
    checkApprovalThreshold(facts),
    checkGovernance(facts),
  ]
  return checks.filter((check) => check !== null)
}

/** `overridden`: the default policy would have refused what the tenant's policy allows. */
export function decideVerdict(checks: readonly Check[], overridden: boolean, assessment: TradeAssessment): Verdict {
  const failedChecks = checks.filter((check) => check.result === 'fail')
  if (failedChecks.length > 0) {
    // An order over a spend limit is often too large for the market as well; that does not change the error.
    const decisive = failedChecks.filter((check) => check.id !== 'price_collar')
    const isSpendLimit = ({ id }: Check) =>
      SPEND_LIMIT_CHECKS.has(id) ||
      (id === 'governance' && assessment.outcome === 'refused' && assessment.error === 'budget_exceeded')
    const onlySpendLimits = decisive.length > 0 && decisive.every(isSpendLimit)
    const message = failedChecks.map((check) => check.reason ?? check.id).join(' ')
    return { outcome: 'rejected', error: onlySpendLimits ? 'budget_exceeded' : 'policy_blocked', message }
  }
  const reviews = checks.filter((check) => check.result === 'review')
  if (reviews.length === 0) return { outcome: 'execute' }
  if (overridden) return { outcome: 'pending', policyVerdict: 'override' }
  const onlyUnmarketable = reviews.every((check) => check.id === 'marketable')
  return { outcome: 'pending', policyVerdict: onlyUnmarketable ? 'borderline' : 'requires_human' }
}

const checkKillSwitch = (facts: RiskFacts) =>
  buildCheck('kill_switch', !facts.killSwitch, false, facts.killSwitch, 'Trading is switched off for this tenant.')

function checkAgent({ policy, agentNames, spender, freeze }: RiskFacts): Check | null {
  const [first] = agentNames
  if (first === undefined) return null
  if (freeze?.agentId) {
    return buildCheck('agent', false, 'not frozen', freeze.agentId, `Agent '${freeze.agentId}' is frozen.`)
  }
  const isListed = (list: readonly string[]) => agentNames.some((name) => list.includes(name))
  const allowed = policy.allowedAgents === null || policy.allowedAgents.includes(spender ?? first)
  const ok = allowed && !isListed(policy.deniedAgents)
  const reason = `${policy.name} does not let '${first}' trade.`
  return buildCheck('agent', ok, formatList(policy.allowedAgents), first, reason)
}

/** What mandates, policies and budgets say, in one check; `policy_results` has each of them. */
function checkGovernance({ assessment }: RiskFacts): Check {
  if (assessment.outcome === 'pass') return buildCheck('governance', true, null, null, '')
  const { outcome, rule, message } = assessment
  return buildCheck('governance', false, rule, null, message, outcome === 'refused' ? 'fail' : 'review')
}

function checkInstrumentAllowed({ terms, policy }: RiskFacts): Check {
  const includesInstrument = (list: readonly string[]) => list.includes(terms.type) || list.includes(terms.symbol)
  const ok =
    (policy.allowedInstruments === null || includesInstrument(policy.allowedInstruments)) &&
    !includesInstrument(policy.deniedInstruments)
  return buildCheck(
    'instrument_allowed',
    ok,
    formatList(policy.allowedInstruments),
    `${terms.type}:${terms.symbol}`,
    `${policy.name} denies ${terms.symbol} (${terms.type}).`,
  )
}

function checkMerchantAllowed({ terms, policy }: RiskFacts): Check {
  const allowed = policy.allowedMerchants === null || policy.allowedMerchants.includes(terms.symbol)
  const ok = allowed && !policy.deniedMerchants.includes(terms.symbol)
  const reason = `${policy.name} denies this merchant.`
  return buildCheck('merchant_allowed', ok, formatList(policy.allowedMerchants), terms.symbol, reason)
}

const checkClientOrderId = (facts: RiskFacts) =>
  buildCheck(
    'duplicate_client_order_id',
    !facts.duplicateClientOrderId,
    false,
    facts.duplicateClientOrderId,
    'This client_order_id has been used before.',
  )

const checkHalt = ({ quote, terms }: RiskFacts) =>
  buildCheck('halt', !quote.halted, false, quote.halted, `${terms.symbol} is halted.`)

const checkSession = ({ quote, terms }: RiskFacts) =>
  buildCheck(
    'session',
    quote.session === 'open' || quote.session === 'always',
    'open',
    quote.session,
    `The session of ${terms.symbol} is ${quote.session === 'holiday' ? 'closed for a holiday' : 'closed'}.`,
    'review',
  )

/** Outside the session the last price is always old: the run needs an approval, and the price is read again at the open. */
function checkQuoteAge({ quote, policy, now }: RiskFacts): Check | null {
  if (quote.session === 'closed' || quote.session === 'holiday') return null
  const age = Math.max(0, Math.floor((now.getTime() - quote.observedAt.getTime()) / 1000))
  const ok = age <= policy.maxQuoteAgeSeconds
  return buildCheck('quote_age', ok, policy.maxQuoteAgeSeconds, age, `The last quote is ${age} seconds old.`)
}

function checkLeverage({ terms, policy }: RiskFacts): Check | null {
  if (policy.maxLeverage === null) return null
  const leverage = Number(terms.leverageE2) / 100
  const reason = `Leverage ${leverage} is above ${policy.maxLeverage}${describeOrigin(policy, 'leverage_cap')}.`
  return buildCheck('leverage_cap', leverage <= policy.maxLeverage, policy.maxLeverage, leverage, reason)
}

function checkLiquidationDistance({ terms, policy, instrument, quote }: RiskFacts): Check | null {
  if (policy.minLiquidationDistanceBps === null || terms.leverageE2 === null || !instrument.perp) return null
  const liquidation = liquidationPriceE8({
    direction: terms.orderSide === 'buy' ? 'long' : 'short',
    entryPriceE8: touchPriceE8(terms.orderSide, quote),
    leverageE2: terms.leverageE2,
    maintenanceMarginBps: instrument.perp.maintenanceMarginBps,
  })
  const distance = distanceToLiquidationBps(quote.markE8, liquidation)
  const ok = distance >= policy.minLiquidationDistanceBps
  const reason = `Liquidation is only ${distance} bps away.`
  return buildCheck('liquidation_distance', ok, policy.minLiquidationDistanceBps, distance, reason)
}

function checkHolding({ terms, account }: RiskFacts): Check {
  const heldE8 = findPosition(account, terms.symbol)?.quantityE8 ?? 0n
  const limit = numberFromE8(heldE8)
  const actual = numberFromE8(terms.quantityE8)
  const reason = `The account holds ${limit} ${terms.symbol}, less than the ${actual} to be sold.`
  return buildCheck('holding', terms.quantityE8 <= heldE8, limit, actual, reason)
}

/** Compares the expected price, slippage included, with the worst price the policy's collar allows. */
function checkPriceCollar({ terms, quote }: RiskFacts): Check {
  const touch = touchPriceE8(terms.orderSide, quote)
  const slippageE2 = BigInt(Math.round(terms.estimatedSlippageBps * 100))
  const sign = terms.orderSide === 'buy' ? 1n : -1n
  const expectedPrice = (touch * (1_000_000n + sign * slippageE2)) / 1_000_000n
  const worstPrice = worstPriceE8({ ...terms, limitPriceE8: null, notionalCapMicro: null }, terms.collarBps)
  const ok = terms.orderSide === 'buy' ? expectedPrice <= worstPrice : expectedPrice >= worstPrice
  const reason = `The order is expected to trade at ${numberFromE8(expectedPrice)}, outside the collar.`
  return buildCheck('price_collar', ok, numberFromE8(worstPrice), numberFromE8(expectedPrice), reason)
}

function checkMarketable({ terms, quote }: RiskFacts): Check {
  const limit = terms.limitPriceE8 ?? 0n
  const ok = isMarketable(terms.orderSide, terms.limitPriceE8, quote)
  const touch = numberFromE8(touchPriceE8(terms.orderSide, quote))
  const reason = 'The limit does not trade now; the order would rest in the market.'
  return buildCheck('marketable', ok, numberFromE8(limit), touch, reason, 'review')
}

function checkBasis({ policy, terms }: RiskFacts, reading: RwaReading): Check | null {
  if (policy.maxBasisBps === null) return null
  const ok = Math.abs(reading.basisBps) <= policy.maxBasisBps
  const reason = `${terms.symbol} trades ${reading.basisBps} bps from its reference.`
  return buildCheck('basis_cap', ok, policy.maxBasisBps, reading.basisBps, reason)
}

function checkEarnLock({ terms, account, now }: RiskFacts): Check {
  const until = findPosition(account, terms.symbol)?.lockedUntil ?? null
  const ok = until === null || until <= now
  const reason = 'The deposit is still locked; leaving now costs the early-exit penalty.'
  return buildCheck('earn_lock', ok, until?.toISOString() ?? null, now.toISOString(), reason, 'review')
}

function checkApprovalThreshold({ terms, policy }: RiskFacts): Check | null {
  const actual = usdcFromMicro(terms.notionalMicro)
  const { alwaysRequireApproval, requireApprovalAboveMicro } = policy
  if (!alwaysRequireApproval && requireApprovalAboveMicro === null) return null
  const limit = alwaysRequireApproval ? 'always' : usdcFromMicro(requireApprovalAboveMicro!)
  const ok = !alwaysRequireApproval && terms.notionalMicro <= requireApprovalAboveMicro!
  const when = alwaysRequireApproval ? 'for every run' : `above ${limit} USDC`
  return buildCheck('approval', ok, limit, actual, `${policy.origins.approval.name} wants a person ${when}.`, 'review')
}

const formatList = (allowed: readonly string[] | null): CheckValue => (allowed === null ? null : allowed.join(','))
