import swagger from '@fastify/swagger'
import { Ajv } from 'ajv'
import formats from 'ajv-formats'
import fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  type FastifyTypeProvider,
  type preValidationHookHandler,
  type RawReplyDefaultExpression,
  type RawRequestDefaultExpression,
  type RawServerDefault,
} from 'fastify'
import type { Static, TSchema } from 'typebox'
import { type Authenticate, type Caller, guest, type KeyScope, needScope, tenantOf } from './auth-context.ts'
import type { Clock } from './clock.ts'
import { isUnavailable } from './db.ts'
import { createMethodGuard } from './http-methods.ts'
import { describeErrors, openapiInfo } from './http-openapi.ts'
import { answerUnreadable, HEADER_LIMIT } from './http-unreadable.ts'
import type { Ids } from './ids.ts'
import type { Log } from './log.ts'
import type { Metrics } from './metrics.ts'
import { invalid, Problem, unauthorized } from './problem.ts'
import type { Allowance, RateLimiter } from './rate-limit.ts'
import { JsonRefused, parseStrictJson } from './strict-json.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** `none` reads no credential; `optional` takes a key when there is one; `tenant` and `admin` demand theirs. */
    auth?: 'none' | 'optional' | 'tenant' | 'admin'
    scope?: KeyScope | readonly KeyScope[]
    /** A paid route limits by payer once the payment's signature has been checked, so the address is not counted first. */
    paid?: boolean
    unmetered?: boolean
    /** Evidence that a page of any origin may fetch and check by itself; it never depends on a credential. */
    evidence?: boolean
  }
  interface FastifyRequest {
    caller: Caller
    /** The answer to this request, for what has to add a header from elsewhere. */
    reply: FastifyReply
    /** On the clock of `performance.now()`. */
    startedAt: number
    /** Counts this request against a subject (a key, a payer, an address); throws the 429. */
    limitAs(subject: string, perMinute: number): Promise<void>
  }
}

interface TypeBoxProvider extends FastifyTypeProvider {
  validator: this['schema'] extends TSchema ? Static<this['schema']> : unknown
  serializer: unknown
}

export type App = FastifyInstance<
  RawServerDefault,
  RawRequestDefaultExpression<RawServerDefault>,
  RawReplyDefaultExpression<RawServerDefault>,
  FastifyBaseLogger,
  TypeBoxProvider
>

export type HttpDeps = {
  log: Log
  clock: Clock
  ids: Ids
  metrics: Metrics
  authenticate: Authenticate
  limiter: RateLimiter
  limits: { anonymousPerMinute: number; keyPerMinute: number }
  publicUrl: () => string
  /** Whose word on the caller's address is taken: nobody's unless the operator says so. */
  trustProxy?: string[]
}

const BODY_LIMIT = 256 * 1024
const ARRIVAL_MS = 60_000
// Sent twice, any of these could be read one way by us and another way by a proxy.
const singleHeaders = new Set([
  'x-api-key',
  'x-admin-key',
  'authorization',
  'idempotency-key',
  'payment-signature',
  'x-payment',
  'x-tenant-id',
])
const credentialHeaders = ['x-api-key', 'x-admin-key', 'authorization', 'cookie']
const paymentHeaders = ['payment-signature', 'x-payment']

