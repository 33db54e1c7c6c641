import type { paths } from './generated/api.ts'

/** The resources, requests and responses of the API by name: `Receipt`, `Run`, `Policy`, … */
export type * from './generated/api.ts'

/**
 * A typed client of the Countersign API. Paths, parameters, bodies and responses come from `openapi.json`, so a call that
 * does not match it does not compile. Runs in a browser and in Node. For payments see `pay.ts`, for verification
 * `@countersign/proof`.
 */
export type ClientOptions = {
  /** Origin of the service; empty in a page that the service itself served. */
  baseUrl: string
  apiKey?: string
  adminKey?: string
  /** CSRF token of a session, sent with writes; see `POST /api/session`. */
  csrfToken?: () => string | undefined
  /** Timeout of a request. The default leaves room for a run that takes its whole deadline. */
  timeoutMs?: number
  fetch?: typeof fetch
}

const DEFAULT_TIMEOUT_MS = 150_000

type Method = 'get' | 'post' | 'patch' | 'delete'
type PathsWith<M extends Method> = {
  [P in keyof paths]: paths[P] extends Record<M, { responses: unknown }> ? P : never
}[keyof paths]
type Operation<P extends keyof paths, M extends Method> = paths[P] extends Record<M, infer O> ? O : never

type ResponseContent<R> = R extends { content: infer C }
  ? C extends { 'application/json': infer B }
    ? B
    : C extends { 'text/plain': infer T }
      ? T
      : C extends { 'application/octet-stream': unknown }
        ? Uint8Array
        : unknown
  : unknown
type SuccessContent<R> = R extends { 200: infer A }
  ? ResponseContent<A>
  : R extends { 201: infer A }
    ? ResponseContent<A>
    : R extends { 202: infer A }
      ? ResponseContent<A>
      : unknown
export type ApiResponse<P extends keyof paths, M extends Method> =
  Operation<P, M> extends { responses: infer R } ? SuccessContent<R> : never

// Everything openapi.json requires is required here, except query parameters, which all have defaults.
type PathOption<O> = O extends { parameters: { path: infer V } } ? { path: V } : { path?: undefined }
type QueryOption<O> = O extends { parameters: { query?: infer V } } ? { query?: Partial<V> } : { query?: undefined }
type BodyOption<O> = O extends { requestBody: { content: { 'application/json': infer B } } }
  ? { body: B }
  : O extends { requestBody?: { content: { 'application/json': infer B } } }
    ? { body?: B }
    : { body?: undefined }

export type ApiRequest<P extends keyof paths, M extends Method> = PathOption<Operation<P, M>> &
  QueryOption<Operation<P, M>> &
  BodyOption<Operation<P, M>> & { headers?: Record<string, string>; signal?: AbortSignal }

/** The second argument may be left out where nothing in it is required. */
type RequestArguments<P extends keyof paths, M extends Method> =
  // biome-ignore lint/complexity/noBannedTypes: {} is assignable exactly when nothing is required
  {} extends ApiRequest<P, M> ? [ask?: ApiRequest<P, M>] : [ask: ApiRequest<P, M>]

/**
 * An error response of the service, with its stable code, message and body. When there was no response, `status` is 0
 * and `code` is `unavailable`.
 */
export class CountersignError extends Error {
  readonly status: number
  /** One of the five stable codes. */
  readonly error: string
  /** More specific than `error`, when the service sent one. */
  readonly code: string | undefined
  readonly requestId: string | undefined
  readonly retryable: boolean
  readonly body: Record<string, unknown>
  constructor(status: number, body: Record<string, unknown>, options?: ErrorOptions) {
    super(asText(body.message) ?? `The service responded ${status}.`, options)
    this.name = 'CountersignError'
    this.status = status
    this.error = asText(body.error) ?? 'error'
    this.code = asText(body.code)
    this.requestId = asText(body.request_id)
    this.retryable = body.retryable === true
    this.body = body
  }
}

type UntypedRequest = {
  path?: Record<string, string | number>
  query?: Record<string, unknown>
  body?: unknown
  headers?: Record<string, string>
  signal?: AbortSignal
}

export type Client = ReturnType<typeof createClient>

export function createClient(options: ClientOptions) {
  const sendAndParse = async (method: Method, template: string, request: UntypedRequest = {}): Promise<unknown> => {
    const response = await send(method, template, request)
    const body = await parseResponse(response)
    if (response.ok) return body
    throw new CountersignError(response.status, isObject(body) ? body : {})
  }

  const send = async (method: Method, template: string, { path, query, body, headers, signal }: UntypedRequest) => {
    const url = `${options.baseUrl}${fillPath(template, path)}${toQueryString(query)}`
    const csrf = method === 'get' ? undefined : options.csrfToken?.()
    const timeout = AbortSignal.timeout(options.timeoutMs ?? DEFAULT_TIMEOUT_MS)
    try {
      return await (options.fetch ?? fetch)(url, {
        method: method.toUpperCase(),
        credentials: 'same-origin',
        headers: {
          ...(body !== undefined && { 'content-type': 'application/json' }),
          ...(options.apiKey && { 'x-api-key': options.apiKey }),
          ...(options.adminKey && { 'x-admin-key': options.adminKey }),
          ...(csrf && { 'x-csrf-token': csrf }),
          ...headers,
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
      })
    } catch (cause) {
      // The caller's own abort and a failed payment are not network errors of the service.
      if (signal?.aborted || !(timeout.aborted || cause instanceof TypeError)) throw cause
      const message = timeout.aborted ? 'The service did not respond in time.' : 'The service cannot be reached.'
      throw new CountersignError(0, { error: 'error', code: 'unavailable', message, retryable: true }, { cause })
    }
  }

  const createMethod =
    <M extends Method>(method: M) =>
    <P extends PathsWith<M>>(path: P, ...[request]: RequestArguments<P, M>): Promise<ApiResponse<P, M>> =>
      sendAndParse(method, path, request as UntypedRequest | undefined) as Promise<ApiResponse<P, M>>

  return {
    get: createMethod('get'),
    post: createMethod('post'),
    patch: createMethod('patch'),
    delete: createMethod('delete'),
  }
}

/** `{*}` matches the rest of the path and keeps its slashes. */
function fillPath(template: string, path: UntypedRequest['path'] = {}): string {
  return template.replace(/\{([^}]+)\}/g, (_, name: string) => {
    const value = path[name]
    if (value === undefined || value === '') throw new TypeError(`The path ${template} needs '${name}'.`)
    const parts = name === '*' ? String(value).split('/') : [String(value)]
    return parts.map(encodeURIComponent).join('/')
  })
}

function toQueryString(query: UntypedRequest['query'] = {}): string {
  const entries = Object.entries(query).filter(([, value]) => value !== undefined)
  const search = new URLSearchParams(entries.map(([name, value]): [string, string] => [name, String(value)]))
  return search.size > 0 ? `?${search}` : ''
}

async function parseResponse(response: Response): Promise<unknown> {
  const type = response.headers.get('content-type') ?? ''
  if (type.startsWith('application/octet-stream')) return new Uint8Array(await response.arrayBuffer())
  const text = await response.text()
  if (text === '') return undefined
  if (!type.includes('json')) return text
  try {
    return JSON.parse(text)
  } catch (cause) {
    const message = 'The response of the service is not valid JSON.'
    throw new CountersignError(response.status, { error: 'error', message }, { cause })
  }
}

const asText = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
