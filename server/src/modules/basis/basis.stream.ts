import type { ServerResponse } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { invalid, notFound, Problem } from '../../platform/problem.ts'
import type { Basis } from './basis.ts'
import { PREVIEW_EVERY_MS } from './preview.ts'
import type { Reading } from './quote.ts'

const MOST_STREAMS = 500
/** So that one address cannot take them all. */
const MOST_STREAMS_OF_ONE = 20
const HEARTBEAT_MS = 15_000
/** A reader this far behind is cut off rather than waited for. */
const MOST_WAITING_BYTES = 256 * 1024

/** Server-sent events: the present reading of each wanted wrapper, then each new one. */
export function createStreams(basis: Basis) {
  /** Each with where it goes and what lets go of it. */
  const open = new Map<ServerResponse, { ip: string; letGo: () => void }>()
  let pulse: NodeJS.Timeout | undefined

  const opened = (raw: ServerResponse, ip: string, letGo: () => void) => {
    open.set(raw, { ip, letGo })
    pulse ??= setInterval(() => basis.tickPreviews(), PREVIEW_EVERY_MS).unref()
  }
  const closed = (raw: ServerResponse) => {
    open.get(raw)?.letGo()
    open.delete(raw)
    if (open.size > 0) return
    clearInterval(pulse)
    pulse = undefined
  }

  return {
    open(request: FastifyRequest, reply: FastifyReply) {
      const wanted = wantedSymbols(basis, (request.query as { symbols?: string }).symbols)
      const { raw } = reply
      if ([...open.values()].filter(({ ip }) => ip === request.ip).length >= MOST_STREAMS_OF_ONE)
        throw new Problem('error', `${MOST_STREAMS_OF_ONE} streams are open from this address.`, {
          status: 429,
          code: 'rate_limited',
          retryable: true,
          retryAfterSeconds: 60,
        })
      // Whoever hung up while their key was looked up has been seen to leave already, and would never be again.
      if (raw.destroyed) return void reply.hijack()
      const send = (readings: readonly Reading[]) => {
        for (const reading of readings) if (wanted.has(reading.quote.symbol)) raw.write(eventOf(reading))
        if (raw.writableLength > MOST_WAITING_BYTES) raw.destroy()
      }
      const stop = basis.listen(send, MOST_STREAMS)
      reply.hijack()
      for (const [name, value] of Object.entries(reply.getHeaders()))
        if (value !== undefined) raw.setHeader(name, value)
      raw.writeHead(200, {
        'content-type': 'text/event-stream; charset=utf-8',
        'cache-control': 'no-store',
        'x-accel-buffering': 'no',
      })
      raw.write('retry: 5000\n\n')
      send([...wanted].map((symbol) => basis.reading(symbol)))
      const heartbeat = setInterval(() => raw.write(': still here\n\n'), HEARTBEAT_MS).unref()
      opened(raw, request.ip, () => {
        clearInterval(heartbeat)
        stop()
      })
      raw.on('close', () => closed(raw))
    },

    /** A stream never ends by itself, so a server that stops has to end it, and must not wait for who does not read. */
    endAll() {
      for (const raw of [...open.keys()]) {
        closed(raw)
        if (raw.writableLength > 0) raw.destroy()
        else raw.end()
      }
    },
  }
}

const eventOf = ({ quote, window }: Reading) =>
  `event: quote\nid: ${quote.symbol}@${quote.as_of}\ndata: ${JSON.stringify({ ...quote, window_score: window.score, window_status: window.status })}\n\n`

function wantedSymbols(basis: Basis, text: string | undefined): Set<string> {
  if (text === undefined) return new Set(basis.coverage.symbols.map(({ symbol }) => symbol))
  const names = text
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '')
  if (names.length === 0) throw invalid('symbols names no wrapper.')
  return new Set(
    names.map((name) => {
      const covered = basis.coverage.find(name)
      if (!covered) throw notFound(`wrapper as ${name.slice(0, 64)}`)
      return covered.symbol
    }),
  )
}
