import type { Server } from 'node:http'
import swagger from '@fastify/swagger'
import { Ajv } from 'ajv'
import formats from 'ajv-formats'
import fastify, { type FastifyReply, type FastifyRequest, type preValidationHookHandler } from 'fastify'
import { type Authenticate, type Caller, guest, type KeyScope, requireScope, requireTenant } from './auth-context.ts'
import { limitedAddress } from './client-network.ts'
import type { Clock } from './clock.ts'
import { isOutcomeUnknown, isUnavailable } from './db.ts'
import { createDrain, type Drain } from './drain.ts'
import type { App } from './http-app.ts'
import { HEADER_LIMIT, sendClientError } from './http-client-errors.ts'
import { createMethodIndex, describeForeignId } from './http-methods.ts'
import { describeErrors, openapiInfo } from './http-openapi.ts'
import type { Ids } from './ids.ts'
import type { Log } from './log.ts'
import type { Metrics } from './metrics.ts'
import { findMisplacedKey } from './misplaced-key.ts'
import { queuePipelinedRequests } from './pipelined-requests.ts'
import { buildPlainSerializer } from './plain-serializer.ts'
import { allowanceHeaders, readRequestId, repeatsHost, servePreparedResponses } from './prepared-responses.ts'
import { invalid, Problem, unauthorized } from './problem.ts'
import { toProblemDetails } from './problem-details.ts'
import type { Allowance, RateLimiter } from './rate-limit.ts'
import { createRefusalPace } from './refusal-pace.ts'
import { isPlainName } from './schema.ts'
import { parseStrictJson, StrictJsonError } from './strict-json.ts'
import { outsideTenantReads, withTenantReads } from './tenant-reads.ts'
import { type Queues, type TakeTurn, useTurns } from './turns.ts'
import { type ValidationError, validationDetails, validationMessage } from './validation-message.ts'

export type HttpDeps = {
  log: Log
  clock: Clock
  ids: Ids
  metrics: Metrics
  authenticate: Authenticate
  limiter: RateLimiter
  queues?: Queues
  limits: { anonymousPerMinute: number; keyPerMinute: number }
  /** The payer whose signature the payment in the headers carries, checked without a chain; undefined without such a payment. */
  findSignedPayer?: (headers: FastifyRequest['headers']) => string | undefined
  publicUrl: () => string
  /** Proxies whose X-Forwarded-For is trusted; none unless the operator names them. */
  trustProxy?: string[]
  /** Counts the requests under way, and refuses new ones when the service is being stopped. */
  drain?: Drain
  /** Whether every request gets a span, which the framework's hooks begin and end. */
  tracesRequests?: boolean
}

const BODY_LIMIT = 256 * 1024
const REQUEST_TIMEOUT_MS = 60_000
// If one of these is sent twice, this service and a proxy might use different values.
const singleHeaders = new Set([
  'x-api-key',
  'x-admin-key',
  'authorization',
  'idempotency-key',
  'payment-signature',
  'x-payment',
  'x-tenant-id',
])
const paymentHeaders = ['payment-signature', 'x-payment']

