/** Buffers that every list and a run touch with many runs in the database, against few. The measured tenant owns them all. */
import { type BenchService, startBenchService } from '../support/bench-service.ts'
import { type LoadGenerator, type LoadRequest, runLoad, startLoadGenerator } from '../support/load.ts'
import { formatFigure, median } from '../support/report.ts'
import { MS_BETWEEN_RUNS, seedRuns } from '../support/seed-runs.ts'
import { prepareWalletRuns } from '../support/wallet-load.ts'
import { measureWrites, readBuffers, resetStatements, setStatementTracking } from '../support/writes.ts'
import { type GrowthFigures, growthOf, type Measurement } from './figure.ts'

/** Sent before the measured ones, so that plans and caches are warm. */
const WARM_UP = 6
const MEASURED = 5
const WINDOWS = 4
/** The newest rows of a table are on one page or on three, by chance; others are the newest in each pass. */
const PASSES = 3
const RECENT_RUNS = 320

export async function measureGrowth({ few, many }: { few: number; many: number }): Promise<Measurement> {
  const service = await startBenchService()
  const generator = await startLoadGenerator()
  try {
    const run = await prepareWalletRuns(service, 10_000)
    await runLoad(generator, { port: service.port, inFlight: 32, requests: [run], count: 320 })
    const { body: me } = await service.get('/api/me', run.headers)
    const tenantId = me.tenant_id ?? me.tenant.tenant_id
    await service.query(`update tenants set plan = 'enterprise' where id = $1`, [tenantId])
    const rows: Record<string, number>[] = []
    const isOneOfFew = (number: number) => number % Math.round(many / few) === 0
    for (const isFew of [true, false]) {
      const startedAt = performance.now()
      await seedRuns(service, tenantId, many, (number) => isOneOfFew(number) === isFew)
      console.log(
        `${formatFigure(isFew ? few : many)} runs after ${Math.round((performance.now() - startedAt) / 1000)} s`,
      )
      const passes: Record<string, number>[] = []
      for (let pass = 0; pass < PASSES; pass++) {
        // Their entries have snapshots of balances among them as everywhere, which those of the seed have not.
        const load = { port: service.port, inFlight: 32, requests: [run], count: RECENT_RUNS }
        await measureWrites(service.query, () => runLoad(generator, load))
        // Before its first vacuum the journal, which is almost empty, is read with other plans than later.
        await service.query('vacuum journal')
        const middle = new Date(Date.now() - (many * MS_BETWEEN_RUNS) / 2)
        passes.push(await measureBuffers(service, generator, run, middle))
      }
      const names = Object.keys(passes[0]!)
      rows.push(Object.fromEntries(names.map((name) => [name, median(passes.map((pass) => pass[name]!))])))
    }
    const growth: GrowthFigures[] = Object.keys(rows[0]!).map((name) => ({
      name,
      few: rows[0]![name]!,
      many: rows[1]![name]!,
    }))
    const worst = growth.toSorted((a, b) => growthOf(b) - growthOf(a))
    return {
      figures: [
        {
          id: 'growth',
          name: `every list and write at ${formatFigure(many)} runs against ${formatFigure(few)}: buffers touched, the worst`,
          value: growthOf(worst[0]!),
          bar: { atMost: 1.3 },
          detail: worst
            .slice(0, 3)
            .map((row) => `${row.name}: ${formatFigure(row.many)} against ${formatFigure(row.few)}`)
            .join('; '),
        },
      ],
      growth,
      skipped: [],
    }
  } finally {
    generator.stop()
    await service.stop()
  }
}

async function measureBuffers(service: BenchService, generator: LoadGenerator, run: LoadRequest, middle: Date) {
  const buffers: Record<string, number> = {}
  for (const [name, requests] of await listRequests(service, run, middle)) {
    const send = (count: number) => runLoad(generator, { port: service.port, inFlight: 1, requests, count })
    await send(WARM_UP)
    const windows: number[] = []
    await setStatementTracking(service.query, 'all')
    for (let window = 0; window < WINDOWS; window++) {
      await resetStatements(service.query)
      await send(MEASURED)
      windows.push((await readBuffers(service.query)) / MEASURED)
    }
    await setStatementTracking(service.query, 'none')
    // The background work also touches buffers now and then; the lowest window has the least of it.
    buffers[name] = Math.min(...windows)
  }
  for (const inFlight of [1, 32]) {
    const count = inFlight === 1 ? 60 : 640
    const load = { port: service.port, inFlight, requests: [run], count }
    const windows: number[] = []
    for (let window = 0; window < WINDOWS; window++)
      windows.push((await measureWrites(service.query, () => runLoad(generator, load))).buffers / count)
    buffers[`wallet-paid run, ${inFlight} in flight`] = Math.min(...windows)
  }
  return buffers
}

/**
 * Each list with its first page, the page after it, a page of what is older than `middle`, and with filters that nothing or
 * almost nothing passes; and things of a run by the ids of several.
 */
