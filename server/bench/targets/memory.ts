/** Memory of the service under a mixed load, against its memory after the warm-up. */
import { startBenchService } from '../support/bench-service.ts'
import { listResidentBytes } from '../support/cpu.ts'
import { type LoadRequest, runLoad, startLoadGenerator } from '../support/load.ts'
import { formatFigure, median } from '../support/report.ts'
import { prepareTenants } from '../support/wallet-load.ts'
import type { Measurement } from './figure.ts'

const TENANTS = 50
const IN_FLIGHT = 16
/** One slice of load between two readings. */
const SLICE_SECONDS = 5
const WARM_UP_MINUTES = 1
const MEGABYTE = 2 ** 20

export async function measureMemory({ minutes }: { minutes: number }): Promise<Measurement> {
  const service = await startBenchService()
  const generator = await startLoadGenerator()
  try {
    const runs = await prepareTenants(service, TENANTS)
    const requests = runs.flatMap((run) => mixRequests(run))
    const startedAt = performance.now()
    const warmUpEnd = startedAt + WARM_UP_MINUTES * 60_000
    const end = warmUpEnd + minutes * 60_000
    const resident: [number, number][] = []
    const heap: [number, number][] = []
    let responses = 0
    while (performance.now() < end) {
      const result = await runLoad(generator, {
        port: service.port,
        inFlight: IN_FLIGHT,
        requests,
        seconds: SLICE_SECONDS,
        firstNumber: responses,
      })
      responses += result.responses
      const minute = (performance.now() - startedAt) / 60_000
      resident.push([
        minute,
        listResidentBytes(service.pid, service.postmasterPid).reduce((sum, bytes) => sum + bytes, 0) / MEGABYTE,
      ])
      heap.push([minute, (await readHeapBytes(service.get)) / MEGABYTE])
    }
    const window = (points: [number, number][], from: number, to: number) =>
      median(points.filter(([minute]) => minute > from && minute <= to).map(([, value]) => value))
    const span = Math.min(1, minutes / 3)
    const first = window(resident, WARM_UP_MINUTES, WARM_UP_MINUTES + span)
    const last = window(resident, WARM_UP_MINUTES + minutes - span, Number.POSITIVE_INFINITY)
    const heapFirst = window(heap, WARM_UP_MINUTES, WARM_UP_MINUTES + span)
    const heapLast = window(heap, WARM_UP_MINUTES + minutes - span, Number.POSITIVE_INFINITY)
    return {
      figures: [
        {
          id: 'memory',
          name: `${minutes} minutes of mixed load: resident memory against after the warm-up`,
          value: last / first,
          bar: { atMost: 1.15 },
          detail: `${formatFigure(last)} against ${formatFigure(first)} MB (medians of ${formatFigure(span * 60)} s); JavaScript heap ${formatFigure(heapLast)} against ${formatFigure(heapFirst)} MB; ${formatFigure(responses)} responses of ${TENANTS} tenants, ${IN_FLIGHT} in flight`,
        },
      ],
      series: { resident, heap },
      skipped: [],
    }
  } finally {
    generator.stop()
    await service.stop()
  }
}

/** Of five requests of a tenant one is a wallet-paid run; the others are an unpaid run and lists. */
function mixRequests(run: LoadRequest): LoadRequest[] {
  const { headers } = run
  const get = (path: string): LoadRequest => ({ method: 'GET', path, headers })
  const unpaid: LoadRequest = {
    method: 'POST',
    path: '/api/run',
    headers,
    body: JSON.stringify({ task: 'Say {n}.', agent_id: 'comedian-v1' }),
    expectedStatus: 402,
  }
  return [
    ...[run, get('/api/runs?limit=20'), unpaid, get('/api/pricing'), get('/api/receipts?limit=20')],
    ...[run, get('/api/wallets'), get('/api/agents'), get('/api/basis/v1/quote/TSLAx'), get('/api/audit?limit=20')],
  ]
}

async function readHeapBytes(get: (path: string) => Promise<{ text: string }>): Promise<number> {
  const { text } = await get('/metrics')
  const values = [...text.matchAll(/^countersign_nodejs_heap_size_used_bytes\S* (\S+)$/gm)].map(([, value]) =>
    Number(value),
  )
  return values.reduce((sum, value) => sum + value, 0)
}