export async function createHttp(deps: HttpDeps): Promise<App> {
  const app: App = fastify({
    // No logger for Fastify: with one it listens for the end of every response, which adds a tenth to a cached response.
    bodyLimit: BODY_LIMIT,
    http: { maxHeaderSize: HEADER_LIMIT },
    requestTimeout: REQUEST_TIMEOUT_MS,
    clientErrorHandler: (error, socket) =>
      sendClientError(error, socket, deps.ids.next('req'), readTransportSecurity(deps.publicUrl())),
    genReqId: (request) => readRequestId(request.headers, deps.ids),
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: 256 },
    schemaController: { compilersFactory: { buildSerializer: buildPlainSerializer } },
    trustProxy: deps.trustProxy,
    return503OnClosing: true,
    forceCloseConnections: 'idle',
    frameworkErrors: (error, request, reply) => sendProblem(deps.log, error, request, reply),
  })

  const { drain = createDrain() } = deps
  const takenAllowance = servePreparedResponses(app, {
    ...deps,
    anonymousPerMinute: deps.limits.anonymousPerMinute,
    checkedHeaders: singleHeaders,
    enabled: !deps.tracesRequests,
    socketIsCaller: deps.trustProxy === undefined,
    transportSecurity: () => readTransportSecurity(deps.publicUrl()),
  })
  queuePipelinedRequests(app.server as Server)
  useStrictBodies(app)
  useValidators(app)
  repeatReads(app)
  const takeTurn: TakeTurn = deps.queues ? useTurns(app, deps.queues) : (_request, _reply, begin) => begin()
  const methods = createMethodIndex(app)
  app.decorateRequest<Caller | null>('caller', null)
  app.decorateRequest<FastifyReply | null>('reply', null)
  app.decorateRequest('startedAt', 0)
  app.decorateRequest('isUnderWay', false)
  const paceRefusal = createRefusalPace()
  app.decorateRequest(
    'limitAs',
    async function (this: FastifyRequest, subject: string, limit: number, windowMs?: number) {
      if (limit <= 0) return
      const allowance = await deps.limiter.take(subject, limit, windowMs)
      if (!allowance.allowed) await paceRefusal(subject)
      applyAllowance(this.reply, allowance)
    },
  )
  const countedRequests = new WeakSet<FastifyRequest>()
  app.decorateRequest('countAddress', async function (this: FastifyRequest, options?: { again: boolean }) {
    if (countedRequests.has(this) && !options?.again) return
    countedRequests.add(this)
    await this.limitAs(addressSubject(this), deps.limits.anonymousPerMinute)
  })

  // Callbacks instead of promises, so that routes without authentication and rate limit have no overhead.
  app.addHook('onRequest', (request, reply, done) => {
    reply.header('x-request-id', request.id).header('x-content-type-options', 'nosniff')
    const transportSecurity = readTransportSecurity(deps.publicUrl())
    if (transportSecurity) reply.header('strict-transport-security', transportSecurity)
    request.startedAt = performance.now()
    request.caller = guest
    request.reply = reply
    const { auth = 'none', unmetered, evidence, uncounted, paid, fromAnyOrigin } = request.routeOptions.config
    try {
      if (!uncounted) drain.begin(request)
      rejectNul(request)
      rejectRepeatedHeaders(request)
    } catch (error) {
      return done(error as Error)
    }
    if (evidence) reply.header('access-control-allow-origin', '*')
    if (fromAnyOrigin) reply.headers(PAID_ROUTE_CORS)
    if (paid) {
      reply.headers(PAID_ROUTE_CORS)
      readAsJson(request)
    }
    outsideTenantReads(() => {
      if (auth === 'none' && unmetered) return done()
      authenticate(deps, request)
        .catch((error) => countUnauthorized(request, error))
        .then(() => meter(deps, request, takenAllowance(request.raw), paceRefusal))
        .then(() => takeTurn(request, reply, () => continueRequest(request, done), done), done)
    })
  })
  app.addHook('onSend', (request, reply, payload, done) => {
    drain.end(request)
    if (drain.isDraining()) reply.header('connection', 'close')
    if (isPrivate(request) && !reply.hasHeader('cache-control')) reply.header('cache-control', 'no-store')
    const route = request.routeOptions.url ?? 'unknown'
    // Requests that match no route have no start time.
    const ms = request.startedAt === 0 ? 0 : performance.now() - request.startedAt
    deps.metrics.httpSeconds.observe({ method: request.method, route, status: reply.statusCode }, ms / 1000)
    if (deps.log.isLevelEnabled('info')) {
      const { id: request_id, method } = request
      deps.log.info({ request_id, method, route, status: reply.statusCode, ms: Math.round(ms) }, 'request completed')
    }
    done(null, reply.statusCode >= 400 ? toProblemDetails(request, reply, payload) : payload)
  })

  app.setErrorHandler((error, request, reply) => sendProblem(deps.log, error, request, reply))
  app.setNotFoundHandler((request, reply) => {
    const path = request.url.split('?')[0]!
    const allowed = methods.methodsOf(path)
    if (request.method === 'OPTIONS' && methods.isFromAnyOrigin(path)) return answerPreflight(reply, allowed)
    if (allowed.length === 0 || allowed.includes(request.method))
      throw new Problem('error', `No route matches this path. ${methods.suggestPath(path)}`, {
        status: 404,
        code: 'not_found',
      })
    reply.header('allow', allowed.join(', '))
    throw new Problem('error', `${request.method} is not supported here; use ${allowed.join(', ')}.`, {
      status: 405,
      code: 'method_not_allowed',
    })
  })

  await app.register(swagger, {
    openapi: openapiInfo(deps.publicUrl),
    transform: describeErrors,
    refResolver: { buildLocalReference: (json, _base, _fragment, index) => String(json.$id ?? `def-${index}`) },
  })
  return app
}

