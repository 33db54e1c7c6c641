import type { FastifyReply } from 'fastify'
import type { Answered } from '../../platform/idempotency.ts'

/** An answer that was kept is given again as the bytes it was. */
export const sendAnswered = (reply: FastifyReply, { status, text, replayed }: Answered) =>
  reply
    .code(status)
    .headers(replayed ? { 'idempotent-replayed': 'true' } : {})
    .header('content-type', 'application/json; charset=utf-8')
    .send(text)
