import {
  type Broker,
  type BrokerFailure,
  type BrokerOrder,
  type FindOutcome,
  formatDecimal,
  type OrderRequest,
  type OrderStatus,
  type PlaceOutcome,
  worstAcceptedPriceE8,
} from '../../modules/brokerage/broker.ts'
import {
  asDate,
  asObject,
  asObjects,
  asText,
  type BrokerResponse,
  createBrokerHttp,
  IN_FLIGHT_MS,
  parseE8,
  parseMicro,
  spreadBps,
  toAverageFill,
  toFailedPlaceOutcome,
} from './broker-http.ts'

/** Alpaca's trading API v2: US equities. Orders are found by client order id. */
export type AlpacaOptions = {
  keyId: string
  secretKey: string
  /** `https://paper-api.alpaca.markets` is Alpaca's own paper trading; its mode is `paper`. */
  baseUrl: string
  dataUrl: string
  timeoutMs?: number
}

const STATUSES: Record<string, OrderStatus> = {
  filled: 'filled',
  canceled: 'cancelled',
  replaced: 'cancelled',
  expired: 'expired',
  rejected: 'rejected',
}

export function createAlpacaBroker(options: AlpacaOptions): Broker {
  const authorize = async () => ({ 'apca-api-key-id': options.keyId, 'apca-api-secret-key': options.secretKey })
  const trading = createBrokerHttp({ baseUrl: options.baseUrl, authorize, timeoutMs: options.timeoutMs })
  const data = createBrokerHttp({ baseUrl: options.dataUrl, authorize, timeoutMs: options.timeoutMs })

  const findOrder = async (clientOrderId: string): Promise<FindOutcome> => {
    const path = `/v2/orders:by_client_order_id?client_order_id=${encodeURIComponent(clientOrderId)}`
    const response = await trading({ method: 'GET', path })
    if (response.kind !== 'response') return { outcome: 'unknown', reason: response.reason }
    if (response.status === 200) return { outcome: 'found', order: toBrokerOrder(response.body) }
    if (response.status === 404) return { outcome: 'not_found' }
    return { outcome: 'unknown', reason: `Alpaca answered ${response.status}.` }
  }

  const fetchLatestQuote = async (symbol: string) => {
    const response = await data({ method: 'GET', path: `/v2/stocks/${encodeURIComponent(symbol)}/quotes/latest` })
    return response.kind === 'response' && response.status === 200 ? asObject(asObject(response.body).quote) : undefined
  }

  const fetchAsset = async (symbol: string): Promise<{ ok: true; asset: Record<string, unknown> } | BrokerFailure> => {
    const response = await trading({ method: 'GET', path: `/v2/assets/${encodeURIComponent(symbol)}` })
    if (response.kind === 'response' && response.status === 200) return { ok: true, asset: asObject(response.body) }
    if (response.kind === 'response' && (response.status === 404 || response.status === 422)) {
      return { ok: false, reason: 'unknown_symbol', message: `${symbol} is not traded at Alpaca.` }
    }
    return toUnavailable(response)
  }

  return {
    id: 'alpaca',
    mode: new URL(options.baseUrl).hostname.startsWith('paper-api.') ? 'paper' : 'live',
    inFlightMs: IN_FLIGHT_MS,
    supports: (type) => type === 'equity',

    async instrument(_type, symbol) {
      const assetResult = await fetchAsset(symbol)
      if (!assetResult.ok) return assetResult
      const fractional = assetResult.asset.fractionable === true
      return {
        ok: true,
        instrument: {
          type: 'equity',
          symbol,
          name: asText(assetResult.asset.name) || symbol,
          lotE8: fractional ? 1n : 100_000_000n,
          tickE8: 1_000_000n,
          feeTier: 'commission_free',
          takerFeeBps: 0,
          settlementLag: 'T+1',
        },
      }
    },

    async quote(_type, symbol) {
      const [assetResult, quote, clock] = await Promise.all([
        fetchAsset(symbol),
        fetchLatestQuote(symbol),
        trading({ method: 'GET', path: '/v2/clock' }),
      ])
      if (!assetResult.ok) return assetResult
      if (!quote || clock.kind !== 'response' || clock.status !== 200) return toUnavailable(clock)
      const open = asObject(clock.body).is_open === true
      const bidE8 = parseE8(quote.bp)
      const askE8 = parseE8(quote.ap)
      if (bidE8 <= 0n || askE8 <= 0n) {
        return { ok: false, reason: 'unavailable', message: `Alpaca has no two-sided quote for ${symbol}.` }
      }
      return {
        ok: true,
        quote: {
          symbol,
          bidE8,
          askE8,
          markE8: (bidE8 + askE8) / 2n,
          source: 'alpaca',
          observedAt: asDate(quote.t),
          session: open ? 'open' : 'closed',
          nextOpen: open ? null : asDate(asObject(clock.body).next_open),
          halted: assetResult.asset.tradable !== true || assetResult.asset.status !== 'active',
        },
      }
    },

    async estimate(_type, symbol) {
      const quote = await fetchLatestQuote(symbol)
      if (!quote) return { ok: false, reason: 'unavailable', message: 'Alpaca returned no quote.' }
      return { ok: true, slippageBps: spreadBps(parseE8(quote.bp), parseE8(quote.ap)) }
    },

    async account(accountId) {
      const [account, positions] = await Promise.all([
        trading({ method: 'GET', path: '/v2/account' }),
        trading({ method: 'GET', path: '/v2/positions' }),
      ])
      if (account.kind !== 'response' || account.status !== 200) return toUnavailable(account)
      if (positions.kind !== 'response' || positions.status !== 200) return toUnavailable(positions)
      return { ok: true, account: toBrokerAccount(accountId, asObject(account.body), asObjects(positions.body)) }
    },

    async place(order): Promise<PlaceOutcome> {
      const response = await trading({ method: 'POST', path: '/v2/orders', body: toOrderBody(order) })
      if (response.kind === 'response' && response.status >= 200 && response.status < 300) {
        return { outcome: 'placed', order: toBrokerOrder(response.body) }
      }
      // The order was sent before, perhaps by a worker that died: the existing order is the result.
      if (response.kind === 'response' && response.status === 422 && /unique/i.test(formatRefusal(response.body))) {
        const existingOrder = await findOrder(order.clientOrderId)
        if (existingOrder.outcome === 'found') return { outcome: 'placed', order: existingOrder.order }
        return { outcome: 'unknown', reason: 'Alpaca has an order with this client order id and does not return it.' }
      }
      return toFailedPlaceOutcome(response, formatRefusal)
    },

    find: (_accountId, clientOrderId) => findOrder(clientOrderId),

    async cancel(_accountId, clientOrderId) {
      const findResult = await findOrder(clientOrderId)
      if (findResult.outcome !== 'found') return findResult
      if (findResult.order.status !== 'working') return { outcome: 'done', order: findResult.order }
      const response = await trading({ method: 'DELETE', path: `/v2/orders/${findResult.order.brokerOrderId}` })
      if (response.kind !== 'response') return { outcome: 'unknown', reason: response.reason }
      // The order may still fill before the cancel takes effect, so its final state is read.
      const findAfterCancel = await findOrder(clientOrderId)
      if (findAfterCancel.outcome === 'found' && findAfterCancel.order.status !== 'working')
        return { outcome: 'done', order: findAfterCancel.order }
      return { outcome: 'unknown', reason: 'The cancel has not taken effect yet.' }
    },
  }
}

