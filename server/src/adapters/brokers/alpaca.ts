import {
  type Broker,
  type BrokerOrder,
  type Failed,
  type FindOutcome,
  formatDecimal,
  type OrderRequest,
  type OrderStatus,
  type PlaceOutcome,
} from '../../modules/brokerage/broker.ts'
import {
  averageFill,
  type BrokerAnswer,
  createBrokerHttp,
  decimalE8,
  decimalMicro,
  IN_FLIGHT_MS,
  instant,
  limitOf,
  placeFailure,
  record,
  records,
  spreadBps,
  textOf,
} from './broker-http.ts'

/** Alpaca's trading API v2: US equities, found again by client order id. */
export type AlpacaOptions = {
  keyId: string
  secretKey: string
  /** `https://paper-api.alpaca.markets` rehearses at Alpaca; it counts as paper here too. */
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

  const find = async (clientOrderId: string): Promise<FindOutcome> => {
    const path = `/v2/orders:by_client_order_id?client_order_id=${encodeURIComponent(clientOrderId)}`
    const answer = await trading({ method: 'GET', path })
    if (answer.kind !== 'answer') return { outcome: 'unknown', reason: answer.reason }
    if (answer.status === 200) return { outcome: 'found', order: readOrder(answer.body) }
    if (answer.status === 404) return { outcome: 'not_found' }
    return { outcome: 'unknown', reason: `Alpaca answered ${answer.status}.` }
  }

  const latest = async (symbol: string) => {
    const answer = await data({ method: 'GET', path: `/v2/stocks/${encodeURIComponent(symbol)}/quotes/latest` })
    return answer.kind === 'answer' && answer.status === 200 ? record(record(answer.body).quote) : undefined
  }

  const asset = async (symbol: string): Promise<{ ok: true; asset: Record<string, unknown> } | Failed> => {
    const answer = await trading({ method: 'GET', path: `/v2/assets/${encodeURIComponent(symbol)}` })
    if (answer.kind === 'answer' && answer.status === 200) return { ok: true, asset: record(answer.body) }
    if (answer.kind === 'answer' && (answer.status === 404 || answer.status === 422)) {
      return { ok: false, reason: 'unknown_symbol', message: `${symbol} is not traded at Alpaca.` }
    }
    return unavailable(answer)
  }

  return {
    id: 'alpaca',
    mode: new URL(options.baseUrl).hostname.startsWith('paper-api.') ? 'paper' : 'live',
    inFlightMs: IN_FLIGHT_MS,
    supports: (type) => type === 'equity',

    async instrument(_type, symbol) {
      const found = await asset(symbol)
      if (!found.ok) return found
      const fractional = found.asset.fractionable === true
      return {
        ok: true,
        instrument: {
          type: 'equity',
          symbol,
          name: textOf(found.asset.name) || symbol,
          lotE8: fractional ? 1n : 100_000_000n,
          tickE8: 1_000_000n,
          feeTier: 'commission_free',
          takerFeeBps: 0,
          settlementLag: 'T+1',
        },
      }
    },

    async quote(_type, symbol) {
      const [found, quote, clock] = await Promise.all([
        asset(symbol),
        latest(symbol),
        trading({ method: 'GET', path: '/v2/clock' }),
      ])
      if (!found.ok) return found
      if (!quote || clock.kind !== 'answer' || clock.status !== 200) return unavailable(clock)
      const open = record(clock.body).is_open === true
      const bidE8 = decimalE8(quote.bp)
      const askE8 = decimalE8(quote.ap)
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
          observedAt: instant(quote.t),
          session: open ? 'open' : 'closed',
          nextOpen: open ? null : instant(record(clock.body).next_open),
          halted: found.asset.tradable !== true || found.asset.status !== 'active',
        },
      }
    },

    async estimate(_type, symbol) {
      const quote = await latest(symbol)
      if (!quote) return { ok: false, reason: 'unavailable', message: 'Alpaca gave no quote.' }
      return { ok: true, slippageBps: spreadBps(decimalE8(quote.bp), decimalE8(quote.ap)) }
    },

    async account(accountId) {
      const [account, positions] = await Promise.all([
        trading({ method: 'GET', path: '/v2/account' }),
        trading({ method: 'GET', path: '/v2/positions' }),
      ])
      if (account.kind !== 'answer' || account.status !== 200) return unavailable(account)
      if (positions.kind !== 'answer' || positions.status !== 200) return unavailable(positions)
      return { ok: true, account: readAccount(accountId, record(account.body), records(positions.body)) }
    },

    async place(order): Promise<PlaceOutcome> {
      const answer = await trading({ method: 'POST', path: '/v2/orders', body: orderBody(order) })
      if (answer.kind === 'answer' && answer.status >= 200 && answer.status < 300) {
        return { outcome: 'placed', order: readOrder(answer.body) }
      }
      // Sent before, perhaps by a worker that died: the order that exists is the answer.
      if (answer.kind === 'answer' && answer.status === 422 && /unique/i.test(refusal(answer.body))) {
        const earlier = await find(order.clientOrderId)
        if (earlier.outcome === 'found') return { outcome: 'placed', order: earlier.order }
        return { outcome: 'unknown', reason: 'Alpaca knows this client order id and does not show the order.' }
      }
      return placeFailure(answer, refusal)
    },

    find: (_accountId, clientOrderId) => find(clientOrderId),

    async cancel(_accountId, clientOrderId) {
      const found = await find(clientOrderId)
      if (found.outcome !== 'found') return found
      if (found.order.status !== 'working') return { outcome: 'done', order: found.order }
      const answer = await trading({ method: 'DELETE', path: `/v2/orders/${found.order.brokerOrderId}` })
      if (answer.kind !== 'answer') return { outcome: 'unknown', reason: answer.reason }
      // A cancel is a wish: the order may still fill before it is heard, so the order itself is asked.
      const after = await find(clientOrderId)
      if (after.outcome === 'found' && after.order.status !== 'working') return { outcome: 'done', order: after.order }
      return { outcome: 'unknown', reason: 'The cancel has not taken effect yet.' }
    },
  }
}

