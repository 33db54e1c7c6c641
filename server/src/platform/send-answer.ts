import type { FastifyReply } from 'fastify'
import type { Answered } from './idempotency.ts'

/** The stored answer goes out byte for byte, whether it is the first time or a repetition. */
export const sendAnswer = (reply: FastifyReply, answer: Answered) =>
  reply.code(answer.status).header('content-type', 'application/json; charset=utf-8').send(answer.text)
