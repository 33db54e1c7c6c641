/** Cached reads against node:http that sends the same bytes: CPU of the serving process, and responses a second. */
import { startBenchService } from '../support/bench-service.ts'
import { startChild } from '../support/child.ts'
import { startLoadGenerator } from '../support/load.ts'
import { formatFigure, median } from '../support/report.ts'
import { measureBareCost, type RunCost } from '../support/run-cost.ts'
import { type Measurement, medianCost, medianRatio } from './figure.ts'

const CONNECTIONS = 64
const PATHS = { pricing: '/api/pricing', agents: '/api/agents', quote: '/api/basis/v1/quote/TSLAx' }

/** Those that node:http sets itself. */
const NODE_HEADERS = ['date', 'connection', 'keep-alive', 'content-length', 'content-encoding']

const ownHeaders = (headers: Headers) =>
  Object.fromEntries([...headers].filter(([name]) => !NODE_HEADERS.includes(name)))

export async function measureReads({ rounds, seconds }: { rounds: number; seconds: number }): Promise<Measurement> {
  const service = await startBenchService()
  const generator = await startLoadGenerator()
  const names = Object.keys(PATHS) as (keyof typeof PATHS)[]
  const samples = await Promise.all(names.map((name) => service.get(PATHS[name])))
  const responses = Object.fromEntries(
    names.map((name, index) => [
      PATHS[name],
      { headers: ownHeaders(samples[index]!.headers), body: samples[index]!.text },
    ]),
  )
  const bare = await startChild<{ port: number }>('bare-http.ts', { responses })
  try {
    const servers = { service, bare: { pid: bare.pid, port: bare.ready.port } }
    const results = Object.fromEntries(names.map((name) => [name, { service: [] as RunCost[], bare: [] as RunCost[] }]))
    // The first round is a warm-up.
    for (let round = 0; round <= rounds; round++) {
      for (const name of names) {
        for (const side of ['service', 'bare'] as const) {
          const load = { requests: [{ method: 'GET', path: PATHS[name] }], inFlight: CONNECTIONS, seconds }
          const cost = await measureBareCost(servers[side], generator, load)
          if (round > 0) results[name]![side].push(cost)
        }
      }
    }
    return {
      figures: names.map((name) => {
        const { service: ours, bare: theirs } = results[name]!
        const figure = (rows: RunCost[], select: (cost: RunCost) => number) => formatFigure(median(rows.map(select)))
        return {
          id: `get-${name}`,
          name: `GET ${PATHS[name]} against bare node:http with the same bytes, a second`,
          value: medianRatio(ours, theirs, ({ perSecond }) => perSecond),
          bar: { atLeast: 0.75 },
          detail: `${figure(ours, ({ perSecond }) => perSecond)} against ${figure(theirs, ({ perSecond }) => perSecond)} responses a second of ${formatFigure(samples[names.indexOf(name)]!.text.length)} characters; ${figure(ours, (cost) => cost.nodeMs * 1000)} against ${figure(theirs, (cost) => cost.nodeMs * 1000)} µs of CPU (ratio ${formatFigure(medianRatio(theirs, ours, ({ nodeMs }) => nodeMs))})`,
        }
      }),
      costs: names.flatMap((name) => [
        medianCost(`GET ${name}`, results[name]!.service),
        medianCost(`GET ${name}, bare node:http`, results[name]!.bare),
      ]),
      skipped: [],
    }
  } finally {
    bare.stop()
    generator.stop()
    await service.stop()
  }
}