/** Fractions of a share are day orders at Alpaca; what a day leaves over is cancelled when the run's time is up. */
function orderBody(order: OrderRequest) {
  const limit = limitOf(order)
  const whole = order.quantityE8 % 100_000_000n === 0n
  return {
    symbol: order.symbol,
    qty: formatDecimal(order.quantityE8, 8),
    side: order.side,
    type: limit === null ? 'market' : 'limit',
    time_in_force: whole ? order.tif : 'day',
    ...(limit !== null && { limit_price: formatDecimal(limit, 8) }),
    client_order_id: order.clientOrderId,
  }
}

function readOrder(body: unknown): BrokerOrder {
  const order = record(body)
  const filledE8 = decimalE8(order.filled_qty)
  const id = textOf(order.id)
  const at = instant(order.filled_at ?? order.updated_at)
  const status = STATUSES[textOf(order.status)] ?? 'working'
  return {
    brokerOrderId: id,
    clientOrderId: textOf(order.client_order_id),
    symbol: textOf(order.symbol),
    side: order.side === 'sell' ? 'sell' : 'buy',
    quantityE8: decimalE8(order.qty),
    status,
    reason: status === 'filled' || status === 'working' ? null : `Alpaca: ${textOf(order.status)}`,
    filledE8,
    fills: averageFill(id, filledE8, decimalE8(order.filled_avg_price), 0n, at),
  }
}

function readAccount(accountId: string, account: Record<string, unknown>, positions: Record<string, unknown>[]) {
  const buyingPowerMicro = decimalMicro(account.non_marginable_buying_power ?? account.buying_power)
  const cashMicro = decimalMicro(account.cash)
  return {
    accountId,
    currency: textOf(account.currency) || 'USD',
    cashMicro,
    unsettledMicro: 0n,
    heldMicro: cashMicro > buyingPowerMicro ? cashMicro - buyingPowerMicro : 0n,
    buyingPowerMicro,
    equityMicro: decimalMicro(account.equity),
    positions: positions.map((position) => ({
      type: 'equity' as const,
      symbol: textOf(position.symbol),
      quantityE8: decimalE8(position.qty),
      costMicro: decimalMicro(position.cost_basis),
      marginMicro: 0n,
      leverageE2: null,
      liquidationPriceE8: null,
      lockedUntil: null,
    })),
  }
}

const refusal = (body: unknown) => textOf(record(body).message) || 'Alpaca refused the order.'

function unavailable(answer: BrokerAnswer): Failed {
  const message = answer.kind === 'answer' ? `Alpaca answered ${answer.status}.` : answer.reason
  return { ok: false, reason: 'unavailable', message }
}
