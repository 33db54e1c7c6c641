import { AsyncLocalStorage } from 'node:async_hooks'
import {
  type Attributes,
  type Context,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api'
import type { App } from './http-app.ts'
import { Problem } from './problem.ts'

/** What a span says of a call beside its duration. */
export type SpanDescription<Args extends unknown[], Result> = {
  name(...args: Args): string
  /** Whether the call goes to another service. */
  isClient?: boolean
  attributes?(...args: Args): Attributes
  /** What the result adds; `error` names the failure of a call that returns it instead of throwing. */
  outcome?(result: Result): { attributes?: Attributes; error?: string }
}

/**
 * Spans for a request and its steps. A span records its name, duration, whether it failed and what its description names;
 * arguments, results and messages are left out, so that no body and no key can get into a trace.
 */
export type Tracing = {
  /** Returns the function with a span around every call. */
  withSpan<Args extends unknown[], Result>(
    span: string | SpanDescription<Args, Result>,
    work: (...args: Args) => Promise<Result>,
  ): (...args: Args) => Promise<Result>
  /** Adds a span around every request, as a child of the caller's `traceparent` if there is one. */
  traceRequests(app: App): void
  close(): Promise<void>
}

export const noTracing: Tracing = { withSpan: (_span, work) => work, traceRequests() {}, close: async () => {} }

declare module 'fastify' {
  interface FastifyRequest {
    span: Span | null
  }
}

export function createTracing(tracer: Tracer, close: () => Promise<void>): Tracing {
  // Not the API's global context manager: two services in one process must not share it.
  const activeContext = new AsyncLocalStorage<Context>()

  return {
    withSpan:
      (description, work) =>
      async (...args) => {
        const { name, isClient, attributes, outcome } =
          typeof description === 'string' ? { name: () => description } : description
        const parent = activeContext.getStore() ?? ROOT_CONTEXT
        const kind = isClient ? SpanKind.CLIENT : SpanKind.INTERNAL
        const span = tracer.startSpan(name(...args), { kind, attributes: attributes?.(...args) }, parent)
        try {
          const result = await activeContext.run(trace.setSpan(parent, span), () => work(...args))
          const { attributes: resultAttributes, error } = outcome?.(result) ?? {}
          if (resultAttributes) span.setAttributes(resultAttributes)
          if (error) span.setAttribute('error.type', error).setStatus({ code: SpanStatusCode.ERROR, message: error })
          return result
        } catch (error) {
          span.setStatus({ code: SpanStatusCode.ERROR, message: describeError(error) })
          throw error
        } finally {
          span.end()
        }
      },

    traceRequests(app) {
      app.decorateRequest('span', null)
      app.addHook('onRequest', (request, _reply, done) => {
        const parent = readTraceparent(request.headers.traceparent)
        const route = request.routeOptions.url ?? 'unknown'
        const span = tracer.startSpan(
          `${request.method} ${route}`,
          {
            kind: SpanKind.SERVER,
            attributes: {
              'http.request.method': request.method,
              'http.route': route,
              'countersign.request_id': request.id,
            },
          },
          parent,
        )
        request.span = span
        activeContext.run(trace.setSpan(parent, span), done)
      })
      app.addHook('onResponse', (request, reply, done) => {
        request.span?.setAttribute('http.response.status_code', reply.statusCode)
        if (reply.statusCode >= 500) request.span?.setStatus({ code: SpanStatusCode.ERROR })
        request.span?.end()
        done()
      })
    },

    close,
  }
}

/** The error's name, never its message: messages may quote the request. */
const describeError = (error: unknown): string =>
  error instanceof Problem ? `${error.error} ${error.options.status}` : error instanceof Error ? error.name : 'unknown'

/** W3C Trace Context; an invalid header is ignored. */
function readTraceparent(header: string | string[] | undefined): Context {
  const [, traceId, spanId, flags] = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/.exec(String(header ?? '')) ?? []
  if (!traceId || !spanId || /^0+$/.test(traceId) || /^0+$/.test(spanId)) return ROOT_CONTEXT
  return trace.setSpanContext(ROOT_CONTEXT, {
    traceId,
    spanId,
    traceFlags: Number.parseInt(flags!, 16),
    isRemote: true,
  })
}
