import type { Socket } from 'node:net'

/** A payment that a contract wallet signed takes up to half of this, and has to be read before it can be refused. */
export const HEADER_LIMIT = 32 * 1024

const meanings: Record<string, { line: string; error: string; code?: string; message: string }> = {
  HPE_HEADER_OVERFLOW: {
    line: '431 Request Header Fields Too Large',
    error: 'error',
    code: 'too_large',
    message: `The headers are larger than ${HEADER_LIMIT / 1024} KiB.`,
  },
  ERR_HTTP_REQUEST_TIMEOUT: {
    line: '408 Request Timeout',
    error: 'error',
    code: 'expired',
    message: 'The request did not arrive in time; nothing was done.',
  },
}
const notHttp = { line: '400 Bad Request', error: 'invalid_request', message: 'This is not HTTP that can be read.' }

/** What Node could not read as a request has no route and no reply, so the usual words go straight to the socket. */
export function answerUnreadable(failure: { code?: string }, socket: Socket, requestId: string) {
  if (failure.code === 'ECONNRESET' || socket.destroyed) return
  const { line, ...said } = meanings[failure.code ?? ''] ?? notHttp
  const body = JSON.stringify({ ...said, request_id: requestId })
  const head = [
    `HTTP/1.1 ${line}`,
    `x-request-id: ${requestId}`,
    'content-type: application/json; charset=utf-8',
    `content-length: ${Buffer.byteLength(body)}`,
    'connection: close',
  ]
  if (socket.writable) socket.end(`${head.join('\r\n')}\r\n\r\n${body}`)
  else socket.destroy()
}
