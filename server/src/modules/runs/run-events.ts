import type { FastifyReply, FastifyRequest } from 'fastify'
import { createEventStreams } from '../../platform/event-streams.ts'
import { runLocation } from './pending-response.ts'
import { isEnded, type RunStatus, type RunWatch } from './run-watch.ts'

const MAX_STREAMS = 500
const MAX_STREAMS_PER_CALLER = 20
/** The characters of one event of text. */
const MAX_PART = 8_000

/** The order of states. A state has the same id in every stream of a run, so any process can resume it. */
const EVENT_IDS: Record<RunStatus['status'], number> = { pending: 1, settling: 2, completed: 3, failed: 3, blocked: 3 }

/**
 * The states of one run as server-sent events, from the one after `Last-Event-ID` until the run has ended; between them its
 * text, where it may be seen, which every connection gets from its beginning.
 */
export function createRunEvents(watch: RunWatch) {
  const streams = createEventStreams({ maxStreams: MAX_STREAMS, maxPerOwner: MAX_STREAMS_PER_CALLER })

  return {
    open(request: FastifyRequest, reply: FastifyReply, runId: string, statusNow: RunStatus) {
      let lastId = readLastEventId(request.headers['last-event-id'])
      // The client has seen the end: without content it does not connect again.
      if (lastId >= EVENT_IDS.completed) return reply.code(204).send()
      const owner = request.caller.kind === 'tenant' ? request.caller.tenantId : `address:${request.ip}`
      const stream = streams.open(reply, owner)
      if (!stream) return reply

      let sentText = ''
      /** A text that does not go on from what was sent is another attempt, and begins anew. */
      const sendText = (text: string) => {
        for (let offset = text.startsWith(sentText) ? sentText.length : 0; offset < text.length; offset += MAX_PART)
          stream.send({
            event: 'text',
            data: { run_id: runId, offset, text: text.slice(offset, offset + MAX_PART) },
          })
        sentText = text
      }
      const send = (status: RunStatus) => {
        const id = EVENT_IDS[status.status]
        if (lastId === 0 && id > EVENT_IDS.pending) stream.send(toEvent(runId, PENDING))
        if (id > lastId) stream.send(toEvent(runId, status))
        lastId = Math.max(lastId, id)
        if (status.text !== undefined) sendText(status.text)
        if (isEnded(status)) stream.end()
      }
      const unfollow = watch.follow(runId, send, { text: true })
      stream.onClose(unfollow)
      send(statusNow)
      return reply
    },

    endAll: streams.endAll,
  }
}

const PENDING: RunStatus = { status: 'pending', reason: null, receiptId: null }

const toEvent = (runId: string, { status, reason, receiptId }: RunStatus) => ({
  event: 'state',
  id: String(EVENT_IDS[status]),
  data: {
    run_id: runId,
    status,
    ...(reason !== null && { reason }),
    ...(receiptId !== null && { receipt_url: `/api/receipts/${receiptId}` }),
    location: runLocation(runId),
  },
})

/** An id that no stream of ours has sent starts from the beginning. */
function readLastEventId(header: string | string[] | undefined): number {
  const id = Number(header)
  return Object.values(EVENT_IDS).includes(id) ? id : 0
}
