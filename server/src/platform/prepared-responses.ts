import { hash } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { limitedAddress } from './client-network.ts'
import type { Clock } from './clock.ts'
import type { App } from './http-app.ts'
import type { Ids } from './ids.ts'
import type { Log } from './log.ts'
import type { Metrics } from './metrics.ts'
import type { Allowance, RateLimiter } from './rate-limit.ts'

/** The bytes of a JSON response, made once and sent to every caller. */
export type PreparedResponse = { body: Buffer; etag: string }

export type PreparedRoute = {
  /** The pattern of the route, which names it in the metrics. */
  route: string
  /** As in the route's `config`. */
  unmetered?: boolean
  evidence?: boolean
  /** The current response; undefined when the route has to make it first. */
  find(): PreparedResponse | undefined
}

declare module 'fastify' {
  interface FastifyInstance {
    /**
     * Answers GET of this exact path with prepared bytes, before the framework. The route must be registered too: it
     * answers whenever there are no bytes yet, or when the request has a query, a credential or a body.
     */
    prepareResponse(path: string, route: PreparedRoute): void
  }
}

export type PreparedDeps = {
  log: Log
  ids: Ids
  metrics: Metrics
  limiter: RateLimiter
  anonymousPerMinute: number
  /** Headers that may be sent once; a request with one of them is left to the framework. */
  checkedHeaders: ReadonlySet<string>
  /** False when every request has to pass through the framework's hooks. */
  enabled: boolean
  /** False when the address of the caller is in a header of a proxy, which the framework reads. */
  socketIsCaller: boolean
}

export const JSON_TYPE = 'application/json; charset=utf-8'

export const prepareResponse = (text: string): PreparedResponse => {
  const body = Buffer.from(text)
  return { body, etag: `"${hash('sha256', body, 'base64url').slice(0, 27)}"` }
}

/** A valid id that the client sent is kept, so that it can follow its request through our log. */
export const readRequestId = (headers: IncomingMessage['headers'], ids: Ids): string => {
  const requestId = headers['x-request-id']
  return typeof requestId === 'string' && /^[\w-]{1,64}$/.test(requestId) ? requestId : ids.next('req')
}

/** Sends prepared bytes from a route. */
export function sendPrepared(request: FastifyRequest, reply: FastifyReply, { body, etag }: PreparedResponse) {
  reply.header('etag', etag)
  if (matches(request.headers['if-none-match'], etag)) return reply.code(304).send()
  return reply.header('content-type', JSON_TYPE).send(body)
}

