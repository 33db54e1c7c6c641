import type { FastifyReply, FastifyRequest } from 'fastify'
import { createEventStreams } from '../../platform/event-streams.ts'
import { invalid, notFound } from '../../platform/problem.ts'
import type { Basis } from './basis.ts'
import { PREVIEW_INTERVAL_MS } from './preview.ts'
import type { Reading } from './quote.ts'

const MAX_STREAMS = 500
const MAX_STREAMS_PER_ADDRESS = 20

/** Server-sent events: the current reading of each requested wrapper, then each new one. */
export function createQuoteStreams(basis: Basis) {
  const streams = createEventStreams({ maxStreams: MAX_STREAMS, maxPerOwner: MAX_STREAMS_PER_ADDRESS })
  let openStreams = 0
  let previewTimer: NodeJS.Timeout | undefined

  const countOpened = () => {
    openStreams += 1
    previewTimer ??= setInterval(() => basis.publishPreviews(), PREVIEW_INTERVAL_MS).unref()
  }
  const countClosed = () => {
    openStreams -= 1
    if (openStreams > 0) return
    clearInterval(previewTimer)
    previewTimer = undefined
  }

  return {
    open(request: FastifyRequest, reply: FastifyReply) {
      const symbols = parseSymbols(basis, (request.query as { symbols?: string }).symbols)
      const stream = streams.open(reply, request.ip)
      if (!stream) return
      const send = (readings: readonly Reading[]) => {
        for (const reading of readings) if (symbols.has(reading.quote.symbol)) stream.send(toEvent(reading))
      }
      const unsubscribe = basis.subscribe(send, MAX_STREAMS)
      countOpened()
      stream.onClose(() => {
        unsubscribe()
        countClosed()
      })
      send([...symbols].map((symbol) => basis.getReading(symbol)))
    },

    endAll: streams.endAll,
  }
}

const toEvent = ({ quote, window }: Reading) => ({
  event: 'quote',
  id: `${quote.symbol}@${quote.as_of}`,
  data: { ...quote, window_score: window.score, window_status: window.status },
})

/** The requested symbols in their listed spelling, or all symbols without a parameter. */
function parseSymbols(basis: Basis, parameter: string | undefined): Set<string> {
  if (parameter === undefined) return new Set(basis.coverage.symbols.map(({ symbol }) => symbol))
  const names = parameter
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '')
  if (names.length === 0) throw invalid('symbols must name at least one wrapper.')
  return new Set(
    names.map((name) => {
      const wrapper = basis.coverage.find(name)
      if (!wrapper) throw notFound(`wrapper as ${name.slice(0, 64)}`)
      return wrapper.symbol
    }),
  )
}
