/**
 * The broker port: a broker holds accounts and executes orders.
 * Adapters import this file and nothing else of this module.
 *
 * A broker does not throw when a request fails: failure is a result. When it does not know whether an order was
 * accepted it returns `unknown`, and the caller then calls `find` by client order id instead of placing a second order.
 */
export const INSTRUMENT_TYPES = ['equity', 'perp', 'crypto', 'rwa', 'earn', 'spend'] as const
export type InstrumentType = (typeof INSTRUMENT_TYPES)[number]

/** `buy` also opens or adds to a long (perp), deposits (earn) and pays (spend); `sell` reverses these, or opens a short (perp). */
export type OrderSide = 'buy' | 'sell'
export type TimeInForce = 'day' | 'gtc' | 'ioc' | 'fok'
export type Session = 'open' | 'closed' | 'holiday' | 'always'

/** One instrument as a broker describes it. Fields of other instrument types are absent. */
export type Instrument = {
  type: InstrumentType
  symbol: string
  name: string
  /** The smallest step of a quantity and of a price. */
  lotE8: bigint
  tickE8: bigint
  feeTier: string
  takerFeeBps: number
  settlementLag: 'T+0' | 'T+1'
  perp?: { maintenanceMarginBps: number; maxLeverage: number }
  crypto?: { baseAsset: string; quoteAsset: string; network: string }
  rwa?: { underlyingAsset: string; tokenContract: string; chain: string; multiplier: number }
  earn?: { yieldRateBps: number; lockDays: number; earlyExitPenaltyBps: number; protocol: string }
  spend?: { merchantId: string; category: string; rail: string }
}

export type Quote = {
  symbol: string
  bidE8: bigint
  askE8: bigint
  /** The price that margin, funding and drift are measured against. */
  markE8: bigint
  source: string
  observedAt: Date
  session: Session
  /** When the session opens next; null when it is open, or never closes. */
  nextOpen: Date | null
  halted: boolean
  /** Funding of a perp for the current interval, in millionths; positive means longs pay. */
  fundingRatePpm?: number
}

/** The part of a tokenised equity's basis reading that trades depend on. */
export type RwaReading = {
  symbol: string
  underlying: string
  chain: string
  tokenContract: string
  multiplier: number
  wrapperPriceE8: bigint
  basisBps: number
  nearReferenceUsd: number
  creation: 'open' | 'closed'
  halted: boolean
  asOf: Date
  source: string
  /** Illustrative figures, not market data: they can price a paper trade only. */
  preview: boolean
}

export type BrokerPosition = {
  type: InstrumentType
  symbol: string
  /** Negative for a short. */
  quantityE8: bigint
  /** What the open quantity cost, without fees. */
  costMicro: bigint
  marginMicro: bigint
  leverageE2: bigint | null
  liquidationPriceE8: bigint | null
  lockedUntil: Date | null
}

export type BrokerAccount = {
  accountId: string
  currency: string
  cashMicro: bigint
  /** Unsettled sale proceeds, and cash held for open orders: neither can be spent. */
  unsettledMicro: bigint
  heldMicro: bigint
  buyingPowerMicro: bigint
  equityMicro: bigint
  positions: BrokerPosition[]
}

export type OrderRequest = {
  accountId: string
  /** The broker executes one order for one client order id, however often it is sent. */
  clientOrderId: string
  type: InstrumentType
  symbol: string
  side: OrderSide
  quantityE8: bigint
  orderType: 'market' | 'limit'
  limitPriceE8: bigint | null
  /** The worst price the order may get: the collar, rounded to the tick. The broker enforces it. */
  worstPriceE8: bigint | null
  tif: TimeInForce
  leverageE2: bigint | null
  /** From this moment the order may no longer be accepted: another worker has taken the run over. */
  placeBy: Date
  /** From this moment nothing may fill. */
  executeBy: Date
}

/** The tighter of the order's limit and its collar; null when it has neither. */
export function worstAcceptedPriceE8(
  order: Pick<OrderRequest, 'side' | 'limitPriceE8' | 'worstPriceE8'>,
): bigint | null {
  const { limitPriceE8: limit, worstPriceE8: collar } = order
  if (limit === null || collar === null) return limit ?? collar
  const limitIsTighter = order.side === 'buy' ? limit <= collar : limit >= collar
  return limitIsTighter ? limit : collar
}

export type Fill = {
  fillId: string
  quantityE8: bigint
  priceE8: bigint
  feeMicro: bigint
  at: Date
}

/** `working` may still fill; every other status is final. A cancelled or expired order keeps what it had filled. */
export type OrderStatus = 'working' | 'filled' | 'cancelled' | 'expired' | 'rejected'

export type BrokerOrder = {
  brokerOrderId: string
  clientOrderId: string
  symbol: string
  side: OrderSide
  quantityE8: bigint
  status: OrderStatus
  /** The broker's reason why a final order did not fill completely. */
  reason: string | null
  filledE8: bigint
  fills: Fill[]
}

export type BrokerFailure = {
  ok: false
  /** `unknown_symbol`, `unsupported`: the request is wrong. `unavailable`: try again later, nothing has happened. */
  reason: 'unknown_symbol' | 'unsupported' | 'unavailable'
  message: string
}

