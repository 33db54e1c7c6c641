import type { paths } from './generated/api.ts'

/**
 * A typed client of the Countersign API. Paths, parameters, bodies and answers come from `openapi.json`, so what does
 * not fit does not compile. It runs in a browser and in Node; paying is `pay.ts`, verifying is `@countersign/proof`.
 */
export type ClientOptions = {
  baseUrl: string
  apiKey?: string
  adminKey?: string
  /** A session's token, sent with writes; see `POST /api/session`. */
  csrfToken?: () => string | undefined
  fetch?: typeof fetch
}

type Method = 'get' | 'post' | 'patch' | 'delete'
type PathsWith<M extends Method> = {
  [P in keyof paths]: paths[P] extends Record<M, { responses: unknown }> ? P : never
}[keyof paths]
type Operation<P extends keyof paths, M extends Method> = paths[P] extends Record<M, infer O> ? O : never
type JsonOf<R> = R extends { content: { 'application/json': infer B } } ? B : undefined
type Good<R> = R extends { 200: infer A }
  ? JsonOf<A>
  : R extends { 201: infer A }
    ? JsonOf<A>
    : R extends { 202: infer A }
      ? JsonOf<A>
      : unknown
export type Answer<P extends keyof paths, M extends Method> =
  Operation<P, M> extends { responses: infer R } ? Good<R> : never

type Part<O, K extends string> = O extends { parameters: { [key in K]?: infer V } } ? V : undefined
type BodyOf<O> = O extends { requestBody?: { content: { 'application/json': infer B } } } ? B : undefined

export type Ask<P extends keyof paths, M extends Method> = {
  path?: Part<Operation<P, M>, 'path'>
  query?: Part<Operation<P, M>, 'query'>
  body?: BodyOf<Operation<P, M>>
  headers?: Record<string, string>
  signal?: AbortSignal
}

/** An answer that is no success, with the stable code, the sentence and what else the service said. */
export class CountersignError extends Error {
  readonly status: number
  readonly error: string
  readonly body: Record<string, unknown>
  constructor(status: number, body: Record<string, unknown>) {
    super(typeof body.message === 'string' ? body.message : `The service answered ${status}.`)
    this.name = 'CountersignError'
    this.status = status
    this.error = typeof body.error === 'string' ? body.error : 'error'
    this.body = body
  }
}

export type Client = ReturnType<typeof createClient>

export function createClient(options: ClientOptions) {
  const call = async (method: Method, template: string, ask: Ask<never, never> = {}) => {
    const { path, query, body, headers, signal } = ask as {
      path?: Record<string, string>
      query?: Record<string, unknown>
      body?: unknown
      headers?: Record<string, string>
      signal?: AbortSignal
    }
    const filled = template.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(path?.[name] ?? ''))
    const search = new URLSearchParams(
      Object.entries(query ?? {}).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]])),
    )
    const csrf = method === 'get' ? undefined : options.csrfToken?.()
    const response = await (options.fetch ?? fetch)(
      `${options.baseUrl}${filled}${search.size > 0 ? `?${search}` : ''}`,
      {
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
        ...(signal && { signal }),
      },
    )
    const text = await response.text()
    const answer = parse(text)
    if (!response.ok) throw new CountersignError(response.status, (answer ?? {}) as Record<string, unknown>)
    return answer
  }

  return {
    get: <P extends PathsWith<'get'>>(path: P, ask?: Ask<P, 'get'>) =>
      call('get', path, ask as unknown as Ask<never, never>) as Promise<Answer<P, 'get'>>,
    post: <P extends PathsWith<'post'>>(path: P, ask?: Ask<P, 'post'>) =>
      call('post', path, ask as unknown as Ask<never, never>) as Promise<Answer<P, 'post'>>,
    patch: <P extends PathsWith<'patch'>>(path: P, ask?: Ask<P, 'patch'>) =>
      call('patch', path, ask as unknown as Ask<never, never>) as Promise<Answer<P, 'patch'>>,
    delete: <P extends PathsWith<'delete'>>(path: P, ask?: Ask<P, 'delete'>) =>
      call('delete', path, ask as unknown as Ask<never, never>) as Promise<Answer<P, 'delete'>>,
  }
}

function parse(text: string): unknown {
  try {
    return text === '' ? undefined : JSON.parse(text)
  } catch {
    return { message: 'The service answered something that is not JSON.' }
  }
}
