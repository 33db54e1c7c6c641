import { type PriceSource, type SourceReading, SourceRefused } from '../../modules/basis/price-source.ts'
import { boolean, get, list, object, pastTime, price, readJson, text, unique } from './reading.ts'

type AlpacaMemo = { about: 'quote' | 'clock' | 'calendar'; underlying?: string }

/** Wider apart than this, bid and ask are not a market. */
const WIDEST_SPREAD = 0.1

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
  const ask = (url: string, memo: AlpacaMemo) => get(url, { headers, memo })
  return {
    id: 'alpaca',
    everySeconds: options.everySeconds ?? 15,

    ask(covered, now) {
      const today = newYorkDay.format(now)
      return [
        ask(`${options.tradingUrl}/v2/clock`, { about: 'clock' }),
        ask(`${options.tradingUrl}/v2/calendar?start=${today}&end=${today}`, { about: 'calendar' }),
        ...unique(covered.map(({ underlying }) => underlying)).map((underlying) =>
          ask(`${options.dataUrl}/v2/stocks/${encodeURIComponent(underlying)}/quotes/latest`, {
            about: 'quote',
            underlying,
          }),
        ),
      ]
    },

    read(request, answer) {
      const memo = request.memo as AlpacaMemo
      const body = readJson(answer)
      if (memo.about === 'clock') return readClock(body, answer.fetchedAt)
      if (memo.about === 'calendar') return readCalendar(body, answer.fetchedAt)
      return readQuote(body, memo.underlying!, answer.fetchedAt)
    },
  }
}

function readQuote(body: unknown, underlying: string, fetchedAt: Date): SourceReading {
  const answer = object(body, 'the answer')
  if (text(answer.symbol, 'symbol') !== underlying) throw new SourceRefused('the quote is of another symbol')
  const quote = object(answer.quote, 'the quote')
  const bid = price(quote.bp, 'the bid')
  const ask = price(quote.ap, 'the offer')
  if (ask < bid || ask / bid - 1 > WIDEST_SPREAD)
    throw new SourceRefused(`bid ${bid} and offer ${ask} are not a market`)
  const publishedAt = pastTime(quote.t, 'the time of the quote', fetchedAt)
  return {
    publishedAt,
    observations: [{ kind: 'share_price', underlying, price: (bid + ask) / 2, conf: (ask - bid) / 2, publishedAt }],
  }
}

function readClock(body: unknown, fetchedAt: Date): SourceReading {
  const clock = object(body, 'the clock')
  const publishedAt = pastTime(clock.timestamp, 'the time of the clock', fetchedAt)
  return {
    publishedAt,
    observations: [{ kind: 'exchange_clock', by: 'clock', open: boolean(clock.is_open, 'is_open'), publishedAt }],
  }
}

/** A day without a line is a day without a session, whatever our own calendar thought. */
function readCalendar(body: unknown, fetchedAt: Date): SourceReading {
  const today = newYorkDay.format(fetchedAt)
  const time = newYorkTime.format(fetchedAt)
  const days = list(body, 'the calendar', 10).map((entry) => object(entry, 'a day'))
  const session = days.find(({ date }) => date === today)
  const open = session ? time >= text(session.open, 'open') && time < text(session.close, 'close') : false
  return {
    publishedAt: fetchedAt,
    observations: [{ kind: 'exchange_clock', by: 'calendar', open, publishedAt: fetchedAt }],
  }
}

const newYorkDay = new Intl.DateTimeFormat('en-CA', {
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
