import type { FastifyReply } from 'fastify'

/** A response whose body was composed once. It is sent byte for byte, the first time and every time it is repeated. */
export type StoredResponse = { status: number; body: string; headers?: Record<string, string> }

export const sendStoredResponse = (reply: FastifyReply, { status, body, headers = {} }: StoredResponse) =>
  reply.code(status).headers(headers).header('content-type', 'application/json; charset=utf-8').send(body)

/** Adds `idempotent-replayed` to a replayed response. */
export const withReplayHeader = ({
  status,
  body,
  replayed,
}: StoredResponse & { replayed: boolean }): StoredResponse => ({
  status,
  body,
  headers: replayed ? { 'idempotent-replayed': 'true' } : {},
})

/** For a body that may contain a key or a signing secret that is shown once: caches must not store it. */
export const withNoStore = ({ status, body }: StoredResponse): StoredResponse => ({
  status,
  body,
  headers: { 'cache-control': 'no-store' },
})
