import { createServer, type Server, Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { findFreePort } from '../free-port.ts'
import { createRandom, type Random } from '../fuzz/random.ts'

/**
 * What happens to a connection:
 * - `latency`: each piece of data waits, longer by a random part of the jitter
 * - `bandwidth`: both directions together are as slow as this
 * - `black_hole`: connections are accepted and nothing passes; what was sent meanwhile passes when the fault ends
 * - `reset`: RST to both sides, at once for connections that exist
 * - `half_close`: one side, chosen by the seed, is told that the other will send no more (FIN)
 * - `cut`: RST to both sides after so many bytes
 * - `refuse`: nobody listens on the port; connections that exist are reset
 */
export type Fault =
  | { kind: 'latency'; ms: number; jitterMs: number }
  | { kind: 'bandwidth'; bytesPerSecond: number }
  | { kind: 'black_hole' }
  | { kind: 'reset' }
  | { kind: 'half_close' }
  | { kind: 'cut'; afterBytes: number }
  | { kind: 'refuse' }

export type FaultKind = Fault['kind']
export const FAULT_KINDS = ['latency', 'bandwidth', 'black_hole', 'reset', 'half_close', 'cut', 'refuse'] as const

export type FaultProxy = Awaited<ReturnType<typeof startFaultProxy>>

const MAX_PIECE_BYTES = 16 * 1024

type Connection = {
  /** Decides whether a fault for a share of the connections takes this one. */
  draw: number
  random: Random
  client: Socket
  upstream: Socket
  bytes: number
  close(how: 'reset' | 'end'): void
}

/**
 * A TCP proxy that treats connections badly on purpose. Which connections a fault takes, its jitter and the side of a
 * half-close depend on the seed and on the number of the connection only, so that a run can be repeated.
 */
export async function startFaultProxy(target: { host?: string; port: number } | { path: string }, { seed = 1 } = {}) {
  const connections = new Set<Connection>()
  const port = await findFreePort()
  let server: Server | undefined
  let accepted = 0
  let fault: Fault | undefined
  let share = 1
  /** Resolved and replaced whenever the fault changes, so that what waits looks again. */
  let change = Promise.withResolvers<void>()

  const faultOf = (connection: Connection) => (fault && connection.draw < share ? fault : undefined)

  /** Waits until this piece may pass; false when its connection has been closed instead. */
  const mayPass = async (connection: Connection, bytes: number): Promise<boolean> => {
    for (;;) {
      const current = faultOf(connection)
      if (current?.kind === 'black_hole') {
        await change.promise
        if (connection.client.destroyed || connection.upstream.destroyed) return false
        continue
      }
      if (current?.kind === 'latency') await delay(current.ms + connection.random.next() * current.jitterMs)
      if (current?.kind === 'bandwidth') await delay((bytes / current.bytesPerSecond) * 1000)
      if (current?.kind === 'cut' && connection.bytes + bytes > current.afterBytes) {
        connection.close('reset')
        return false
      }
      if (faultOf(connection)?.kind === 'black_hole') continue
      connection.bytes += bytes
      return !connection.client.destroyed && !connection.upstream.destroyed
    }
  }

  const pump = async (connection: Connection, from: Socket, to: Socket) => {
    for await (const chunk of from.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      for (let start = 0; start < chunk.length; start += MAX_PIECE_BYTES) {
        const piece = chunk.subarray(start, start + MAX_PIECE_BYTES)
        if (!(await mayPass(connection, piece.length))) return
        if (!to.write(piece)) await new Promise<void>((resume) => waitForDrain(to, resume))
      }
    }
    to.end()
  }

  const accept = (client: Socket) => {
    const random = createRandom(seed, accepted++)
    const upstream = new Socket({ allowHalfOpen: true })
    const connection: Connection = {
      draw: random.next(),
      random,
      client,
      upstream,
      bytes: 0,
      close(how) {
        connections.delete(connection)
        // Only TCP has a reset; a socket in the file system is closed.
        for (const socket of [client, upstream])
          how === 'reset' && socket.remoteAddress !== undefined ? socket.resetAndDestroy() : socket.destroy()
      },
    }
    connections.add(connection)
    // A side that goes away without its FIN takes the other with it, as a router in between would.
    for (const socket of [client, upstream]) {
      socket.on('error', () => connection.close('reset'))
      socket.setNoDelay(true)
    }
    void serve(connection).catch(() => connection.close('reset'))
  }

  const serve = async (connection: Connection) => {
    const { client, upstream } = connection
    const current = faultOf(connection)
    if (current?.kind === 'reset') return connection.close('reset')
    if (current?.kind === 'black_hole' && !(await mayPass(connection, 0))) return connection.close('end')
    await new Promise<void>((connected, failed) => {
      upstream.once('error', failed)
      upstream.connect('path' in target ? target : { host: '127.0.0.1', ...target }, connected)
    })
    applyTo(connection)
    await Promise.all([pump(connection, client, upstream), pump(connection, upstream, client)])
    connection.close('end')
  }

  /** What a fault does at once to a connection that exists. */
  const applyTo = (connection: Connection) => {
    const current = faultOf(connection)
    if (current?.kind === 'reset' || current?.kind === 'refuse') connection.close('reset')
    if (current?.kind === 'half_close') (connection.random.chance(0.5) ? connection.client : connection.upstream).end()
  }

  const listen = async () => {
    if (server) return
    server = createServer({ allowHalfOpen: true, pauseOnConnect: false }, accept)
    await new Promise<void>((listening, failed) => {
      server!.once('error', failed)
      server!.listen(port, '127.0.0.1', listening)
    })
  }
  const stopListening = () => {
    server?.close()
    server = undefined
  }

  const setFault = async (next: Fault | undefined, options: { share?: number } = {}) => {
    fault = next
    share = options.share ?? 1
    change.resolve()
    change = Promise.withResolvers()
    for (const connection of connections) connection.bytes = 0
    if (next?.kind === 'refuse') stopListening()
    else await listen()
    for (const connection of connections) applyTo(connection)
  }

  await listen()
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    /** Changes what happens from now on, to all connections or to a share of them (0 to 1). */
    setFault,
    clear: () => setFault(undefined),
    fault: () => fault,
    acceptedCount: () => accepted,
    openCount: () => connections.size,
    async close() {
      fault = undefined
      change.resolve()
      stopListening()
      for (const connection of connections) connection.close('reset')
    },
  }
}

function waitForDrain(socket: Socket, resume: () => void) {
  const finish = () => {
    socket.off('drain', finish)
    socket.off('close', finish)
    resume()
  }
  socket.once('drain', finish)
  socket.once('close', finish)
  if (socket.destroyed) finish()
}

/** A fault of this kind with values by chance, strong enough to be felt and weak enough to leave something to pass. */
export function randomFault(kind: FaultKind, random: Random): Fault {
  if (kind === 'latency') return { kind, ms: 20 + random.below(400), jitterMs: random.below(600) }
  if (kind === 'bandwidth') return { kind, bytesPerSecond: 2_000 + random.below(60_000) }
  if (kind === 'cut') return { kind, afterBytes: 50 + random.below(20_000) }
  return { kind }
}
