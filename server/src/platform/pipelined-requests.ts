import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** A connection that sends more requests than this without waiting for answers is closed. */
export const MAX_PIPELINED = 1_000

type Handle = (request: IncomingMessage, reply: ServerResponse) => void
type Connection = { current: ServerResponse; waiting: number }

/**
 * Handles the requests of a connection one after another, each in a turn of its own. Node would hand over all requests
 * that a client has pipelined at once, and nobody else would be served until their answers are written.
 */
export function queuePipelinedRequests(server: Server) {
  const [handle] = server.listeners('request') as Handle[]
  if (!handle) return
  const connections = new WeakMap<Socket, Connection>()
  server.removeAllListeners('request')
  server.on('request', (request: IncomingMessage, reply: ServerResponse) => {
    const { socket } = request
    const connection = connections.get(socket)
    if (!connection) {
      connections.set(socket, { current: reply, waiting: 0 })
      return handle(request, reply)
    }
    const previous = connection.current
    connection.current = reply
    if (previous.writableFinished || previous.closed) return handle(request, reply)
    if (connection.waiting >= MAX_PIPELINED) return void socket.destroy()
    connection.waiting += 1
    previous.once('close', () =>
      setImmediate(() => {
        connection.waiting -= 1
        if (!socket.destroyed && socket.writable) handle(request, reply)
      }),
    )
  })
}
