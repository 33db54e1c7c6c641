import { type ParsedResponse, type PriceSource, PriceSourceError } from '../../modules/basis/price-source.ts'
import {
  getRequest,
  parseJson,
  requireBoolean,
  requireList,
  requireObject,
  requirePastTime,
  requirePrice,
  requireText,
  unique,
} from './response-parsing.ts'

type AlpacaContext = { topic: 'quote' | 'clock' | 'calendar'; underlying?: string }

/** A quote with a wider relative spread is rejected. */
const MAX_RELATIVE_SPREAD = 0.1

export type AlpacaOptions = {
  dataUrl: string
  tradingUrl: string
  keyId: string
  secretKey: string
  everySeconds?: number
}

/** Alpaca: the best bid and offer of each underlying, the exchange's clock and its calendar of the day. */
export function createAlpaca(options: AlpacaOptions): PriceSource {
  const headers = { 'apca-api-key-id': options.keyId, 'apca-api-secret-key': options.secretKey }
  const buildRequest = (url: string, context: AlpacaContext) => getRequest(url, { headers, context })
  return {
    id: 'alpaca',
    everySeconds: options.everySeconds ?? 15,

    buildRequests(wrappers, now) {
      const today = newYorkDate.format(now)
      return [
        buildRequest(`${options.tradingUrl}/v2/clock`, { topic: 'clock' }),
        buildRequest(`${options.tradingUrl}/v2/calendar?start=${today}&end=${today}`, { topic: 'calendar' }),
        ...unique(wrappers.map(({ underlying }) => underlying)).map((underlying) =>
          buildRequest(`${options.dataUrl}/v2/stocks/${encodeURIComponent(underlying)}/quotes/latest`, {
            topic: 'quote',
            underlying,
          }),
        ),
      ]
    },

    parseResponse(request, response) {
      const context = request.context as AlpacaContext
      const body = parseJson(response)
      if (context.topic === 'clock') return parseClock(body, response.fetchedAt)
      if (context.topic === 'calendar') return parseCalendar(body, response.fetchedAt)
      return parseQuote(body, context.underlying!, response.fetchedAt)
    },
  }
}

function parseQuote(body: unknown, underlying: string, fetchedAt: Date): ParsedResponse {
  const response = requireObject(body, 'the response')
  if (requireText(response.symbol, 'symbol') !== underlying)
    throw new PriceSourceError('the quote is for another symbol')
  const quote = requireObject(response.quote, 'the quote')
  const bid = requirePrice(quote.bp, 'the bid')
  const ask = requirePrice(quote.ap, 'the offer')
  if (ask < bid || ask / bid - 1 > MAX_RELATIVE_SPREAD)
    throw new PriceSourceError(`bid ${bid} and offer ${ask} are not a valid quote`)
  const publishedAt = requirePastTime(quote.t, 'the time of the quote', fetchedAt)
  return {
    publishedAt,
    observations: [{ kind: 'share_price', underlying, price: (bid + ask) / 2, conf: (ask - bid) / 2, publishedAt }],
  }
}

function parseClock(body: unknown, fetchedAt: Date): ParsedResponse {
  const clock = requireObject(body, 'the clock')
  const publishedAt = requirePastTime(clock.timestamp, 'the time of the clock', fetchedAt)
  return {
    publishedAt,
    observations: [
      { kind: 'exchange_clock', by: 'clock', open: requireBoolean(clock.is_open, 'is_open'), publishedAt },
    ],
  }
}

/** A day that Alpaca's calendar does not list has no session, even if our own calendar has one. */
function parseCalendar(body: unknown, fetchedAt: Date): ParsedResponse {
  const today = newYorkDate.format(fetchedAt)
  const time = newYorkTime.format(fetchedAt)
  const days = requireList(body, 'the calendar', 10).map((entry) => requireObject(entry, 'a day'))
  const session = days.find(({ date }) => date === today)
  const open = session ? time >= requireText(session.open, 'open') && time < requireText(session.close, 'close') : false
  return {
    publishedAt: fetchedAt,
    observations: [{ kind: 'exchange_clock', by: 'calendar', open, publishedAt: fetchedAt }],
  }
}

const newYorkDate = new Intl.DateTimeFormat('en-CA', {
  timeZone: 'America/New_York',
  year: 'numeric',
  month: '2-digit',
  day: '2-digit',
})
const newYorkTime = new Intl.DateTimeFormat('en-GB', {
  timeZone: 'America/New_York',
  hour: '2-digit',
  minute: '2-digit',
  hourCycle: 'h23',
})
