import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** A connection that sends more requests than this without waiting for answers is closed. */
export const MAX_PIPELINED = 1_000
/** When so many requests of a connection wait, the other connections from its address are not read in the same turn. */
const MANY_PIPELINED = 16

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
  const restOthers = restOtherSockets(server)
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
    if (connection.waiting === MANY_PIPELINED) restOthers(socket)
    previous.once('close', () =>
      setImmediate(() => {
        connection.waiting -= 1
        if (!socket.destroyed && socket.writable) handle(request, reply)
      }),
    )
  })
}

/**
 * Lets the other sockets of an address wait until the next turn. The hundreds of requests of one packet are parsed in one
 * go; those of ten connections would be parsed one after the other before anybody else is served.
 */
function restOtherSockets(server: Server) {
  const socketsOf = new Map<string, Set<Socket>>()
  server.on('connection', (socket: Socket) => {
    const address = socket.remoteAddress ?? ''
    const sockets = socketsOf.get(address) ?? new Set()
    socketsOf.set(address, sockets.add(socket))
    socket.once('close', () => {
      sockets.delete(socket)
      if (sockets.size === 0) socketsOf.delete(address)
    })
  })
  return (busy: Socket) => {
    const sockets = [...(socketsOf.get(busy.remoteAddress ?? '') ?? [])]
    const stopped = sockets.filter((socket) => socket !== busy && !socket.isPaused())
    for (const socket of stopped) socket.pause()
    setImmediate(() => {
      for (const socket of stopped) socket.resume()
    })
  }
}