const matches = (header: string | undefined, etag: string) =>
  header?.split(',').some((value) => value.trim().replace(/^W\//, '') === etag || value.trim() === '*') ?? false

/**
 * Answers prepared routes on the server itself: the framework's routing, hooks and reply cost as much as the response. What
 * the hooks promise is kept: request id, rate limit, metrics and log line. Returns the allowance that was taken here for a
 * request that the framework goes on with.
 */
export function servePreparedResponses(
  app: App,
  deps: PreparedDeps,
): (request: IncomingMessage) => Allowance | undefined {
  const routes = new Map<string, PreparedRoute>()
  const takenAllowances = new WeakMap<IncomingMessage, Allowance>()
  let closing = false
  app.decorate('prepareResponse', (path: string, route: PreparedRoute) => void routes.set(path, route))
  app.addHook('preClose', async () => {
    closing = true
  })

  const find = (request: IncomingMessage) => {
    const route = request.method === 'GET' ? routes.get(request.url!) : undefined
    if (!route || closing || !isPlain(request.headers)) return undefined
    const response = route.find()
    return response && { route, response }
  }

  const isPlain = (headers: IncomingMessage['headers']) => {
    for (const name in headers) if (deps.checkedHeaders.has(name)) return false
    return headers['content-length'] === undefined && headers['transfer-encoding'] === undefined
  }

  const send = (
    request: IncomingMessage,
    reply: ServerResponse,
    startedAt: number,
    { route, response }: { route: PreparedRoute; response: PreparedResponse },
    allowance?: Allowance,
  ) => {
    const requestId = readRequestId(request.headers, deps.ids)
    const status = matches(request.headers['if-none-match'], response.etag) ? 304 : 200
    const headers = ['x-request-id', requestId, 'x-content-type-options', 'nosniff', 'etag', response.etag]
    if (route.evidence) headers.push('access-control-allow-origin', '*')
    if (allowance) headers.push(...Object.entries(allowanceHeaders(allowance)).flat())
    if (status === 200) headers.push('content-type', JSON_TYPE, 'content-length', String(response.body.length))
    reply.writeHead(status, headers)
    if (status === 200) reply.end(response.body)
    else reply.end()
    const ms = performance.now() - startedAt
    deps.metrics.httpSeconds.observe({ method: 'GET', route: route.route, status }, ms / 1000)
    if (deps.log.isLevelEnabled('info'))
      deps.log.info(
        { request_id: requestId, method: 'GET', route: route.route, status, ms: Math.round(ms) },
        'request completed',
      )
  }

  const [handle] = app.server.listeners('request') as ((request: IncomingMessage, reply: ServerResponse) => void)[]
  if (deps.enabled && handle) {
    app.server.removeAllListeners('request')
    app.server.on('request', (request: IncomingMessage, reply: ServerResponse) => {
      const prepared = find(request)
      if (!prepared) return handle(request, reply)
      const startedAt = performance.now()
      if (prepared.route.unmetered || deps.anonymousPerMinute === 0) return send(request, reply, startedAt, prepared)
      if (!deps.socketIsCaller) return handle(request, reply)
      const proceed = (allowance: Allowance) => {
        if (allowance.allowed) return send(request, reply, startedAt, prepared, allowance)
        takenAllowances.set(request, allowance)
        handle(request, reply)
      }
      const allowance = deps.limiter.take(
        `address:${limitedAddress(request.socket.remoteAddress ?? '')}`,
        deps.anonymousPerMinute,
      )
      if (allowance instanceof Promise) allowance.then(proceed, () => handle(request, reply))
      else proceed(allowance)
    })
  }
  return (request) => takenAllowances.get(request)
}

/** The IETF `RateLimit` headers. */
export const allowanceHeaders = ({ limit, remaining, resetSeconds, windowSeconds }: Allowance) => {
  const policy = windowSeconds === 60 ? '"minute"' : '"hour"'
  return {
    'ratelimit-policy': `${policy};q=${limit};w=${windowSeconds}`,
    ratelimit: `${policy};r=${remaining};t=${resetSeconds}`,
  }
}

export type PreparedJson = ReturnType<typeof createPreparedJson>

/** Keeps the bytes of a response until what it is made of is another object, or for `maxAgeMs`. */
export function createPreparedJson(deps: {
  clock: Clock
  /** The object that the response is made of; compared by identity. */
  source: () => object
  build: () => unknown
  maxAgeMs?: number
}) {
  const { clock, source, build, maxAgeMs = Number.POSITIVE_INFINITY } = deps
  type Entry = { source: object; at: number; response: Promise<PreparedResponse>; ready?: PreparedResponse }
  let entry: Entry | undefined

  const isCurrent = (candidate: Entry | undefined): candidate is Entry =>
    candidate !== undefined &&
    candidate.source === source() &&
    (maxAgeMs === Number.POSITIVE_INFINITY || clock.now().getTime() - candidate.at < maxAgeMs)

  const make = (serialize: (value: unknown) => string): Entry => {
    const made: Entry = {
      source: source(),
      at: clock.now().getTime(),
      response: Promise.resolve(build()).then((value) => {
        made.ready = prepareResponse(serialize(value))
        return made.ready
      }),
    }
    made.response.catch(() => {
      if (entry === made) entry = undefined
    })
    return made
  }

  return {
    find: (): PreparedResponse | undefined => (isCurrent(entry) ? entry.ready : undefined),
    /** `serialize` is the route's own serialiser, so that the bytes are those its schema describes. */
    async read(serialize: (value: unknown) => string): Promise<PreparedResponse> {
      if (!isCurrent(entry)) entry = make(serialize)
      return entry.response
    },
  }
}
