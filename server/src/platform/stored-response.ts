import type { FastifyReply } from 'fastify'

/** A response whose body was composed once. It is sent byte for byte, the first time and every time it is repeated. */
export type StoredResponse = { status: number; body: string; headers?: Record<string, string> }

export const sendStoredResponse = (reply: FastifyReply, { status, body, headers = {} }: StoredResponse) =>
  reply.code(status).headers(headers).header('content-type', 'application/json; charset=utf-8').send(body)

/** Tells the client that it has received this response before. */
export const withReplayHeader = ({
  status,
  body,
  replayed,
}: StoredResponse & { replayed: boolean }): StoredResponse => ({
  status,
  body,
  headers: replayed ? { 'idempotent-replayed': 'true' } : {},
})

/** For a body that may show a key or a signing secret for the only time: nobody on the way may keep it. */
export const withNoStore = ({ status, body }: StoredResponse): StoredResponse => ({
  status,
  body,
  headers: { 'cache-control': 'no-store' },
})
