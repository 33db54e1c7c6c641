/**
 * Compares a cached basis quote with a bare Fastify route that sends the same bytes.
 * Run: node launch.mjs server/bench/basis.ts
 *
 * A worker thread generates the load over keep-alive connections; the routes are measured in turn, for half a second
 * each, many times. The ratio compares the CPU time of the serving thread per response within a round, because the
 * speed of a machine varies over time; the measured throughput is printed beside it.
 */
import { connect } from 'node:net'
import { isMainThread, parentPort, Worker } from 'node:worker_threads'
import fastify from 'fastify'
import type { AttestationSigners } from '../src/modules/basis/attestation.ts'
import { basisRoutes } from '../src/modules/basis/basis.routes.ts'
import { createBasis } from '../src/modules/basis/basis.ts'
import { loadCoverage } from '../src/modules/basis/coverage.ts'
import { createReceipts } from '../src/modules/receipts/receipts.ts'
import { systemClock } from '../src/platform/clock.ts'
import { openDatabase } from '../src/platform/db.ts'
import { createHttp } from '../src/platform/http.ts'
import { createIds } from '../src/platform/ids.ts'
import { createKeys } from '../src/platform/keys.ts'
import { createLog } from '../src/platform/log.ts'
import { createMetrics } from '../src/platform/metrics.ts'
import { createRateLimiter } from '../src/platform/rate-limit.ts'

const SECONDS = Number(process.env.BENCH_SECONDS ?? 0.5)
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 21)
const CONNECTIONS = 64

type Load = { port: number; path: string; seconds: number }

const loader = isMainThread ? new Worker(new URL(import.meta.url)) : undefined!
if (isMainThread) await main()
else parentPort!.on('message', async (load: Load) => parentPort!.postMessage(await generateLoad(load)))

async function main() {
  const log = createLog('silent')
  const metrics = createMetrics()
  const authenticate = { key: async () => undefined, admin: () => false }
  const unusedSigner: AttestationSigners['live'] = {
    evmAddress: async () => '0x0000000000000000000000000000000000000000',
    sign: () => {
      throw new Error('The benchmark does not sign.')
    },
    signTypedData: async () => {
      throw new Error('The benchmark does not sign.')
    },
  }
  // The pool connects on first use, and cached quotes do not use it.
  const database = openDatabase('postgres://nobody@127.0.0.1:1/none', { max: 1, log })
  const basis = createBasis({
    db: database.db,
    clock: systemClock,
    notifications: { listen() {} },
    coverage: loadCoverage(),
    sources: [],
    fetch: async () => {
      throw new Error('The benchmark does not fetch.')
    },
    signers: { live: unusedSigner, preview: unusedSigner },
    entries: createReceipts({
      db: database.db,
      clock: systemClock,
      keys: createKeys({ signing: 's'.repeat(32), encryption: 'e'.repeat(32) }),
      publicUrl: () => 'http://localhost',
    }),
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
  const text = basis.prepareQuote('TSLAx').body.toString()
  app.get('/bare', { config: { unmetered: true } }, (_request, reply) => {
    reply.header('content-type', 'application/json; charset=utf-8').send(text)
  })
  basisRoutes(app, { basis, authenticate, metered: false, limits: { anonymousPerMinute: 0, keyPerMinute: 0 } })
  const bare = fastify()
  bare.get('/quote/:symbol', (_request, reply) => {
    reply.header('content-type', 'application/json; charset=utf-8').send(text)
  })
  const listen = async (server: { listen(options: { host: string; port: number }): Promise<string> }) =>
    Number(new URL(await server.listen({ host: '127.0.0.1', port: 0 })).port)
  const [barePort, appPort] = [await listen(bare), await listen(app)]

  const routes = {
    'bare Fastify route': { port: barePort, path: '/quote/TSLAx' },
    'bare route in this service': { port: appPort, path: '/bare' },
    'cached basis quote': { port: appPort, path: '/api/basis/v1/quote/TSLAx' },
  }
  const measurements: Record<string, { perSecond: number; micros: number }[]> = Object.fromEntries(
    Object.keys(routes).map((name) => [name, []]),
  )
  for (let round = 0; round <= ROUNDS; round += 1)
    for (const [name, route] of Object.entries(routes)) {
      const usageBefore = process.threadCpuUsage()
      const perSecond = await run({ ...route, seconds: SECONDS })
      const cpuUsage = process.threadCpuUsage(usageBefore)
      const micros = (cpuUsage.user + cpuUsage.system) / (perSecond * SECONDS)
      // The first round is a warm-up.
      if (round > 0) measurements[name]!.push({ perSecond, micros })
    }
  const median = (values: number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!
  for (const [name, rounds] of Object.entries(measurements)) {
    const [micros, perSecond] = [rounds.map(({ micros }) => micros), rounds.map(({ perSecond }) => perSecond)]
    console.log(
      `${name}: ${median(micros).toFixed(1)} µs per request, ${Math.round(median(perSecond))} requests/s measured`,
    )
  }
  const ratio = (numerator: string, denominator: string) =>
    median(
      measurements[numerator]!.map(({ micros }, round) => measurements[denominator]![round]!.micros / micros),
    ).toFixed(2)
  console.log(`cached quote : bare Fastify route = ${ratio('cached basis quote', 'bare Fastify route')}`)
  console.log(
    `cached quote : bare route in this service = ${ratio('cached basis quote', 'bare route in this service')}`,
  )
  await loader.terminate()
  await Promise.all([bare.close(), app.close(), database.close()])
}

function run(load: Load): Promise<number> {
  return new Promise((resolve) => {
    loader.once('message', resolve)
    loader.postMessage(load)
  })
}

/** Counts responses by their status line; each connection sends its next request after a response, as real clients do. */
async function generateLoad({ port, path, seconds }: Load): Promise<number> {
  const httpRequest = `GET ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n`
  const deadline = performance.now() + seconds * 1000
  let responseCount = 0
  const worker = () =>
    new Promise<void>((resolve, reject) => {
      const socket = connect(port, '127.0.0.1', () => socket.write(httpRequest))
      let tail = ''
      socket.on('data', (chunk) => {
        const text = tail + chunk.toString('latin1')
        const received = text.split('HTTP/1.1 200').length - 1
        tail = text.slice(-11).startsWith('HTTP/1.1 200') ? '' : text.slice(-11)
        responseCount += received
        if (performance.now() > deadline) socket.destroy()
        else if (received > 0) socket.write(httpRequest.repeat(received))
      })
      socket.on('close', () => resolve())
      socket.on('error', reject)
    })
  const startedAt = performance.now()
  await Promise.all(Array.from({ length: CONNECTIONS }, worker))
  return responseCount / ((performance.now() - startedAt) / 1000)
}
