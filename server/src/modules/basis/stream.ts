import type { ServerResponse } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { invalid, notFound, Problem } from '../../platform/problem.ts'
import type { Basis } from './basis.ts'
import { PREVIEW_INTERVAL_MS } from './preview.ts'
import type { Reading } from './quote.ts'

const MAX_STREAMS = 500
const MAX_STREAMS_PER_ADDRESS = 20
const HEARTBEAT_MS = 15_000
/** A client with more unread bytes than this is disconnected. */
const MAX_BUFFERED_BYTES = 256 * 1024

/** Server-sent events: the current reading of each requested wrapper, then each new one. */
export function createQuoteStreams(basis: Basis) {
  const openStreams = new Map<ServerResponse, { ip: string; release: () => void }>()
  let previewTimer: NodeJS.Timeout | undefined

  const addStream = (raw: ServerResponse, ip: string, release: () => void) => {
    openStreams.set(raw, { ip, release })
    previewTimer ??= setInterval(() => basis.publishPreviews(), PREVIEW_INTERVAL_MS).unref()
  }
  const removeStream = (raw: ServerResponse) => {
    openStreams.get(raw)?.release()
    openStreams.delete(raw)
    if (openStreams.size > 0) return
    clearInterval(previewTimer)
    previewTimer = undefined
  }

  return {
    open(request: FastifyRequest, reply: FastifyReply) {
      const symbols = parseSymbols(basis, (request.query as { symbols?: string }).symbols)
      const { raw } = reply
      if ([...openStreams.values()].filter(({ ip }) => ip === request.ip).length >= MAX_STREAMS_PER_ADDRESS)
        throw new Problem('error', `${MAX_STREAMS_PER_ADDRESS} streams are open from this address.`, {
          status: 429,
          code: 'rate_limited',
          retryable: true,
          retryAfterSeconds: 60,
        })
      // The client disconnected while its key was looked up; the close event has already fired.
      if (raw.destroyed) return void reply.hijack()
      const send = (readings: readonly Reading[]) => {
        for (const reading of readings) if (symbols.has(reading.quote.symbol)) raw.write(formatEvent(reading))
        if (raw.writableLength > MAX_BUFFERED_BYTES) raw.destroy()
      }
      const unsubscribe = basis.subscribe(send, MAX_STREAMS)
      reply.hijack()
      for (const [name, value] of Object.entries(reply.getHeaders()))
        if (value !== undefined) raw.setHeader(name, value)
      raw.writeHead(200, {
        'content-type': 'text/event-stream; charset=utf-8',
        'cache-control': 'no-store',
        'x-accel-buffering': 'no',
      })
      raw.write('retry: 5000\n\n')
      send([...symbols].map((symbol) => basis.getReading(symbol)))
      const heartbeat = setInterval(() => raw.write(': still here\n\n'), HEARTBEAT_MS).unref()
      addStream(raw, request.ip, () => {
        clearInterval(heartbeat)
        unsubscribe()
      })
      raw.on('close', () => removeStream(raw))
    },

    /** Ends all streams when the server stops, without waiting for clients that do not read. */
    endAll() {
      for (const raw of [...openStreams.keys()]) {
        removeStream(raw)
        if (raw.writableLength > 0) raw.destroy()
        else raw.end()
      }
    },
  }
}

const formatEvent = ({ quote, window }: Reading) =>
  `event: quote\nid: ${quote.symbol}@${quote.as_of}\ndata: ${JSON.stringify({ ...quote, window_score: window.score, window_status: window.status })}\n\n`

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
