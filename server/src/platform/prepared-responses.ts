import { hash } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { limitedAddress } from './client-network.ts'
import type { Clock } from './clock.ts'
import type { App } from './http-app.ts'
import type { Ids } from './ids.ts'
import type { Log } from './log.ts'
import type { Metrics } from './metrics.ts'
import type { Allowance, RateLimiter } from './rate-limit.ts'

/** The bytes of a response, made once and sent to every caller. */
export type PreparedResponse = {
  body: Buffer
  etag: string
  /** The same bytes compressed, the smallest first; each is a representation with its own ETag. */
  encodings?: readonly { name: 'br' | 'gzip'; body: Buffer; etag: string }[]
}

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
  /** The value of Strict-Transport-Security; undefined when clients do not reach the service over https. */
  transportSecurity: () => string | undefined
  /** False when the address of the caller is in a header of a proxy, which the framework reads. */
  socketIsCaller: boolean
}

export const JSON_TYPE = 'application/json; charset=utf-8'

export const prepareResponse = (content: string | Buffer): PreparedResponse => {
  const body = typeof content === 'string' ? Buffer.from(content) : content
  return { body, etag: `"${hash('sha256', body, 'base64url').slice(0, 27)}"` }
}

/** Near the best quality at a twentieth of its time. */
const BROTLI_QUALITY = 9
const MIN_COMPRESSED_BYTES = 1_024

/** Adds the compressed forms, which are worth making for bytes that are large and sent often. */
export async function compressResponse(response: PreparedResponse): Promise<PreparedResponse> {
  if (response.body.length < MIN_COMPRESSED_BYTES) return response
  const [br, gz] = await Promise.all([
    promisify(brotliCompress)(response.body, { params: { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY } }),
    promisify(gzip)(response.body, { level: 9 }),
  ])
  const withSuffix = (suffix: string) => `${response.etag.slice(0, -1)}-${suffix}"`
  return {
    ...response,
    encodings: [
      { name: 'br', body: br, etag: withSuffix('br') },
      { name: 'gzip', body: gz, etag: withSuffix('gzip') },
    ],
  }
}

type Representation = { body: Buffer; headers: Readonly<Record<string, string>> & { etag: string } }

/** The forms of each response, made with its first request. */
const representations = new WeakMap<PreparedResponse, readonly Representation[]>()

/** The bytes to send to this client and the headers that say which they are. */
function negotiate(
  response: PreparedResponse,
  acceptEncoding: IncomingMessage['headers']['accept-encoding'],
): Representation {
  const forms = representations.get(response) ?? makeForms(response)
  if (forms.length === 1) return forms[0]!
  const place = response.encodings!.findIndex(({ name }) => accepts(String(acceptEncoding ?? ''), name))
  return forms[place + 1]!
}

/** The bytes as they are, then each of their compressed forms. */
function makeForms(response: PreparedResponse): readonly Representation[] {
  const { body, etag, encodings = [] } = response
  const vary = encodings.length > 0 && { vary: 'accept-encoding' }
  const forms = [
    { body, headers: { etag, ...vary } },
    ...encodings.map((form) => ({
      body: form.body,
      headers: { etag: form.etag, 'content-encoding': form.name, ...vary },
    })),
  ]
  representations.set(response, forms)
  return forms
}

/** What is written to the socket. A text is sent together with the head of the response in one write, a buffer is not. */
type WireForm = { etag: string; headers: readonly string[]; headersUnchanged: readonly string[]; text: string }

const wireForms = new WeakMap<Representation, WireForm>()

function wireFormOf(representation: Representation): WireForm {
  const made = wireForms.get(representation)
  if (made) return made
  const { body, headers } = representation
  const { 'content-encoding': encoding, ...common } = headers
  const headersUnchanged = ['x-content-type-options', 'nosniff', ...Object.entries(common).flat()]
  const form = {
    etag: headers.etag,
    headersUnchanged,
    headers: [
      ...headersUnchanged,
      ...(encoding ? ['content-encoding', encoding] : []),
      ...['content-type', JSON_TYPE, 'content-length', String(body.length)],
    ],
    text: body.toString('latin1'),
  }
  wireForms.set(representation, form)
  return form
}

const accepts = (header: string, name: string) =>
  header.split(',').some((part) => {
    const [coding, quality] = part.split(';')
    return coding!.trim().toLowerCase() === name && !/^\s*q=0(\.0*)?\s*$/i.test(quality ?? '')
  })

/** A valid id that the client sent is kept, so that it can follow its request through our log. */
export const readRequestId = (headers: IncomingMessage['headers'], ids: Ids): string => {
  const requestId = headers['x-request-id']
  return typeof requestId === 'string' && /^[\w-]{1,64}$/.test(requestId) ? requestId : ids.next('req')
}

/** Sends prepared bytes from a route. */
export function sendPrepared(
  request: FastifyRequest,
  reply: FastifyReply,
  response: PreparedResponse,
  contentType = JSON_TYPE,
) {
  const { body, headers } = negotiate(response, request.headers['accept-encoding'])
  const { 'content-encoding': encoding, ...common } = headers
  reply.headers(common)
  if (matches(request.headers['if-none-match'], headers.etag)) return reply.code(304).send()
  if (encoding) reply.header('content-encoding', encoding)
  return reply.header('content-type', contentType).send(body)
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
    if (!route || closing || !isPlain(request.headers) || repeatsHost(request.rawHeaders)) return undefined
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
    const form = wireFormOf(negotiate(response, request.headers['accept-encoding']))
    const status = matches(request.headers['if-none-match'], form.etag) ? 304 : 200
    const headers = ['x-request-id', requestId, ...(status === 200 ? form.headers : form.headersUnchanged)]
    const transportSecurity = deps.transportSecurity()
    if (transportSecurity) headers.push('strict-transport-security', transportSecurity)
    if (route.evidence) headers.push('access-control-allow-origin', '*')
    if (allowance) headers.push(...Object.entries(allowanceHeaders(allowance)).flat())
    reply.writeHead(status, headers)
    if (status === 200) reply.end(form.text, 'latin1')
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

/** Two Host headers: a proxy in front might route by the other one. */
export function repeatsHost(rawHeaders: readonly string[]): boolean {
  let hosts = 0
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]!
    if (name.length === 4 && name.toLowerCase() === 'host') hosts += 1
  }
  return hosts > 1
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
