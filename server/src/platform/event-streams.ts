import type { ServerResponse } from 'node:http'
import type { FastifyReply } from 'fastify'
import { Problem, unavailable } from './problem.ts'

const HEARTBEAT_MS = 15_000
/** A client with more unread bytes than this is disconnected. */
const MAX_BUFFERED_BYTES = 256 * 1024
const RETRY_MS = 5_000

/** A stream is resumed after the last event that has an id. */
export type ServerSentEvent = { event: string; id?: string; data: unknown }

export type EventStream = {
  send(event: ServerSentEvent): void
  end(): void
  onClose(listener: () => void): void
}

/** Server-sent events to many clients, with a limit for each owner (a tenant or an address) and for all. */
export function createEventStreams({ maxStreams, maxPerOwner }: { maxStreams: number; maxPerOwner: number }) {
  const owners = new Map<ServerResponse, string>()

  return {
    /** Begins a stream instead of an answer. Undefined when the client has gone already. */
    open(reply: FastifyReply, owner: string): EventStream | undefined {
      if ([...owners.values()].filter((other) => other === owner).length >= maxPerOwner)
        throw new Problem('error', `${maxPerOwner} streams are open; close one first.`, {
          status: 429,
          code: 'rate_limited',
          retryable: true,
          retryAfterSeconds: 60,
        })
      if (owners.size >= maxStreams) throw unavailable('Too many streams are open. Try again later.', 60)
      const { raw } = reply
      reply.hijack()
      // The client disconnected while its key was looked up; the close event has already fired.
      if (raw.destroyed) return undefined
      for (const [name, value] of Object.entries(reply.getHeaders()))
        if (value !== undefined) raw.setHeader(name, value)
      raw.writeHead(200, {
        'content-type': 'text/event-stream; charset=utf-8',
        'cache-control': 'no-store',
        // A proxy that collects a response before it passes it on would hold the events back.
        'x-accel-buffering': 'no',
      })
      raw.write(`retry: ${RETRY_MS}\n\n`)
      owners.set(raw, owner)
      const heartbeat = setInterval(() => raw.write(': still here\n\n'), HEARTBEAT_MS).unref()
      raw.on('close', () => {
        clearInterval(heartbeat)
        owners.delete(raw)
      })
      return {
        send({ event, id, data }) {
          const idLine = id === undefined ? '' : `id: ${id}\n`
          raw.write(`event: ${event}\n${idLine}data: ${JSON.stringify(data)}\n\n`)
          if (raw.writableLength > MAX_BUFFERED_BYTES) raw.destroy()
        },
        end: () => void raw.end(),
        onClose: (listener) => void raw.on('close', listener),
      }
    },

    /** Ends all streams when the server stops, without waiting for clients that do not read. */
    endAll() {
      for (const raw of owners.keys()) {
        if (raw.writableLength > 0) raw.destroy()
        else raw.end()
      }
    },
  }
}
