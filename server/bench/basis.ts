/**
 * A cached basis quote against a bare Fastify route that answers the same bytes: `node launch.mjs server/bench/basis.ts`.
 * The load runs in a thread of its own over keep-alive connections; the routes are measured in turn, for half a second
 * each, many times. Compared is the processor time that the serving thread spends on an answer, within a round, since a
 * machine is faster at one moment than at another; the throughput seen is printed beside it.
 */
import { connect } from 'node:net'
import { isMainThread, parentPort, Worker } from 'node:worker_threads'
import fastify from 'fastify'
import type { AttestationSigners } from '../src/modules/basis/attestation.ts'
import { basisRoutes } from '../src/modules/basis/basis.routes.ts'
import { createBasis } from '../src/modules/basis/basis.ts'
import { loadCoverage } from '../src/modules/basis/coverage.ts'
import { systemClock } from '../src/platform/clock.ts'
import { openDatabase } from '../src/platform/db.ts'
import { createHttp } from '../src/platform/http.ts'
import { createIds } from '../src/platform/ids.ts'
import { createLog } from '../src/platform/log.ts'
import { createMetrics } from '../src/platform/metrics.ts'
import { createRateLimiter } from '../src/platform/rate-limit.ts'

const SECONDS = Number(process.env.BENCH_SECONDS ?? 0.5)
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 21)
const CONNECTIONS = 64

type Load = { port: number; path: string; seconds: number }

const loader = isMainThread ? new Worker(new URL(import.meta.url)) : undefined!
if (isMainThread) await main()
else parentPort!.on('message', async (what: Load) => parentPort!.postMessage(await load(what)))

async function main() {
  const log = createLog('silent')
  const metrics = createMetrics()
  const authenticate = { key: async () => undefined, admin: () => false }
  const nobody: AttestationSigners['live'] = {
    evmAddress: async () => '0x0000000000000000000000000000000000000000',
    sign: () => {
      throw new Error('Nothing is signed here.')
    },
    signTypedData: async () => {
      throw new Error('Nothing is signed here.')
    },
  }
  // A pool connects when it is first asked, and quotes ask nothing of it.
  const database = openDatabase('postgres://nobody@127.0.0.1:1/none', { max: 1, log })
  const basis = createBasis({
    db: database.db,
    clock: systemClock,
    notifications: { listen() {} },
    coverage: loadCoverage(),
    sources: [],
    fetch: async () => {
      throw new Error('Nothing is fetched here.')
    },
    signers: { live: nobody, preview: nobody },
    holder: 'bench',
    emit: async () => {},
  })
  const app = await createHttp({
    log,
    clock: systemClock,
    ids: createIds(systemClock),
    metrics,
    authenticate,
    limiter: createRateLimiter(systemClock),
    limits: { anonymousPerMinute: 0, keyPerMinute: 0 },
    publicUrl: () => 'http://localhost',
  })
  const text = basis.getQuoteJson('TSLAx')
  app.get('/bare', { config: { unmetered: true } }, (_request, reply) => {
    reply.header('content-type', 'application/json; charset=utf-8').send(text)
  })
  basisRoutes(app, { basis, authenticate, metered: false, limits: { anonymousPerMinute: 0, keyPerMinute: 0 } })
  const bare = fastify()
  bare.get('/quote/:symbol', (_request, reply) => {
    reply.header('content-type', 'application/json; charset=utf-8').send(text)
  })
  const port = async (server: { listen(options: { host: string; port: number }): Promise<string> }) =>
    Number(new URL(await server.listen({ host: '127.0.0.1', port: 0 })).port)
  const [bareAt, appAt] = [await port(bare), await port(app)]

  const routes = {
    'bare Fastify route': { port: bareAt, path: '/quote/TSLAx' },
    'bare route in this service': { port: appAt, path: '/bare' },
    'cached basis quote': { port: appAt, path: '/api/basis/v1/quote/TSLAx' },
  }
  const measured: Record<string, { perSecond: number; micros: number }[]> = Object.fromEntries(
    Object.keys(routes).map((name) => [name, []]),
  )
  for (let round = 0; round <= ROUNDS; round += 1)
    for (const [name, route] of Object.entries(routes)) {
      const before = process.threadCpuUsage()
      const perSecond = await run({ ...route, seconds: SECONDS })
      const spent = process.threadCpuUsage(before)
      const micros = (spent.user + spent.system) / (perSecond * SECONDS)
      // The first round only warms up.
      if (round > 0) measured[name]!.push({ perSecond, micros })
    }
  const median = (values: number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!
  for (const [name, rounds] of Object.entries(measured)) {
    const [micros, perSecond] = [rounds.map((one) => one.micros), rounds.map((one) => one.perSecond)]
    console.log(`${name}: ${median(micros).toFixed(1)} µs a request, ${Math.round(median(perSecond))} requests/s seen`)
  }
  const ratio = (one: string, other: string) =>
    median(measured[one]!.map(({ micros }, round) => measured[other]![round]!.micros / micros)).toFixed(2)
  console.log(`cached quote : bare Fastify route = ${ratio('cached basis quote', 'bare Fastify route')}`)
  console.log(
    `cached quote : bare route in this service = ${ratio('cached basis quote', 'bare route in this service')}`,
  )
  await loader.terminate()
  await Promise.all([bare.close(), app.close(), database.close()])
}

function run(what: Load): Promise<number> {
  return new Promise((done) => {
    loader.once('message', done)
    loader.postMessage(what)
  })
}

/** Counts answers by their first line; each connection asks again when it has its answer, as real clients do. */
async function load({ port, path, seconds }: Load): Promise<number> {
  const question = `GET ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n`
  const until = performance.now() + seconds * 1000
  let answers = 0
  const worker = () =>
    new Promise<void>((done, failed) => {
      const socket = connect(port, '127.0.0.1', () => socket.write(question))
      let tail = ''
      socket.on('data', (chunk) => {
        const text = tail + chunk.toString('latin1')
        const found = text.split('HTTP/1.1 200').length - 1
        tail = text.slice(-11).startsWith('HTTP/1.1 200') ? '' : text.slice(-11)
        answers += found
        if (performance.now() > until) socket.destroy()
        else if (found > 0) socket.write(question.repeat(found))
      })
      socket.on('close', () => done())
      socket.on('error', failed)
    })
  const from = performance.now()
  await Promise.all(Array.from({ length: CONNECTIONS }, worker))
  return answers / ((performance.now() - from) / 1000)
}
