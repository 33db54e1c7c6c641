import type { Socket } from 'node:net'

/** A payment signed by a contract wallet takes up to half of this, and has to be read before it can be refused. */
export const HEADER_LIMIT = 32 * 1024

const clientErrors: Record<string, { statusLine: string; error: string; code?: string; message: string }> = {
  HPE_HEADER_OVERFLOW: {
    statusLine: '431 Request Header Fields Too Large',
    error: 'error',
    code: 'too_large',
    message: `The headers are larger than ${HEADER_LIMIT / 1024} KiB.`,
  },
  ERR_HTTP_REQUEST_TIMEOUT: {
    statusLine: '408 Request Timeout',
    error: 'error',
    code: 'expired',
    message: 'The request did not arrive in time; nothing was done.',
  },
}
const malformedRequest = {
  statusLine: '400 Bad Request',
  error: 'invalid_request',
  message: 'The request is not valid HTTP.',
}

/** A request that Node could not parse has no route and no reply object, so the error body is written to the socket. */
export function sendClientError(
  failure: { code?: string },
  socket: Socket,
  requestId: string,
  transportSecurity?: string,
) {
  if (failure.code === 'ECONNRESET' || socket.destroyed) return
  const { statusLine, ...error } = clientErrors[failure.code ?? ''] ?? malformedRequest
  const body = JSON.stringify({ ...error, request_id: requestId })
  const head = [
    `HTTP/1.1 ${statusLine}`,
    `x-request-id: ${requestId}`,
    'content-type: application/json; charset=utf-8',
    `content-length: ${Buffer.byteLength(body)}`,
    ...(transportSecurity ? [`strict-transport-security: ${transportSecurity}`] : []),
    'connection: close',
  ]
  if (socket.writable) socket.end(`${head.join('\r\n')}\r\n\r\n${body}`)
  else socket.destroy()
}
