import type { FastifyReply } from 'fastify'
import { createEventStreams } from '../../platform/event-streams.ts'
import type { TowerWatch } from './tower-watch.ts'

const MAX_STREAMS = 500
const MAX_STREAMS_PER_TENANT = 20
/** A page that hears nothing for longer knows that its connection is dead, although nothing closed it. */
const PULSE_MS = 10_000
/** A new connection is authenticated again, so that a key or session that has ended is not followed for good. */
const MAX_STREAM_MS = 15 * 60_000

/**
 * Which topics of a tenant changed, as server-sent events. They hold no data, so nothing can leak and nothing be lost: at
 * `ready` a page reads everything, and afterwards what has changed.
 */
export function createTowerStreams(watch: TowerWatch) {
  const streams = createEventStreams({ maxStreams: MAX_STREAMS, maxPerOwner: MAX_STREAMS_PER_TENANT })

  return {
    open(reply: FastifyReply, tenantId: string) {
      const stream = streams.open(reply, tenantId)
      if (!stream) return reply
      const unfollow = watch.follow(tenantId, {
        onReady: () => stream.send({ event: 'ready', data: {} }),
        onChange: (topics) => stream.send({ event: 'change', data: { topics } }),
      })
      const pulse = setInterval(() => stream.send({ event: 'pulse', data: {} }), PULSE_MS).unref()
      const end = setTimeout(() => stream.end(), MAX_STREAM_MS).unref()
      stream.onClose(() => {
        unfollow()
        clearInterval(pulse)
        clearTimeout(end)
      })
      return reply
    },

    endAll: streams.endAll,
  }
}