/** Accepts JSON only, read by our own strict parser; an empty body counts as no body, so that it can be optional. */
function useStrictBodies(app: App) {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, body, done) => {
    try {
      done(null, body.length === 0 ? undefined : parseStrictJson(readUtf8(body as Buffer)))
    } catch (error) {
      done(error instanceof StrictJsonError ? invalid(error.message) : (error as Error))
    }
  })
  // Only for routes with a body schema, so that the others run no hook.
  app.addHook('onRoute', (route) => {
    if (!route.schema?.body) return
    const useEmptyBody: preValidationHookHandler = (request, _reply, done) => {
      if (request.body === undefined) request.body = {}
      done()
    }
    route.preValidation = [useEmptyBody, ...[route.preValidation ?? []].flat()]
  })
}

/** A read whose connection was lost is done once more, on a connection to the server that is the primary by then. */
function repeatReads(app: App) {
  app.addHook('onRoute', (route) => {
    if (route.method !== 'GET' || route.config?.writes) return
    const { handler } = route
    route.handler = function (request, reply) {
      const result: unknown = handler.call(this, request, reply)
      if (!(result instanceof Promise)) return result
      return result.catch((error) => {
        if (!isOutcomeUnknown(error) || reply.sent) throw error
        return handler.call(this, request, reply)
      })
    }
  })
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** What is hashed, signed and paid for must be what was sent: invalid UTF-8 is refused, not replaced. */
function readUtf8(body: Buffer): string {
  try {
    return utf8.decode(body)
  } catch {
    throw new StrictJsonError('The body is not valid UTF-8.')
  }
}

/** Types in a body are not coerced: `1` is not `"1"`. Query strings and paths are text, so numbers in them are. */
function useValidators(app: App) {
  const options = {
    removeAdditional: false,
    useDefaults: true,
    allErrors: false,
    strict: false,
    discriminator: true,
    // Error messages name what a schema takes instead.
    verbose: true,
  } as const
  const strict = new Ajv({ ...options, coerceTypes: false })
  const coercing = new Ajv({ ...options, coerceTypes: true })
  for (const ajv of [strict, coercing]) {
    formats.default(ajv, ['uuid', 'uri', 'email'])
    ajv.addFormat('date-time', isTimestamp)
    ajv.addKeyword({ keyword: 'x-name', type: 'string', validate: (_: unknown, text: string) => isPlainName(text) })
  }
  app.setValidatorCompiler(({ schema, httpPart }) =>
    (httpPart === 'body' ? strict : coercing).compile(schema as object),
  )
}

const dateTime = formats.default.get('date-time') as { validate(text: string): boolean }

/** RFC 3339 also allows leap seconds and offsets without minutes, which `Date` cannot represent. */
const isTimestamp = (text: string): boolean => dateTime.validate(text) && !Number.isNaN(Date.parse(text))

/**
 * Pages of any origin may call paid routes: a payment is its own credential. No `access-control-allow-credentials`, so a
 * browser sends no cookie and a session cannot be used from another origin.
 */
const PAID_ROUTE_CORS = {
  'access-control-allow-origin': '*',
  'access-control-expose-headers':
    'PAYMENT-REQUIRED, PAYMENT-RESPONSE, X-PAYMENT-RESPONSE, X-Request-Id, Retry-After, Idempotent-Replayed, RateLimit, RateLimit-Policy, Location, Preference-Applied',
}
const PREFLIGHT_SECONDS = 600

/** x402 clients also send `access-control-expose-headers`, although it is a header of responses. */
function answerPreflight(reply: FastifyReply, methods: readonly string[]) {
  return reply
    .code(204)
    .headers(PAID_ROUTE_CORS)
    .header('access-control-allow-methods', methods.filter((method) => method !== 'HEAD').join(', '))
    .header(
      'access-control-allow-headers',
      'Content-Type, Accept, Prefer, PAYMENT-SIGNATURE, X-PAYMENT, Idempotency-Key, X-API-Key, X-Run-Token, Last-Event-ID, X-Request-Id, Access-Control-Expose-Headers',
    )
    .header('access-control-max-age', PREFLIGHT_SECONDS)
    .send()
}

/** Some agents' HTTP clients name no content type for a JSON body. Without a body the header stays absent, as in a probe. */
function readAsJson({ headers }: FastifyRequest) {
  const hasBody = headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
  if (headers['content-type'] === undefined && hasBody) headers['content-type'] = 'application/json'
}

/** PostgreSQL cannot store NUL. In a body the JSON parser refuses it; in a URL it can only appear as `%00`. */
function rejectNul(request: FastifyRequest) {
  if (request.raw.url!.includes('%00')) throw invalid('The URL contains a NUL character.')
}

const ONE_YEAR_SECONDS = 31_536_000

/** Browsers that reached the service over https once do not use http for it again. */
const readTransportSecurity = (publicUrl: string) =>
  publicUrl.startsWith('https:') ? `max-age=${ONE_YEAR_SECONDS}` : undefined

/** What a tenant or the operator is answered must not stay in a cache. Public evidence does not depend on the caller. */
function isPrivate({ caller, routeOptions }: FastifyRequest): boolean {
  const { auth, evidence } = routeOptions.config
  return !evidence && (caller?.kind === 'tenant' || auth === 'tenant' || auth === 'admin')
}

function rejectRepeatedHeaders(request: FastifyRequest) {
  const raw = request.raw.rawHeaders
  if (repeatsHost(raw)) throw invalid('The header host was sent more than once.')
  let seenHeaders: string[] | undefined
  for (let index = 0; index < raw.length; index += 2) {
    const name = raw[index]!.toLowerCase()
    if (!singleHeaders.has(name)) continue
    if (seenHeaders?.includes(name)) throw invalid(`The header ${name} was sent more than once.`)
    seenHeaders = seenHeaders ? [...seenHeaders, name] : [name]
  }
}

/** A tenant's reading request sees that tenant's rows only, whatever a query forgets to ask. */
function continueRequest({ method, caller }: FastifyRequest, done: () => void) {
  if (caller.kind === 'tenant' && (method === 'GET' || method === 'HEAD')) withTenantReads(caller.tenantId, done)
  else done()
}

async function authenticate(deps: HttpDeps, request: FastifyRequest) {
  const { auth = 'none', scope } = request.routeOptions.config
  if (auth === 'none') return
  if (auth === 'admin') {
    const adminKey = request.headers['x-admin-key']
    if (typeof adminKey !== 'string' || !deps.authenticate.admin(adminKey))
      throw unauthorized('A valid X-Admin-Key is required.')
    return
  }
  request.caller = await readCaller(deps, request)
  const isGuest = request.caller.kind === 'guest'
  // Whoever meant to send the key must not be served as a guest, whom no rule of the tenant binds.
  const isBearer = auth !== 'optional' && /^bearer /i.test(request.headers.authorization ?? '')
  const place = isGuest
    ? (findMisplacedKey(request.headers, request.raw.url!) ?? (isBearer && 'as Authorization: Bearer'))
    : undefined
  if (place) throw unauthorized(`A valid X-API-Key is required: send the key in the header X-API-Key, not ${place}.`)
  if (auth === 'optional' && isGuest) return
  if (scope) requireScope(request.caller, ...([scope].flat() as KeyScope[]))
  else requireTenant(request.caller)
}

/** A 401 counts against the caller's address; past the limit the response is 429. */
async function countUnauthorized(request: FastifyRequest, error: unknown): Promise<never> {
  if (error instanceof Problem && error.options.status === 401) await request.countAddress()
  throw error
}

async function readCaller(deps: HttpDeps, request: FastifyRequest): Promise<Caller> {
  const apiKey = request.headers['x-api-key']
  if (typeof apiKey === 'string') {
    const caller = await deps.authenticate.key(apiKey)
    if (!caller && /^["'`]/.test(apiKey)) throw unauthorized('Send the API key without quotation marks.')
    if (!caller) throw unauthorized(deps.authenticate.explainRefusal?.(apiKey) ?? 'This API key is not valid.')
    return caller
  }
  return (await deps.authenticate.session?.(request)) ?? guest
}

async function meter(
  deps: HttpDeps,
  request: FastifyRequest,
  taken: Allowance | undefined,
  paceRefusal: (subject: string) => Promise<void>,
) {
  const { unmetered, paid } = request.routeOptions.config
  if (taken?.allowed === false) await paceRefusal(addressSubject(request))
  if (taken) return applyAllowance(request.reply, taken)
  if (unmetered) return
  if (request.caller.kind === 'tenant') return request.limitAs(`key:${request.caller.keyId}`, deps.limits.keyPerMinute)
  const payer = paid && hasPayment(request) ? deps.findSignedPayer?.(request.headers) : undefined
  // Signatures are public once they are settled: by payer alone, a stranger could use up the requests of somebody else.
  if (payer) return request.limitAs(`payer:${payer}@${limitedAddress(request.ip)}`, deps.limits.keyPerMinute)
  return request.countAddress()
}

const addressSubject = ({ ip }: FastifyRequest) => `address:${limitedAddress(ip)}`

const hasPayment = ({ headers }: FastifyRequest) => paymentHeaders.some((name) => headers[name] !== undefined)

function applyAllowance(reply: FastifyReply, allowance: Allowance) {
  reply.headers(allowanceHeaders(allowance))
  if (allowance.allowed) return
  throw new Problem(
    'error',
    `Too many requests: ${allowance.limit} ${allowance.windowSeconds === 60 ? 'a minute' : 'an hour'} are allowed.`,
    {
      status: 429,
      code: 'rate_limited',
      retryable: true,
      retryAfterSeconds: allowance.resetSeconds,
    },
  )
}

type FastifyErrorLike = {
  statusCode?: number
  code?: string
  validation?: ValidationError[]
  validationContext?: string
  message: string
}

function sendProblem(log: Log, error: unknown, request: FastifyRequest, reply: FastifyReply) {
  const problem = error instanceof Problem ? error : toProblem(error as FastifyErrorLike, request.method)
  const { status, code, retryable, retryAfterSeconds, details, nextAction, expected, extra } = problem.options
  // `planned` and `not_configured` are expected responses, not failures.
  if (status >= 500 && !expected && code !== 'planned' && code !== 'not_configured')
    log.error({ request_id: request.id, err: problem.options.cause ?? error }, problem.message)
  if (retryAfterSeconds !== undefined) reply.header('retry-after', retryAfterSeconds)
  reply
    .code(status)
    .header('x-request-id', request.id)
    .header('content-type', 'application/json; charset=utf-8')
    .send(
      JSON.stringify({
        error: problem.error,
        message: `${problem.message}${code === 'not_found' ? describeForeignId(request.url) : ''}`,
        ...(code && { code }),
        ...(retryable !== undefined && { retryable }),
        ...(details !== undefined && { details }),
        ...(nextAction && { next_action: nextAction }),
        ...extra,
        request_id: request.id,
      }),
    )
}

const NOTHING_DONE = 'The database cannot be reached at the moment; nothing was done.'
const OUTCOME_UNKNOWN =
  'The database was lost before it confirmed this request, so it may have been done. Send it again with the same Idempotency-Key or payment, or look first.'

function toProblem(error: FastifyErrorLike, method: string): Problem {
  if (error.validation)
    return invalid(validationMessage(error.validation, error.validationContext), validationDetails(error.validation))
  if (error.code === 'FST_ERR_CTP_BODY_TOO_LARGE')
    return new Problem('error', `The body is larger than ${BODY_LIMIT / 1024} KiB.`, { status: 413, code: 'too_large' })
  if (error.code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE')
    return new Problem('error', 'Send the body as application/json.', { status: 415, code: 'unsupported_media_type' })
  if (isUnavailable(error))
    return new Problem('error', isOutcomeUnknown(error) && method !== 'GET' ? OUTCOME_UNKNOWN : NOTHING_DONE, {
      status: 503,
      code: 'unavailable',
      retryable: true,
      retryAfterSeconds: 2,
      cause: error,
    })
  if (error.statusCode && error.statusCode < 500)
    return new Problem('invalid_request', error.message, { status: error.statusCode === 404 ? 404 : 400 })
  return new Problem('error', 'An internal error occurred; quote the request id when you report it.', {
    status: 500,
    code: 'internal',
    cause: error,
  })
}
