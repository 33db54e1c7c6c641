import {
  BasicTracerProvider,
  BatchSpanProcessor,
  type ReadableSpan,
  type SpanExporter,
} from '@opentelemetry/sdk-trace-base'
import { request } from 'undici'
import { createTracing, type Tracing } from '../../platform/tracing.ts'

const TIMEOUT_MS = 10_000

/** Sends spans to an OpenTelemetry collector over HTTP in batches. When the collector is unreachable, only spans are lost. */
export function createOtlpTracing(options: { endpoint: string; headers?: Record<string, string> }): Tracing {
  const processor = new BatchSpanProcessor(createExporter(options), {
    maxQueueSize: 4_096,
    maxExportBatchSize: 512,
    scheduledDelayMillis: 2_000,
    exportTimeoutMillis: TIMEOUT_MS,
  })
  const provider = new BasicTracerProvider({ spanProcessors: [processor] })
  return createTracing(provider.getTracer('countersign'), () => provider.shutdown().catch(() => {}))
}

function createExporter({ endpoint, headers }: { endpoint: string; headers?: Record<string, string> }): SpanExporter {
  const inFlight = new Set<Promise<void>>()
  const post = async (spans: ReadableSpan[]) => {
    const response = await request(`${endpoint}/v1/traces`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(encodeSpans(spans)),
      headersTimeout: TIMEOUT_MS,
      bodyTimeout: TIMEOUT_MS,
    })
    await response.body.dump()
    if (response.statusCode >= 300) throw new Error(`The collector answered ${response.statusCode}.`)
  }
  return {
    export(spans, done) {
      const sending = post(spans)
        .then(
          () => done({ code: 0 }),
          (error) => done({ code: 1, error }),
        )
        .finally(() => inFlight.delete(sending))
      inFlight.add(sending)
    },
    forceFlush: async () => void (await Promise.allSettled(inFlight)),
    shutdown: async () => void (await Promise.allSettled(inFlight)),
  }
}

/** OTLP's JSON form: ids in hexadecimal, times as text of nanoseconds. */
export function encodeSpans(spans: readonly ReadableSpan[]) {
  return {
    resourceSpans: [
      {
        resource: { attributes: [attribute('service.name', 'countersign')] },
        scopeSpans: [{ scope: { name: 'countersign' }, spans: spans.map(encodeSpan) }],
      },
    ],
  }
}

const encodeSpan = (span: ReadableSpan) => ({
  traceId: span.spanContext().traceId,
  spanId: span.spanContext().spanId,
  ...(span.parentSpanContext && { parentSpanId: span.parentSpanContext.spanId }),
  name: span.name,
  // OTLP numbers span kinds from one, the API from zero.
  kind: span.kind + 1,
  startTimeUnixNano: nanoseconds(span.startTime),
  endTimeUnixNano: nanoseconds(span.endTime),
  attributes: Object.entries(span.attributes).map(([key, value]) => attribute(key, value)),
  status: span.status,
})

const nanoseconds = ([seconds, nanos]: [number, number]) =>
  (BigInt(seconds) * 1_000_000_000n + BigInt(nanos)).toString()

const attribute = (key: string, value: unknown) => ({
  key,
  value:
    typeof value === 'number' && Number.isInteger(value) ? { intValue: String(value) } : { stringValue: String(value) },
})