/** Alpaca takes fractions of a share as day orders only; the unfilled rest is cancelled at the run's deadline. */
function toOrderBody(order: OrderRequest) {
  // Brokers have limit prices, not collars.
  const limit = worstAcceptedPriceE8(order)
  const isWholeShares = order.quantityE8 % 100_000_000n === 0n
  return {
    symbol: order.symbol,
    qty: formatDecimal(order.quantityE8, 8),
    side: order.side,
    type: limit === null ? 'market' : 'limit',
    time_in_force: isWholeShares ? order.tif : 'day',
    ...(limit !== null && { limit_price: formatDecimal(limit, 8) }),
    client_order_id: order.clientOrderId,
  }
}

function toBrokerOrder(body: unknown): BrokerOrder {
  const order = asObject(body)
  const filledE8 = parseE8(order.filled_qty)
  const id = asText(order.id)
  const at = asDate(order.filled_at ?? order.updated_at)
  const status = STATUSES[asText(order.status)] ?? 'working'
  return {
    brokerOrderId: id,
    clientOrderId: asText(order.client_order_id),
    symbol: asText(order.symbol),
    side: order.side === 'sell' ? 'sell' : 'buy',
    quantityE8: parseE8(order.qty),
    status,
    reason: status === 'filled' || status === 'working' ? null : `Alpaca: ${asText(order.status)}`,
    filledE8,
    fills: toAverageFill(id, filledE8, parseE8(order.filled_avg_price), 0n, at),
  }
}

function toBrokerAccount(accountId: string, account: Record<string, unknown>, positions: Record<string, unknown>[]) {
  const buyingPowerMicro = parseMicro(account.non_marginable_buying_power ?? account.buying_power)
  const cashMicro = parseMicro(account.cash)
  return {
    accountId,
    currency: asText(account.currency) || 'USD',
    cashMicro,
    unsettledMicro: 0n,
    heldMicro: cashMicro > buyingPowerMicro ? cashMicro - buyingPowerMicro : 0n,
    buyingPowerMicro,
    equityMicro: parseMicro(account.equity),
    positions: positions.map((position) => ({
      type: 'equity' as const,
      symbol: asText(position.symbol),
      quantityE8: parseE8(position.qty),
      costMicro: parseMicro(position.cost_basis),
      marginMicro: 0n,
      leverageE2: null,
      liquidationPriceE8: null,
      lockedUntil: null,
    })),
  }
}

const formatRefusal = (body: unknown) => asText(asObject(body).message) || 'Alpaca refused the order.'

function toUnavailable(response: BrokerResponse): BrokerFailure {
  const message = response.kind === 'response' ? `Alpaca answered ${response.status}.` : response.reason
  return { ok: false, reason: 'unavailable', message }
}
