import type { FastifyReply, FastifyRequest, RouteHandlerMethod } from 'fastify'
import { limitedAddress } from './client-network.ts'
import type { FairQueue } from './fair-queue.ts'
import type { App } from './http-app.ts'
import { Problem } from './problem.ts'

/** Where requests take turns by tenant, or by address without a key. */
export type Queues = {
  /** Requests that run a task or wait for somebody else's service; a place is held to the end. */
  runs: FairQueue
  /** Every request, from before its body is read until its response, or until the work of its run begins. */
  requests: FairQueue
}

/** Begins a request now or when it is its caller's turn. `refuse` gets the 503 when too much of the caller waits. */
export type TakeTurn = (
  request: FastifyRequest,
  reply: FastifyReply,
  begin: () => void,
  refuse: (e: Error) => void,
) => void

/**
 * Requests take turns before their bodies are read, so that a burst of one caller is parsed and handled piece by piece
 * between the requests of the others. Routes without a rate limit and those of operators do not wait.
 */
export function useTurns(app: App, { runs, requests }: Queues): TakeTurn {
  const handledRequests = new WeakSet<FastifyRequest>()
  // The route of HEAD has the handler of GET, which ends its turn already.
  const wrappedHandlers = new WeakSet<RouteHandlerMethod>()
  app.decorateRequest('endTurn', null as never)

  app.addHook('onRoute', (route) => {
    const { handler } = route
    if (!takesTurns(route.config) || wrappedHandlers.has(handler)) return
    route.handler = async function (request, reply) {
      handledRequests.add(request)
      try {
        return await handler.call(this, request, reply)
      } finally {
        request.endTurn(true)
      }
    }
    wrappedHandlers.add(route.handler)
  })

  return (request, reply, begin, refuse) => {
    const { config } = request.routeOptions
    if (!takesTurns(config)) return begin()
    const owner = turnOwner(request)
    const ends: (() => void)[] = []
    request.endTurn = (isAnswered) => {
      for (const end of isAnswered ? ends : ends.slice(-1)) end()
    }
    // A request that ends before its handler began has a body that is refused or cut off.
    reply.raw.once('close', () => {
      if (!handledRequests.has(request)) request.endTurn(true)
    })
    const enter = (queue: FairQueue, next: () => void) =>
      queue
        .run(owner, () => {
          if (reply.raw.destroyed) return Promise.reject(callerLeft())
          return new Promise<void>((end) => {
            ends.push(end)
            next()
          })
        })
        .catch((error) => {
          request.endTurn(true)
          refuse(error)
        })
    if (config.paid || config.slow) enter(runs, () => enter(requests, begin))
    else enter(requests, begin)
  }
}

/** Nobody reads it; it ends the request, which has not begun. */
const callerLeft = () =>
  new Problem('error', 'The connection was closed before the request began.', { status: 499, expected: true })

type RouteConfig = FastifyRequest['routeOptions']['config']

const takesTurns = (config: Partial<RouteConfig> | undefined) =>
  !config?.unmetered && !config?.uncounted && config?.auth !== 'admin'

const turnOwner = ({ caller, ip }: FastifyRequest) =>
  caller.kind === 'tenant' ? caller.tenantId : `address:${limitedAddress(ip)}`