/** `unavailable`: certainly no order was accepted. `unknown`: one may have been. */
export type PlaceOutcome =
  | { outcome: 'placed'; order: BrokerOrder }
  | { outcome: 'rejected'; reason: string }
  | { outcome: 'unavailable'; reason: string; retryAfterSeconds: number }
  | { outcome: 'unknown'; reason: string }

export type FindOutcome =
  | { outcome: 'found'; order: BrokerOrder }
  | { outcome: 'not_found' }
  | { outcome: 'unknown'; reason: string }

export type CancelOutcome =
  | { outcome: 'done'; order: BrokerOrder }
  | { outcome: 'not_found' }
  | { outcome: 'unknown'; reason: string }

export type Broker = {
  id: string
  mode: 'paper' | 'live'
  /** A lost request may still arrive within this time; `not_found` is final only after it. */
  inFlightMs: number
  supports(type: InstrumentType): boolean
  instrument(type: InstrumentType, symbol: string): Promise<{ ok: true; instrument: Instrument } | BrokerFailure>
  quote(type: InstrumentType, symbol: string): Promise<{ ok: true; quote: Quote } | BrokerFailure>
  /** The expected slippage of an order of this size, beyond the touch. */
  estimate(
    type: InstrumentType,
    symbol: string,
    quantityE8: bigint,
  ): Promise<{ ok: true; slippageBps: number } | BrokerFailure>
  account(accountId: string): Promise<{ ok: true; account: BrokerAccount } | BrokerFailure>
  place(order: OrderRequest): Promise<PlaceOutcome>
  /** `since`: the order is not older, so that brokers that can only list orders need not list them all. */
  find(accountId: string, clientOrderId: string, since: Date): Promise<FindOutcome>
  /** Cancels a working order. For an order that has already ended it returns `done` and changes nothing. */
  cancel(accountId: string, clientOrderId: string, since: Date): Promise<CancelOutcome>
}

/** An account at Coinbase or its paper stand-in, with the fields of Coinbase's API. */
export type CoinbaseAccount = {
  uuid: string
  currency: string
  available_balance: { value: string; currency: string }
  hold: { value: string; currency: string }
  type: string
}

// Amounts are part of the port, because adapters and the module must round in the same way: prices and quantities are
// bigints of 1e-8 (`…E8`), money is bigint micro-USDC (`…Micro`), leverage is bigint hundredths (`…E2`).

export const E8 = 100_000_000n
const E8_SQUARED_TO_MICRO = 10_000_000_000n

/** Rounds half away from zero; the divisor is positive. */
export function divideRounded(value: bigint, divisor: bigint): bigint {
  const twice = 2n * absBigint(value) + divisor
  const rounded = twice / (2n * divisor)
  return value < 0n ? -rounded : rounded
}

export function divideUp(value: bigint, divisor: bigint): bigint {
  const floor = value / divisor
  return value > 0n && value % divisor !== 0n ? floor + 1n : floor
}

export function minBigint(first: bigint, ...others: bigint[]): bigint {
  let minimum = first
  for (const value of others) if (value < minimum) minimum = value
  return minimum
}

export const absBigint = (value: bigint) => (value < 0n ? -value : value)

/** Price times quantity as money. */
export const notionalMicro = (priceE8: bigint, quantityE8: bigint) =>
  divideRounded(priceE8 * quantityE8, E8_SQUARED_TO_MICRO)

/** The average price at which this much money bought this quantity. */
export const averagePriceE8 = (micro: bigint, quantityE8: bigint) =>
  quantityE8 === 0n ? 0n : divideRounded(absBigint(micro) * E8_SQUARED_TO_MICRO, absBigint(quantityE8))

const DECIMAL = /^(-?)(\d{1,30})(?:\.(\d{1,40}))?(?:[eE]([+-]?\d{1,3}))?$/

/** A decimal text as a bigint of `10^-scale`, or undefined when it is no number or has digits finer than that. */
export function parseDecimal(text: string, scale: number): bigint | undefined {
  const parts = DECIMAL.exec(text)
  if (!parts) return undefined
  const [, sign, whole, fraction = '', exponent = '0'] = parts
  const shift = scale + Number(exponent) - fraction.length
  const digits = BigInt(whole + fraction)
  if (shift > 60) return undefined
  if (shift < 0 && digits % 10n ** BigInt(-shift) !== 0n) return undefined
  const value = shift >= 0 ? digits * 10n ** BigInt(shift) : digits / 10n ** BigInt(-shift)
  return sign ? -value : value
}

/** The shortest plain decimal text of a bigint of `10^-scale`. */
export function formatDecimal(value: bigint, scale: number): string {
  const digits = absBigint(value)
    .toString()
    .padStart(scale + 1, '0')
  const fraction = digits.slice(digits.length - scale).replace(/0+$/, '')
  const whole = digits.slice(0, digits.length - scale)
  return `${value < 0n ? '-' : ''}${whole}${fraction && scale > 0 ? `.${fraction}` : ''}`
}

/** A JSON number as a bigint of 1e-8, or undefined when it is not finite or finer than that. */
export const e8FromNumber = (value: number) => (Number.isFinite(value) ? parseDecimal(String(value), 8) : undefined)

export const numberFromE8 = (value: bigint) => Number(formatDecimal(value, 8))