async function listRequests(
  service: BenchService,
  { headers, body }: LoadRequest,
  middle: Date,
): Promise<[string, LoadRequest[]][]> {
  const requests: [string, LoadRequest[]][] = []
  const addEach = (name: string, paths: string[]) =>
    requests.push([`GET ${name}`, paths.map((path) => ({ method: 'GET', path, headers }))])
  const add = (path: string, name = path) => addEach(name, [path])
  const lists = [
    '/api/runs',
    '/api/receipts',
    '/api/settlements',
    '/api/audit',
    '/api/ledger',
    '/api/loops',
    '/api/decisions',
  ]
  for (const path of lists) {
    const first = await service.get(`${path}?limit=20`, headers)
    if (first.status !== 200) throw new Error(`${path} returned ${first.status}: ${first.text}`)
    add(`${path}?limit=20`)
    const cursor = first.body?.next_cursor
    if (cursor) add(`${path}?limit=20&cursor=${encodeURIComponent(cursor)}`, `${path}?limit=20&cursor=…`)
  }
  // Not of the audit trail: the events of the seed are days out of order, which widens each of its ranges.
  for (const path of ['/api/runs', '/api/receipts', '/api/settlements'])
    add(`${path}?limit=20&until=${middle.toISOString()}`, `${path}?limit=20&until=…`)
  const filters: Record<string, string[]> = {
    '/api/runs': [
      'spender=nobody',
      'team=none',
      'tag=project:none',
      'agent_id=writer-v1',
      'min_usdc=5',
      'action=loop',
      'mandate_id=none',
      'progress=waiting',
      'outcome=blocked',
    ],
    '/api/receipts': ['agent_id=writer-v1', 'kind=failure', 'payer=0x0000000000000000000000000000000000000001'],
    '/api/settlements': ['method=x402', 'state=unknown'],
    '/api/audit': ['type=run.blocked', 'actor=nobody', 'spender=nobody'],
    '/api/decisions': ['agent_id=writer-v1'],
    '/api/loops': ['session_id=none'],
    '/api/ledger': ['account=assets:none'],
    '/api/pre-auth': ['agent_id=nobody'],
    '/api/predictive/alerts': ['severity=critical'],
  }
  for (const [path, queries] of Object.entries(filters)) for (const query of queries) add(`${path}?limit=20&${query}`)
  for (const groups of ['day', 'spender', 'tag&tag=project', 'lane,rail']) add(`/api/spend?group_by=${groups}`)
  for (const window of ['24h', '90d']) add(`/api/analytics?window=${window}`)
  for (const path of [
    '/api/control-tower/budgets',
    '/api/control-tower/agents',
    '/api/control-tower/self-approved',
    '/api/benchmark',
    '/api/approvals',
    '/api/memory',
    '/api/me/plan',
  ])
    add(path)
  // How far the entries of a run are from a snapshot of its balances differs from run to run.
  const { body: receipts } = await service.get('/api/receipts?limit=50', headers)
  const sample: { run_id: string; receipt_id: string }[] = receipts.receipts.filter(
    (_: unknown, index: number) => index % (50 / MEASURED) === 0,
  )
  const addRuns = (name: string, path: (ids: (typeof sample)[number]) => string) => addEach(name, sample.map(path))
  const walletId = JSON.parse(body!).payment.wallet_id
  add('/api/runs?limit=20&outcome=failed')
  add('/api/runs?limit=20&agent_id=comedian-v1')
  add('/api/receipts?limit=20&agent_id=comedian-v1')
  addRuns('/api/receipts?run_id=…', ({ run_id }) => `/api/receipts?run_id=${run_id}`)
  add('/api/settlements?limit=20&state=failed')
  addRuns('/api/settlements?run_id=…', ({ run_id }) => `/api/settlements?run_id=${run_id}`)
  add('/api/audit?limit=20&type=run.completed')
  addRuns('/api/audit?limit=20&subject=…', ({ run_id }) => `/api/audit?limit=20&subject=${run_id}`)
  addRuns('/api/ledger?ref=…', ({ run_id }) => `/api/ledger?ref=${run_id}`)
  add(`/api/ledger?limit=20&account=liabilities:wallet:${walletId}`, '/api/ledger?limit=20&account=…')
  add('/api/decisions?limit=20&outcome=blocked')
  addRuns('/api/runs/:id', ({ run_id }) => `/api/runs/${run_id}`)
  addRuns('/api/receipts/:id', ({ receipt_id }) => `/api/receipts/${receipt_id}`)
  addRuns('/api/receipts/:id/proof', ({ receipt_id }) => `/api/receipts/${receipt_id}/proof`)
  add('/api/wallets')
  add(`/api/wallets/${walletId}`, '/api/wallets/:id')
  for (const path of [
    '/api/agents',
    '/api/providers',
    '/api/lanes',
    '/api/lane/comedian-v1',
    '/api/budgets',
    '/api/analytics',
    '/api/control-tower',
    '/api/predictive/alerts',
    '/api/me',
    '/api/health',
    '/api/log/checkpoint',
    '/metrics',
  ])
    add(path)
  requests.push([
    'POST /api/run without payment',
    [
      {
        method: 'POST',
        path: '/api/run',
        headers,
        body: JSON.stringify({ task: 'Say {n}.', agent_id: 'comedian-v1' }),
        expectedStatus: 402,
      },
    ],
  ])
  return requests
}
