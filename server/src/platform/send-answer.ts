import type { FastifyReply } from 'fastify'
import type { Answered } from './idempotency.ts'

/**
 * The stored answer goes out byte for byte, whether it is the first time or a repetition. It may hold a key or a signing
 * secret that is shown only now, so nobody on the way may keep it.
 */
export const sendAnswer = (reply: FastifyReply, answer: Answered) =>
  reply
    .code(answer.status)
    .header('content-type', 'application/json; charset=utf-8')
    .header('cache-control', 'no-store')
    .send(answer.text)
