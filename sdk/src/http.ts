import type { ClientOptions } from './client-types.ts'
import { CountersignError } from './errors.ts'
import type { paths } from './generated/api.ts'

const DEFAULT_TIMEOUT_MS = 150_000

export type Method = 'get' | 'post' | 'put' | 'patch' | 'delete'
export type PathsWith<M extends Method> = {
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
export type RequestArguments<P extends keyof paths, M extends Method> =
  // biome-ignore lint/complexity/noBannedTypes: {} is assignable exactly when nothing is required
  {} extends ApiRequest<P, M> ? [request?: ApiRequest<P, M>] : [request: ApiRequest<P, M>]

export type UntypedRequest = {
  path?: Record<string, string | number>
  query?: Record<string, unknown>
  body?: unknown
  headers?: Record<string, string>
  signal?: AbortSignal
}

export type ApiResult = { status: number; headers: Headers; body: unknown }

export type Transport = ReturnType<typeof createTransport>

/** Sends one request and reads its whole response. What is no response at all is a `CountersignError` with status 0. */
export function createTransport(options: ClientOptions) {
  const baseUrl = readBaseUrl(options.baseUrl)
  const apiKey = readKey('apiKey', options.apiKey)
  const adminKey = readKey('adminKey', options.adminKey)

  const send = async (
    method: Method,
    template: string,
    { path, query, body, headers, signal }: UntypedRequest = {},
  ): Promise<ApiResult> => {
    const url = `${baseUrl}${fillPath(template, path)}${toQueryString(query)}`
    const csrf = method === 'get' ? undefined : options.csrfToken?.()
    const timeout = AbortSignal.timeout(options.timeoutMs ?? DEFAULT_TIMEOUT_MS)
    try {
      const response = await (options.fetch ?? fetch)(url, {
        method: method.toUpperCase(),
        credentials: 'same-origin',
        headers: {
          ...(body !== undefined && { 'content-type': 'application/json' }),
          ...(apiKey && { 'x-api-key': apiKey }),
          ...(adminKey && { 'x-admin-key': adminKey }),
          ...(csrf && { 'x-csrf-token': csrf }),
          ...headers,
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
      })
      return { status: response.status, headers: response.headers, body: await readBody(response) }
    } catch (cause) {
      // The caller's own abort and a failed payment are not network errors of the service.
      if (signal?.aborted || !(timeout.aborted || cause instanceof TypeError)) throw cause
      const message = timeout.aborted ? 'The service did not respond in time.' : 'The service cannot be reached.'
      throw new CountersignError(0, { error: 'error', code: 'unavailable', message, retryable: true }, { cause })
    }
  }

  /** Opens a stream: the response is returned when its headers are there. */
  const open = async (path: string, { headers, signal }: { headers: Record<string, string>; signal: AbortSignal }) => {
    const credential: Record<string, string> = apiKey === undefined ? {} : { 'x-api-key': apiKey }
    const request = { credentials: 'same-origin' as const, headers: { ...credential, ...headers }, signal }
    return (options.fetch ?? fetch)(`${baseUrl}${path}`, request)
  }

  const request = async (method: Method, template: string, request: UntypedRequest = {}): Promise<unknown> => {
    const { status, body } = await send(method, template, request)
    if (status >= 200 && status < 300) return body
    throw new CountersignError(status, isObject(body) ? body : {})
  }

  const createMethod =
    <M extends Method>(method: M) =>
    <P extends PathsWith<M>>(path: P, ...[options]: RequestArguments<P, M>): Promise<ApiResponse<P, M>> =>
      request(method, path, options as UntypedRequest | undefined) as Promise<ApiResponse<P, M>>

  return {
    baseUrl,
    apiKey,
    send,
    open,
    request,
    methods: {
      get: createMethod('get'),
      post: createMethod('post'),
      put: createMethod('put'),
      patch: createMethod('patch'),
      delete: createMethod('delete'),
    },
  }
}

/** A relative address would be read as a path of the page, and `localhost:4020` as a scheme. */
export function readBaseUrl(baseUrl: string): string {
  const text = baseUrl.trim().replace(/\/+$/, '')
  if (text === '' || /^https?:\/\/[^/]/i.test(text)) return text
  const scheme = /^[a-z][a-z0-9+.-]*:\/\//i.exec(text)?.[0]
  throw new TypeError(
    scheme
      ? `baseUrl '${baseUrl}' begins with ${scheme}; the service speaks http:// and https://.`
      : `baseUrl '${baseUrl}' has no scheme: write http://${text} or https://${text}.`,
  )
}

function readKey(name: string, key: string | undefined): string | undefined {
  const text = key?.trim()
  if (text !== undefined && !/^[\x21-\x7e]*$/.test(text))
    throw new TypeError(
      `${name} has a character that no key has; is it the whole content of a key file, and only that?`,
    )
  return text || undefined
}

/** `{tile}` is the rest of a path and keeps its slashes. */
export function fillPath(template: string, path: UntypedRequest['path'] = {}): string {
  return template.replace(/\{([^}]+)\}/g, (_, name: string) => {
    const value = path[name]
    if (value === undefined || value === '') throw new TypeError(`The path ${template} needs '${name}'.`)
    const parts = name === 'tile' ? String(value).split('/') : [String(value)]
    return parts.map(encodeURIComponent).join('/')
  })
}

function toQueryString(query: UntypedRequest['query'] = {}): string {
  const entries = Object.entries(query).filter(([, value]) => value !== undefined)
  const search = new URLSearchParams(entries.map(([name, value]): [string, string] => [name, String(value)]))
  return search.size > 0 ? `?${search}` : ''
}

async function readBody(response: Response): Promise<unknown> {
  const type = response.headers.get('content-type') ?? ''
  if (type.startsWith('application/octet-stream')) return new Uint8Array(await response.arrayBuffer())
  const text = await response.text()
  if (text === '') return undefined
  // Lines of JSON are no JSON text.
  if (!type.includes('json') || type.includes('ndjson')) return text
  try {
    return JSON.parse(text)
  } catch (cause) {
    const message = 'The response of the service is not valid JSON.'
    throw new CountersignError(response.status, { error: 'error', message }, { cause })
  }
}

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