export async function createHttp(deps: HttpDeps): Promise<App> {
  const app: App = fastify({
    // Fastify has no logger: with one it listens for the end of every response, which costs a tenth of a cached answer.
    bodyLimit: BODY_LIMIT,
    http: { maxHeaderSize: HEADER_LIMIT },
    requestTimeout: ARRIVAL_MS,
    clientErrorHandler: (error, socket) => answerUnreadable(error, socket, deps.ids.next('req')),
    genReqId: (request) => {
      const given = request.headers['x-request-id']
      return typeof given === 'string' && /^[\w-]{1,64}$/.test(given) ? given : deps.ids.next('req')
    },
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: 256 },
    trustProxy: deps.trustProxy,
    return503OnClosing: true,
    forceCloseConnections: 'idle',
    frameworkErrors: (error, request, reply) => answerError(deps.log, error, request, reply),
  })

  useStrictBodies(app)
  useValidators(app)
  const methods = createMethodGuard(app)
  app.decorateRequest<Caller | null>('caller', null)
  app.decorateRequest<FastifyReply | null>('reply', null)
  app.decorateRequest('startedAt', 0)
  app.decorateRequest('limitAs', async function (this: FastifyRequest, subject: string, perMinute: number) {
    if (perMinute > 0) sayAllowance(this.reply, await deps.limiter.take(subject, perMinute))
  })

  // Callbacks instead of promises: a route that needs neither credential nor counting pays for neither.
  app.addHook('onRequest', (request, reply, done) => {
    reply.header('x-request-id', request.id).header('x-content-type-options', 'nosniff')
    request.startedAt = performance.now()
    request.caller = guest
    request.reply = reply
    try {
      refuseNul(request)
      refuseDoubledHeaders(request)
    } catch (error) {
      return done(error as Error)
    }
    const { auth = 'none', unmetered, evidence } = request.routeOptions.config
    if (evidence) reply.header('access-control-allow-origin', '*')
    if (auth === 'none' && unmetered) return done()
    identify(deps, request)
      .catch((error) => countFailedCredential(deps, request, error))
      .then(() => meter(deps, request))
      .then(() => done(), done)
  })
  app.addHook('onSend', (request, reply, payload, done) => {
    const route = request.routeOptions.url ?? 'unknown'
    // What is no request of any route never began.
    const ms = request.startedAt === 0 ? 0 : performance.now() - request.startedAt
    deps.metrics.httpSeconds.observe({ method: request.method, route, status: reply.statusCode }, ms / 1000)
    const line = { request_id: request.id, method: request.method, route, status: reply.statusCode, ms: Math.round(ms) }
    deps.log.info(line, 'answered')
    done(null, payload)
  })

  app.setErrorHandler((error, request, reply) => answerError(deps.log, error, request, reply))
  app.setNotFoundHandler((request, reply) => {
    const allowed = methods.allowed(request.url.split('?')[0]!)
    if (allowed.length === 0 || allowed.includes(request.method))
      throw new Problem('error', 'There is nothing at this address.', { status: 404, code: 'not_found' })
    reply.header('allow', allowed.join(', '))
    throw new Problem('error', `${request.method} is not offered here; ${allowed.join(', ')} is.`, {
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

/** JSON only, read by our own strict parser; an empty body is no body, so that an optional one may be left out. */
function useStrictBodies(app: App) {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, body, done) => {
    try {
      done(null, body.length === 0 ? undefined : parseStrictJson(readUtf8(body as Buffer)))
    } catch (error) {
      done(error instanceof JsonRefused ? invalid(error.message) : (error as Error))
    }
  })
  // Only where a body is described: the other routes are spared the hook.
  app.addHook('onRoute', (route) => {
    if (!route.schema?.body) return
    const missing: preValidationHookHandler = (request, _reply, done) => {
      if (request.body === undefined) request.body = {}
      done()
    }
    route.preValidation = [missing, ...[route.preValidation ?? []].flat()]
  })
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** What is hashed, signed and paid for must be what was sent: bytes that are no text are refused, not replaced. */
function readUtf8(body: Buffer): string {
  try {
    return utf8.decode(body)
  } catch {
    throw new JsonRefused('The body is not valid UTF-8.')
  }
}

/** Bodies are taken at their word: `1` is not `"1"`. Query strings and paths are text and have to be read as numbers. */
function useValidators(app: App) {
  const options = {
    removeAdditional: false,
    useDefaults: true,
    allErrors: false,
    strict: false,
    discriminator: true,
  } as const
  const strict = new Ajv({ ...options, coerceTypes: false })
  const coercing = new Ajv({ ...options, coerceTypes: true })
  for (const ajv of [strict, coercing]) {
    formats.default(ajv, ['uuid', 'uri', 'email'])
    ajv.addFormat('date-time', isMoment)
  }
  app.setValidatorCompiler(({ schema, httpPart }) =>
    (httpPart === 'body' ? strict : coercing).compile(schema as object),
  )
}

const dateTime = formats.default.get('date-time') as { validate(text: string): boolean }

/** RFC 3339 also knows leap seconds and offsets without minutes, which no clock here can tell. */
const isMoment = (text: string): boolean => dateTime.validate(text) && !Number.isNaN(Date.parse(text))

/** PostgreSQL keeps no NUL. In a body the parser refuses it; in an address it can only come like this. */
function refuseNul(request: FastifyRequest) {
  if (request.raw.url!.includes('%00')) throw invalid('The address has a NUL character.')
}

function refuseDoubledHeaders(request: FastifyRequest) {
  const raw = request.raw.rawHeaders
  let seen: string[] | undefined
  for (let index = 0; index < raw.length; index += 2) {
    const name = raw[index]!.toLowerCase()
    if (!singleHeaders.has(name)) continue
    if (seen?.includes(name)) throw invalid(`The header ${name} was sent more than once.`)
    seen = seen ? [...seen, name] : [name]
  }
}

async function identify(deps: HttpDeps, request: FastifyRequest) {
  const { auth = 'none', scope } = request.routeOptions.config
  if (auth === 'none') return
  if (auth === 'admin') {
    const adminKey = request.headers['x-admin-key']
    if (typeof adminKey !== 'string' || !deps.authenticate.admin(adminKey))
      throw unauthorized('A valid X-Admin-Key is required.')
    return
  }
  request.caller = await readCaller(deps, request)
  if (auth === 'optional' && request.caller.kind === 'guest') return
  if (scope) needScope(request.caller, ...([scope].flat() as KeyScope[]))
  else tenantOf(request.caller)
}

/** Guessing keys is counted against the address it comes from; past the limit the guess is not even called wrong. */
async function countFailedCredential(deps: HttpDeps, request: FastifyRequest, error: unknown): Promise<never> {
  const failed = error instanceof Problem && error.options.status === 401
  if (failed && credentialHeaders.some((name) => request.headers[name] !== undefined))
    await request.limitAs(`credential:${request.ip}`, deps.limits.anonymousPerMinute)
  throw error
}

async function readCaller(deps: HttpDeps, request: FastifyRequest): Promise<Caller> {
  const apiKey = request.headers['x-api-key']
  if (typeof apiKey === 'string') {
    const caller = await deps.authenticate.key(apiKey)
    if (!caller) throw unauthorized('This API key is not valid.')
    return caller
  }
  return (await deps.authenticate.session?.(request)) ?? guest
}

async function meter(deps: HttpDeps, request: FastifyRequest) {
  const { unmetered, paid } = request.routeOptions.config
  if (unmetered) return
  if (request.caller.kind === 'tenant') return request.limitAs(`key:${request.caller.keyId}`, deps.limits.keyPerMinute)
  if (paid && paymentHeaders.some((name) => request.headers[name] !== undefined)) return
  return request.limitAs(`address:${request.ip}`, deps.limits.anonymousPerMinute)
}

function sayAllowance(reply: FastifyReply, allowance: Allowance) {
  reply.header('ratelimit-policy', `"minute";q=${allowance.limit};w=60`)
  reply.header('ratelimit', `"minute";r=${allowance.remaining};t=${allowance.resetSeconds}`)
  if (allowance.allowed) return
  throw new Problem('error', `Too many requests: ${allowance.limit} a minute are allowed.`, {
    status: 429,
    code: 'rate_limited',
    retryable: true,
    retryAfterSeconds: allowance.resetSeconds,
  })
}

type FastifyFault = {
  statusCode?: number
  code?: string
  validation?: { instancePath: string; message?: string; params?: unknown }[]
  validationContext?: string
  message: string
}

function answerError(log: Log, error: unknown, request: FastifyRequest, reply: FastifyReply) {
  const problem = error instanceof Problem ? error : translate(error as FastifyFault)
  const { status, code, retryable, retryAfterSeconds, details, nextAction, extra } = problem.options
  // What is planned or not configured is an answer, not a fault.
  if (status >= 500 && code !== 'planned' && code !== 'not_configured')
    log.error({ request_id: request.id, err: problem.options.cause ?? error }, problem.message)
  if (retryAfterSeconds !== undefined) reply.header('retry-after', retryAfterSeconds)
  reply
    .code(status)
    .header('x-request-id', request.id)
    .header('content-type', 'application/json; charset=utf-8')
    .send(
      JSON.stringify({
        error: problem.error,
        message: problem.message,
        ...(code && { code }),
        ...(retryable !== undefined && { retryable }),
        ...(details !== undefined && { details }),
        ...(nextAction && { next_action: nextAction }),
        ...extra,
        request_id: request.id,
      }),
    )
}

function translate(error: FastifyFault): Problem {
  if (error.validation)
    return invalid(
      validationMessage(error),
      error.validation.map(({ instancePath, message }) => ({ path: instancePath, message })),
    )
  if (error.code === 'FST_ERR_CTP_BODY_TOO_LARGE')
    return new Problem('error', `The body is larger than ${BODY_LIMIT / 1024} KiB.`, { status: 413, code: 'too_large' })
  if (error.code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE')
    return new Problem('error', 'Send the body as application/json.', { status: 415, code: 'unsupported_media_type' })
  if (isUnavailable(error))
    return new Problem('error', 'The database cannot be reached at the moment; nothing was done.', {
      status: 503,
      code: 'unavailable',
      retryable: true,
      retryAfterSeconds: 2,
      cause: error,
    })
  if (error.statusCode && error.statusCode < 500)
    return new Problem('invalid_request', error.message, { status: error.statusCode === 404 ? 404 : 400 })
  return new Problem('error', 'Something went wrong on our side; the request id says where to look.', {
    status: 500,
    code: 'internal',
    cause: error,
  })
}

function validationMessage(error: FastifyFault): string {
  const first = error.validation![0]!
  const where = `${error.validationContext ?? 'request'}${first.instancePath}`
  const params = first.params as
    | { additionalProperty?: string; allowedValues?: unknown[]; tag?: string; tagValue?: unknown }
    | undefined
  if (params?.tag !== undefined) return `${where}/${params.tag} '${params.tagValue}' is unknown.`
  if (params?.additionalProperty !== undefined)
    return `${where} has the unknown property '${params.additionalProperty}'.`
  if (params?.allowedValues) return `${where} must be one of ${params.allowedValues.join(', ')}.`
  const constants = constantsAt(error, first.instancePath)
  if (constants.length > 0) return `${where} must be one of ${constants.join(', ')}.`
  return `${where} ${first.message ?? 'is not valid'}.`
}

/** A choice of constants is refused once for each of them; together they are what would have been right. */
const constantsAt = (error: FastifyFault, path: string): unknown[] =>
  error.validation!.flatMap(({ instancePath, params }) =>
    instancePath === path && params && 'allowedValue' in (params as object)
      ? [(params as { allowedValue: unknown }).allowedValue]
      : [],
  )
