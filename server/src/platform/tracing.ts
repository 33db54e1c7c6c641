import { AsyncLocalStorage } from 'node:async_hooks'
import { type Context, ROOT_CONTEXT, type Span, SpanKind, SpanStatusCode, type Tracer, trace } from '@opentelemetry/api'
import type { App } from './http.ts'
import { Problem } from './problem.ts'

/**
 * Spans over a request and its steps. A span knows its name, how long it took and whether it failed; arguments, results and
 * messages are not looked at, so that no body and no key can get into a trace.
 */
export type Tracing = {
  /** The same function with a span around every call. */
  traced<A extends unknown[], R>(name: string, work: (...args: A) => Promise<R>): (...args: A) => Promise<R>
  /** A span around every request, under the caller's own trace when it brought one. */
  requests(app: App): void
  close(): Promise<void>
}

export const noTracing: Tracing = { traced: (_name, work) => work, requests() {}, close: async () => {} }

declare module 'fastify' {
  interface FastifyRequest {
    span: Span | null
  }
}

export function createTracing(tracer: Tracer, close: () => Promise<void>): Tracing {
  // Our own, not the global one of the API: two services in one process must not share it.
  const here = new AsyncLocalStorage<Context>()

  return {
    traced:
      (name, work) =>
      async (...args) => {
        const parent = here.getStore() ?? ROOT_CONTEXT
        const span = tracer.startSpan(name, {}, parent)
        try {
          return await here.run(trace.setSpan(parent, span), () => work(...args))
        } catch (error) {
          span.setStatus({ code: SpanStatusCode.ERROR, message: kindOf(error) })
          throw error
        } finally {
          span.end()
        }
      },

    requests(app) {
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
        here.run(trace.setSpan(parent, span), done)
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

/** A name, never a message: messages quote what they are about. */
const kindOf = (error: unknown): string =>
  error instanceof Problem ? `${error.error} ${error.options.status}` : error instanceof Error ? error.name : 'unknown'

/** W3C Trace Context; anything else is as if it were not there. */
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
